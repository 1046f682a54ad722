//! Measures verifications: real-sized responses, all vectors, and hostile responses of 1 and 8 MB. Run with `--release`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use plaudit_math::{Options, Reference, verify};

/// Answers as they occur in competition problems, with one that is wrong for each.
const ANSWERS: [(&str, &str, &str); 16] = [
    ("42", "42", "41"),
    ("\\frac{3}{56}", "\\frac{3}{56}", "\\frac{3}{65}"),
    ("10{,}000", "10000", "9999"),
    ("2\\sqrt{13}", "\\sqrt{52}", "2\\sqrt{15}"),
    ("x^2-4", "(x-2)(x+2)", "(x-2)^2"),
    ("(-\\infty,2]\\cup[3,\\infty)", "(-\\infty, 2] \\cup [3, \\infty)", "(2,3)"),
    ("\\frac{9}{4}\\pi", "\\frac{9\\pi}{4}", "\\frac{9}{4\\pi}"),
    ("-2,1", "1,-2", "-1,2"),
    ("(3,2)", "(3,2)", "(2,3)"),
    ("28\\%", "28\\%", "82\\%"),
    ("90^\\circ", "90", "45"),
    ("\\text{Evelyn}", "\\text{Evelyn}", "\\text{Carla}"),
    ("3+4i", "4i+3", "3-4i"),
    ("-\\frac{1}{2}", "-0.5", "0.5"),
    ("2n+1", "a_n=2n+1", "2n-1"),
    (
        "\\begin{pmatrix}1\\\\2\\end{pmatrix}",
        "\\begin{pmatrix}1\\\\2\\end{pmatrix}",
        "\\begin{pmatrix}2\\\\1\\end{pmatrix}",
    ),
];

const PROSE: &str = "We start from the equation $x^2 + bx + c = 0$ and use that the sum of the roots is $-b$, \
while their product is $c$. Substituting $x = \\frac{t+1}{2}$ gives \\[ t^2 + (2b+2)t + (1 + 2b + 4c) = 0, \\] \
so the discriminant is $4(b+1)^2 - 4(1+2b+4c) = 4(b^2 - 4c)$, as expected. ";

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

fn real_sized() {
    let prose = PROSE.repeat(4);
    let groups: Vec<(Reference, Vec<String>)> = ANSWERS
        .iter()
        .map(|(reference, right, wrong)| {
            let parsed = Reference::parse(reference, &Options::default()).unwrap();
            let response = |n: usize| {
                let answer = if n % 4 == 3 { wrong } else { right };
                format!("{prose}Therefore, the final answer is $\\boxed{{{answer}}}$.")
            };
            (parsed, (0..8).map(response).collect())
        })
        .collect();
    let bytes = groups[0].1[0].len();
    for (reference, responses) in &groups {
        let mut line = format!("{:>40}:", reference.text());
        for response in [&responses[0], &responses[3]] {
            let start = Instant::now();
            for _ in 0..2_000 {
                black_box(verify(black_box(response), reference));
            }
            line = format!("{line} {:?}", start.elapsed() / 2_000);
        }
        println!("{line}");
    }
    for run in 0..3 {
        let start = Instant::now();
        let mut count = 0u32;
        while start.elapsed() < Duration::from_secs(1) {
            for (reference, responses) in &groups {
                for response in responses {
                    black_box(verify(black_box(response), reference));
                    count += 1;
                }
            }
        }
        let reused = f64::from(count) / start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut count = 0u32;
        while start.elapsed() < Duration::from_secs(1) {
            for ((text, ..), (_, responses)) in ANSWERS.iter().zip(&groups) {
                let reference = Reference::parse(text, &Options::default()).unwrap();
                for response in responses {
                    black_box(verify(black_box(response), &reference));
                    count += 1;
                }
            }
        }
        let parsed = f64::from(count) / start.elapsed().as_secs_f64();
        println!(
            "real-sized ({bytes} bytes), run {run}: {reused:.0}/s, with the reference read once in 8: {parsed:.0}/s"
        );
    }
}

fn vectors(path: &str) {
    let rows: Vec<serde_json::Value> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut times = Vec::new();
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    let mut total = Duration::ZERO;
    for row in &rows {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            if let Ok(reference) = Reference::parse(row["reference"].as_str().unwrap(), &Options::default()) {
                black_box(verify(row["response"].as_str().unwrap(), &reference));
            }
            best = best.min(start.elapsed());
        }
        if row["tag"] != "hostile" {
            total += best;
        }
        times.push(best);
        slowest.push((best, row["id"].as_str().unwrap().to_owned()));
    }
    slowest.sort();
    println!(
        "{} vectors with their references: {:.0}/s without hostile, median {:?}, p99 {:?}, p99.9 {:?}, slowest {:?}",
        rows.len(),
        rows.len() as f64 / total.as_secs_f64(),
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.99),
        percentile(&mut times, 0.999),
        &slowest[slowest.len() - 3..]
    );
}

fn hostile(size: usize) -> Vec<(&'static str, String)> {
    let repeat = |part: &str| part.repeat(size / part.len());
    let nested = |open: &str, close: &str| {
        let count = size / (open.len() + close.len());
        format!("\\boxed{{{}1{}}}", open.repeat(count), close.repeat(count))
    };
    vec![
        ("boxes", repeat("\\boxed{4}")),
        ("joined boxes", repeat("\\boxed{4}, ")),
        ("open braces", format!("\\boxed{{{}", repeat("{"))),
        ("braces", nested("{", "}")),
        ("brackets", nested("(", ")")),
        ("dollars", repeat("$")),
        ("double dollars", repeat("$$ ")),
        ("formulas", repeat("$1$ ")),
        ("digits", repeat("1")),
        ("boxed digits", format!("\\boxed{{{}}}", repeat("1"))),
        ("nested fractions", nested("\\frac{1}{", "}")),
        ("nested roots", nested("\\sqrt{", "}")),
        ("unclosed boxes", repeat("\\boxed{")),
        ("nested boxes", nested("\\boxed{", "}")),
        ("empty boxes", repeat("\\boxed{}")),
        ("phrases", repeat("the answer is ")),
        ("final answers", format!("\\boxed{{4}} {}", repeat("final answer: "))),
        ("answer lines", repeat("answer\n")),
        ("tags", repeat("<answer>")),
        ("think", repeat("<think></think>")),
        ("hashes", repeat("#### ")),
        ("backslashes", repeat("\\")),
        ("commands", repeat("\\frac")),
        ("open math", repeat("\\( \\[ ")),
        ("letters", repeat("a1")),
        ("words", repeat("so 8 ")),
        ("powers", format!("\\boxed{{{}}}", repeat("2^"))),
        ("sum", format!("\\boxed{{{}1}}", repeat("1+"))),
        ("commas", format!("\\boxed{{{}1}}", repeat("1,"))),
        ("matrix", format!("\\boxed{{\\begin{{pmatrix}}{}1\\end{{pmatrix}}}}", repeat("1&"))),
        ("bars", format!("\\boxed{{{}}}", repeat("|"))),
        ("unicode", repeat("½²−")),
        ("options", repeat("option ")),
        ("joined formulas", repeat("$1$, ")),
        ("small boxed sum", format!("{}\\boxed{{{}1}}", repeat("x "), "1+".repeat(16_000))),
        ("small nested", format!("\\boxed{{{}1{}}}", "\\frac{1}{".repeat(60), "}".repeat(60))),
        ("64 KiB of sines", format!("\\boxed{{{}1}}", "\\sin 1+".repeat(8_000))),
        ("64 KiB of roots", format!("\\boxed{{{}1}}", "\\sqrt{7919}+".repeat(5_000))),
        ("64 KiB of letters", format!("\\boxed{{{}x}}", "x+".repeat(30_000))),
        ("long power sum", format!("\\boxed{{{}1}}", "3^{90000}+".repeat(6_000))),
        ("long fractions", format!("\\boxed{{{}1}}", "\\frac{3^{9000}}{7^{9000}}+".repeat(2_000))),
        ("numbers", format!("\\boxed{{{}1}}", format!("{}+", "9".repeat(19_000)).repeat(3))),
        ("sets", format!("\\boxed{{\\{{{}1\\}}}}", "\\sqrt{2},".repeat(500))),
    ]
}

fn main() {
    let path = std::env::args().nth(1);
    real_sized();
    if let Some(path) = path {
        vectors(&path);
    }
    let reference = Reference::parse("\\{\\sqrt{3},\\pi\\}", &Options::default()).unwrap();
    let time = |text: &str| {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            black_box(verify(text, &reference));
            best = best.min(start.elapsed());
        }
        best
    };
    let (one, eight) = (hostile(1 << 20), hostile(8 << 20));
    let mut rows: Vec<(Duration, Duration, &str)> =
        one.iter().zip(&eight).map(|((name, small), (_, large))| (time(small), time(large), *name)).collect();
    rows.sort_unstable();
    rows.reverse();
    for (small, large, name) in rows.iter().take(16) {
        println!("hostile {name}: 1 MB {small:?}, 8 MB {large:?}");
    }
}
