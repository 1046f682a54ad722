//! Simulation of designs and aggregators: the calls that they need, and the errors of their scores.
//!
//! A judge whose mistakes are known answers, and the scores are held against the qualities that it judged.
//!
//! `cargo run --release -p plaudit --example simulate [groups]` prints one table a group size, then what a bias towards
//! the first slot costs, what groups without any difference get, and whether the stated reliability is honest. Qualities
//! are normal; the logit of a verdict is their difference over a temperature, plus 0.5 for the first slot; a verdict
//! within 0.25 of even is a tie; a ranking sorts by qualities with noise of Gumbel's distribution, so that two of a
//! ranking are as accurate as a pair.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a simulation prints, and stops where it cannot go on"
)]

use plaudit::aggregate::bradley_terry::BradleyTerry;
use plaudit::aggregate::design::{Design, Schedule};
use plaudit::aggregate::{Comparison, Evidence, Method, MethodInfo, Ranking, Weighed, estimate};

/// Numbers that only depend on a seed.
struct Rng(u64);

impl Rng {
    /// A number above 0 and below 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn gumbel(&mut self) -> f64 {
        -(-self.unit().ln()).ln()
    }
}

/// Who answers.
#[derive(Clone, Copy)]
struct Comparer {
    temperature: f64,
    position: f64,
}

const TIE: f64 = 0.25;
const STRONG: Comparer = Comparer { temperature: 0.25, position: 0.5 };
const AVERAGE: Comparer = Comparer { temperature: 0.5, position: 0.5 };
const WEAK: Comparer = Comparer { temperature: 1.0, position: 0.5 };

impl Comparer {
    fn answer(
        &self,
        call: &[usize],
        qualities: &[f64],
        weighs: bool,
        rng: &mut Rng,
        observed: &mut Evidence,
    ) {
        let noisy: Vec<f64> = call
            .iter()
            .enumerate()
            .map(|(slot, one)| {
                let first = if slot == 0 { self.position } else { 0.0 };
                qualities[*one] / self.temperature + first + rng.gumbel()
            })
            .collect();
        if call.len() > 2 {
            let mut slots: Vec<usize> = (0..call.len()).collect();
            slots.sort_by(|a, b| noisy[*b].total_cmp(&noisy[*a]));
            let order = slots.into_iter().map(|slot| call[slot]).collect();
            return observed.rankings.push(Ranking { shown: call.to_vec(), order });
        }
        let (first, second, lead) = (call[0], call[1], noisy[0] - noisy[1]);
        let winner = (lead.abs() > TIE).then_some(if lead > 0.0 { first } else { second });
        let comparison = Comparison { first, second, winner };
        if weighs {
            observed.weighed.push(Weighed { comparison, first: 1.0 / (1.0 + (-lead).exp()) });
        } else {
            observed.comparisons.push(comparison);
        }
    }
}

/// How a group is asked about and scored.
#[derive(Clone)]
struct Plan {
    name: String,
    /// None for every pair once with the lower number first, as RM-Gallery asks.
    design: Option<Design>,
    method: &'static str,
    budget: Option<usize>,
    line_up: usize,
    reliability: f64,
    weighs: bool,
    prior: bool,
}

impl Plan {
    fn new(name: &str, design: Option<Design>, method: &'static str, budget: Option<usize>) -> Self {
        let name = name.to_owned();
        Self { name, design, method, budget, line_up: 2, reliability: 1.0, weighs: false, prior: false }
    }
}

/// What a group came to.
struct Scored {
    qualities: Vec<f64>,
    scores: Vec<f64>,
    strengths: Vec<f64>,
    signal: f64,
    calls: usize,
    waves: usize,
}

fn score(plan: &Plan, judge: Comparer, n: usize, spread: f64, seed: u64) -> Scored {
    let mut rng = Rng(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let qualities: Vec<f64> = (0..n).map(|_| spread * rng.normal()).collect();
    let mut observed = Evidence::default();
    if plan.prior {
        let unlike = (1.0_f64 / 0.49 - 1.0).sqrt();
        observed.prior = Some(qualities.iter().map(|quality| quality + unlike * rng.normal()).collect());
    }
    let mut asked: Vec<Vec<usize>> = Vec::new();
    let mut waves = 0;
    let schedule = Schedule {
        n,
        seed,
        design: plan.design.unwrap_or(Design::RoundRobin),
        budget: plan.budget,
        line_up: plan.line_up,
        reliability: plan.reliability,
        audit: 0.0,
        model: BradleyTerry::default(),
    };
    loop {
        let mut wave = schedule.next(&asked, &observed);
        if wave.is_empty() {
            break;
        }
        if plan.design.is_none() {
            wave.iter_mut().for_each(|call| call.sort_unstable());
        }
        for call in &wave {
            judge.answer(call, &qualities, plan.weighs, &mut rng, &mut observed);
        }
        asked.extend(wave);
        waves += 1;
    }
    let method = Method::named(plan.method, serde_json::Map::new()).expect("a method");
    let aggregated = estimate(&method, n, &observed).expect("an estimate");
    let (strengths, signal) = match aggregated.info {
        MethodInfo::BradleyTerry(info) => (info.strengths, info.signal),
        _ => (aggregated.scores.clone(), 0.0),
    };
    Scored { qualities, scores: aggregated.scores, strengths, signal, calls: asked.len(), waves }
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (centred(a), centred(b));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = (dot(&a, &a) * dot(&b, &b)).sqrt();
    if size > 0.0 { dot(&a, &b) / size } else { 0.0 }
}

fn tau(a: &[f64], b: &[f64]) -> f64 {
    let (mut agreed, mut pairs) = (0.0, 0.0);
    for one in 0..a.len() {
        for two in 0..one {
            let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
            agreed += sign(a[one] - a[two]) * sign(b[one] - b[two]);
            pairs += 1.0;
        }
    }
    agreed / pairs
}

/// Means over groups.
struct Summary {
    calls: f64,
    waves: f64,
    r: f64,
    tau: f64,
    signal: f64,
    squared: f64,
}

fn summary(groups: &[Scored]) -> Summary {
    let mean = |of: &dyn Fn(&Scored) -> f64| groups.iter().map(of).sum::<f64>() / groups.len() as f64;
    Summary {
        calls: mean(&|group| group.calls as f64),
        waves: mean(&|group| group.waves as f64),
        r: mean(&|group| correlation(&group.scores, &group.qualities)),
        tau: mean(&|group| tau(&group.scores, &group.qualities)),
        signal: mean(&|group| group.signal),
        squared: mean(&|group| correlation(&group.strengths, &group.qualities).powi(2)),
    }
}

fn simulate(plan: &Plan, judge: Comparer, n: usize, spread: f64, groups: u64) -> Vec<Scored> {
    (0..groups).map(|seed| score(plan, judge, n, spread, seed)).collect()
}

fn plans(n: usize) -> Vec<Plan> {
    let all = n * (n - 1) / 2;
    let mut plans: Vec<Plan> = ["winrate", "copeland", "dgr", "elo"]
        .iter()
        .map(|method| Plan::new(&format!("RM-Gallery {method}, one order"), None, method, None))
        .collect();
    for method in ["winrate", "copeland", "bradley_terry"] {
        plans.push(Plan::new(&format!("round robin, {method}"), Some(Design::RoundRobin), method, None));
    }
    for budget in [3 * n, 15 * n / 4].into_iter().filter(|budget| *budget <= all) {
        plans.push(Plan::new("sparse", Some(Design::Sparse), "bradley_terry", Some(budget)));
    }
    for budget in [n, 2 * n, 3 * n, 15 * n / 4, 5 * n, 120 * n / 16] {
        plans.push(Plan::new("adaptive", Some(Design::Adaptive), "bradley_terry", Some(budget)));
    }
    for reliability in [0.8, 0.85, 0.9] {
        let name = format!("adaptive to {reliability}");
        let plan = Plan::new(&name, Some(Design::Adaptive), "bradley_terry", None);
        plans.push(Plan { reliability, ..plan });
    }
    for budget in [2 * n, 3 * n] {
        let plan = Plan::new("adaptive, weighed", Some(Design::Adaptive), "bradley_terry", Some(budget));
        plans.push(Plan { weighs: true, ..plan });
        let plan = Plan::new("adaptive, prior 0.7", Some(Design::Adaptive), "bradley_terry", Some(budget));
        plans.push(Plan { prior: true, ..plan });
    }
    for (line_up, budget) in [(4, n), (4, 5 * n / 4), (4, 3 * n / 2), (8, n / 2)] {
        for design in [Design::Sparse, Design::Adaptive] {
            let name = format!(
                "{} line-ups of {line_up}",
                if design == Design::Sparse { "sparse" } else { "adaptive" }
            );
            let plan = Plan::new(&name, Some(design), "bradley_terry", Some(budget));
            plans.push(Plan { line_up: line_up.min(n), ..plan });
        }
    }
    plans
}

fn table(n: usize, groups: u64) {
    println!(
        "\nn = {n}: calls, waves, then r / tau for a strong, an average and a weak judge, {groups} groups"
    );
    for plan in plans(n) {
        let by_judge = [STRONG, AVERAGE, WEAK].map(|judge| summary(&simulate(&plan, judge, n, 1.0, groups)));
        let mut line = format!("{:32} {:6.1} {:4.1} ", plan.name, by_judge[0].calls, by_judge[0].waves);
        for Summary { r, tau, .. } in by_judge {
            line += &format!("  {r:.3} / {tau:.3}");
        }
        println!("{line}");
    }
}

fn verdict(what: &str, value: f64, at_least: Option<f64>, at_most: Option<f64>) {
    let good = at_least.is_none_or(|bound| value >= bound) && at_most.is_none_or(|bound| value <= bound);
    let bound = match (at_least, at_most) {
        (Some(bound), _) => format!(">= {bound:.4}"),
        (_, Some(bound)) => format!("<= {bound:.4}"),
        _ => String::new(),
    };
    println!("{} {what}: {value:.4} ({bound})", if good { "PASS" } else { "MISS" });
}

fn parity(groups: u64) {
    println!(
        "\nas good as RM-Gallery's best of winrate, copeland and dgr at 120 calls: n = 16, strong judge"
    );
    let r = |plan: &Plan| summary(&simulate(plan, STRONG, 16, 1.0, groups)).r;
    let theirs = ["winrate", "copeland", "dgr"].map(|method| r(&Plan::new("", None, method, None)));
    let bar = theirs.iter().copied().fold(0.0, f64::max);
    let ours = |budget, line_up| Plan {
        line_up,
        ..Plan::new("", Some(Design::Adaptive), "bradley_terry", Some(budget))
    };
    verdict(
        "r of a balanced round robin of 120 calls",
        r(&Plan::new("", Some(Design::RoundRobin), "bradley_terry", None)),
        Some(bar),
        None,
    );
    for (budget, line_up) in [(60, 2), (24, 4), (20, 4), (16, 4)] {
        let what = format!("r of {budget} adaptive calls that show {line_up}");
        verdict(&what, r(&ours(budget, line_up)), Some(bar), None);
    }
}

fn position(groups: u64) {
    println!("\nwhat a bias of 1.0 towards the first slot costs against none: n = 16, strong judge");
    let r = |plan: &Plan, position: f64| {
        summary(&simulate(plan, Comparer { position, ..STRONG }, 16, 1.0, groups)).r
    };
    for (name, design, budget) in [
        ("round robin", Design::RoundRobin, 120),
        ("adaptive", Design::Adaptive, 120),
        ("sparse", Design::Sparse, 60),
        ("adaptive", Design::Adaptive, 60),
    ] {
        let plan = Plan::new(name, Some(design), "bradley_terry", Some(budget));
        verdict(
            &format!("loss of r, {name}, {budget} calls"),
            r(&plan, 0.0) - r(&plan, 1.0),
            None,
            Some(0.005),
        );
    }
    let theirs = Plan::new("", None, "winrate", None);
    println!("     loss of r of RM-Gallery's winrate: {:.4}", r(&theirs, 0.0) - r(&theirs, 1.0));
}

fn mixed(groups: u64) {
    println!("\ngroups of spread 0, 0.3, 1 and 2: n = 16 and 4, average judge");
    let quiet = |n: usize, plan: &Plan| {
        let by_spread = [0.0, 0.3, 1.0, 2.0].map(|spread| simulate(plan, AVERAGE, n, spread, groups));
        let energy = |groups: &[Scored]| -> f64 {
            let of = |group: &Scored| centred(&group.scores).iter().map(|score| score * score).sum::<f64>();
            groups.iter().map(of).sum::<f64>() / groups.len() as f64
        };
        let noise =
            energy(&by_spread[0]) / by_spread[1..].iter().map(|groups| energy(groups)).sum::<f64>() * 3.0;
        let all: Vec<&Scored> = by_spread.iter().flatten().collect();
        let scores: Vec<f64> = all.iter().flat_map(|group| centred(&group.scores)).collect();
        let truths: Vec<f64> = all.iter().flat_map(|group| centred(&group.qualities)).collect();
        (noise, correlation(&scores, &truths), by_spread.map(|groups| summary(&groups)))
    };
    let plan = |design, method, budget| Plan::new("", design, method, Some(budget));
    for (name, n, plan, bar) in [
        ("RM-Gallery winrate", 16, plan(None, "winrate", 120), false),
        ("sparse", 16, plan(Some(Design::Sparse), "bradley_terry", 48), true),
        ("adaptive", 16, plan(Some(Design::Adaptive), "bradley_terry", 48), true),
        ("adaptive", 16, plan(Some(Design::Adaptive), "bradley_terry", 120), false),
        ("round robin", 16, plan(Some(Design::RoundRobin), "bradley_terry", 120), false),
        ("RM-Gallery winrate", 4, plan(None, "winrate", 6), false),
        ("round robin", 4, plan(Some(Design::RoundRobin), "bradley_terry", 6), false),
        ("adaptive", 4, plan(Some(Design::Adaptive), "bradley_terry", 12), false),
    ] {
        let (noise, pooled, by_spread) = quiet(n, &plan);
        let budget = plan.budget.unwrap_or(0);
        if bar {
            verdict(&format!("noise energy, {name}, {budget} calls"), noise, None, Some(0.03));
            verdict(&format!("pooled correlation, {name}, {budget} calls"), pooled, Some(0.85), None);
        } else {
            println!(
                "     n = {n}, {name}, {budget} calls: noise energy {noise:.4}, pooled correlation {pooled:.4}"
            );
        }
        let each = by_spread.iter().map(|summary| format!("{:.1} calls r {:.3}", summary.calls, summary.r));
        println!("     by spread: {}", each.collect::<Vec<_>>().join(", "));
        if n == 16 && budget == 120 && plan.design == Some(Design::Adaptive) {
            verdict("share of calls without any difference", by_spread[0].calls / 120.0, None, Some(0.5));
        }
    }
}

fn honesty(groups: u64) {
    println!("\nis the stated reliability honest? the mean at the stop against the mean of r squared");
    for (name, judge) in [("strong", STRONG), ("average", AVERAGE), ("weak", WEAK)] {
        for (n, reliability) in [(16, 0.8), (16, 0.85), (16, 0.9), (8, 0.8)] {
            let plan = Plan::new("", Some(Design::Adaptive), "bradley_terry", None);
            let Summary { signal, squared, calls, .. } =
                summary(&simulate(&Plan { reliability, ..plan }, judge, n, 1.0, groups));
            let what = format!(
                "{name}, n = {n}, target {reliability}, {calls:.1} calls, stated {signal:.3}, r squared"
            );
            verdict(&what, squared, Some(signal - 0.02), None);
        }
    }
}

fn main() {
    let groups = std::env::args().nth(1).and_then(|groups| groups.parse().ok()).unwrap_or(500);
    let only = std::env::args().nth(2);
    let wants = |what: &str| only.as_deref().is_none_or(|only| only == what);
    if wants("table") {
        [16, 8, 4].into_iter().for_each(|n| table(n, groups));
    }
    if wants("parity") {
        parity(groups);
    }
    if wants("position") {
        position(groups);
    }
    if wants("mixed") {
        mixed(groups);
    }
    if wants("honesty") {
        honesty(groups);
    }
}
