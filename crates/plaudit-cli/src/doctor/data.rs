//! `plaudit doctor DATA`: a dry run of a data set. What the rewards of the recipe need and do not find, and references that
//! no response can be compared with.

use super::{Bad, DoctorCheck, Doubtful, Good, STAND_IN, solutions};
use crate::console::Console;
use crate::error::CliError;
use crate::files::{Output, Source, line};
use crate::interrupt::Interrupt;
use crate::scoring::HOLD;
use crate::stream::{Renderer, Sink, Stream};
use crate::summary::{cut, many, percent, whole};
use plaudit::engine::{Engine, EngineOptions};
use plaudit::input::{Fields, other_names};
use plaudit::outcome::Outcome;
use plaudit::plan::{Branch, Plan, Scorer};
use plaudit::reason::Code;
use plaudit::record::Network;
use plaudit::report::{Report, Row};
use plaudit::rollout::{Reference, ReferenceForm, Rollout};
use plaudit::rule::reference_check::{ReferenceCheck, Remark, Severity};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Write as _;
use std::sync::Arc;

/// How many examples of a finding are shown.
const EXAMPLES: usize = 3;
/// The longest part of a reference that is shown.
const SHOWN: usize = 60;
/// The most prompts whose references are remembered, and the most references that are told apart.
const MAX_REMEMBERED: usize = 1_000_000;

/// What is looked at, and where the findings go.
pub(super) struct DataCheck<'a> {
    pub(super) data: &'a str,
    pub(super) fields: Fields,
    /// So many references may be unusable.
    pub(super) allowed: u64,
    /// Where every finding is written to.
    pub(super) out: Option<&'a str>,
}

impl DataCheck<'_> {
    /// Reads the data with one plan; `again` is the same one for the solutions.
    pub(super) fn run(self, plan: Plan, again: Plan) -> Result<Vec<DoctorCheck>, CliError> {
        // Nobody is asked: prompts are filled in, and no journal answers them.
        let options = EngineOptions { network: Network::Replay, ..EngineOptions::default() };
        let engine = Arc::new(Engine::open(plan, &options)?);
        let out = self.out.map(Output::open).transpose()?;
        let mut findings = Findings::new(Arc::clone(&engine), out);
        let (console, interrupt) = (Console::errors(), Arc::new(Interrupt::default()));
        let done = Stream::new(&engine, &mut findings, &console, HOLD, &interrupt)
            .run(Source::open(self.data)?, self.fields)?;
        let mut checks = vec![findings.headline(self.data)];
        if done.bad_lines.count > 0 {
            let said = format!("{} of {}", whole(done.bad_lines.count), whole(done.bad_lines.lines));
            checks.push(DoctorCheck::new(Bad, "bad lines", said));
        }
        checks.extend(findings.checks(self.allowed));
        if !findings.solutions.is_empty() {
            checks.extend(solutions::check(again, &findings.solutions, findings.more_solutions));
        }
        findings.out.map_or(Ok(()), Output::finish)?;
        Ok(checks)
    }
}

/// What was seen of one row.
struct Seen {
    id: String,
    /// The hash of its prompt.
    prompt: Option<u64>,
    reference: Option<String>,
    found: Vec<Found>,
    /// Under which names a prompt or a reference that is missing seems to stand in the row.
    renames: Vec<(&'static str, String)>,
    /// Whether some response to it could have a total.
    is_scored: bool,
    /// The field that its reference was read from, where that is none of its own.
    field: Option<&'static str>,
    /// The row with its reference solution as the response.
    solution: Option<Box<Rollout<'static>>>,
}

/// One finding about one row.
#[derive(Clone)]
struct Found {
    /// The component, or empty where it is about the row as a whole.
    component: String,
    severity: Severity,
    what: &'static str,
    detail: String,
    /// Whether it is about the reference alone, so that it counts once however many rows have that reference.
    of_reference: bool,
}

/// The findings so far, by component, severity and what was found.
struct Findings {
    engine: Arc<Engine>,
    out: Option<Output>,
    rows: u64,
    found: BTreeMap<(Severity, bool, String, &'static str), Tally>,
    references: HashSet<u64>,
    prompts: HashMap<u64, (String, String)>,
    needs_reference: bool,
    /// How many rows have no total for any response, and how many have their reference in another field.
    unscored: u64,
    fields: BTreeMap<&'static str, u64>,
    /// The names of the first row that has some.
    renames: Vec<(&'static str, String)>,
    /// The first rows that have a solution, and how many others have one.
    solutions: Vec<Rollout<'static>>,
    more_solutions: u64,
}

#[derive(Default)]
struct Tally {
    count: u64,
    examples: Vec<String>,
}

impl Findings {
    fn new(engine: Arc<Engine>, out: Option<Output>) -> Self {
        let needs_reference = engine.plan().needs_reference();
        let (found, references, prompts) = (BTreeMap::new(), HashSet::new(), HashMap::new());
        let (renames, solutions, more_solutions) = (Vec::new(), Vec::new(), 0);
        Self {
            engine,
            out,
            rows: 0,
            found,
            references,
            prompts,
            needs_reference,
            unscored: 0,
            fields: BTreeMap::new(),
            renames,
            solutions,
            more_solutions,
        }
    }

    fn headline(&self, data: &str) -> DoctorCheck {
        let prompts = match self.prompts.len() {
            0 => String::new(),
            some => format!(", {} with a reference", many(some as u64, "prompt")),
        };
        let references = many(self.references.len() as u64, "different reference");
        let said = format!("{data}: {}{prompts}, {references}", many(self.rows, "row"));
        DoctorCheck::new(Good, "data", said)
    }

    fn checks(&self, allowed: u64) -> Vec<DoctorCheck> {
        let distinct = self.references.len() as u64;
        let mut checks: Vec<DoctorCheck> = self.scored(allowed).into_iter().chain(self.hint()).collect();
        let mut kinds: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
        for ((severity, of_reference, component, what), tally) in &self.found {
            if *severity == Severity::Kind {
                kinds.entry(component).or_default().push((tally.count, what));
                continue;
            }
            let (noun, all) = if *of_reference { ("reference", distinct) } else { ("row", self.rows) };
            let share = percent(tally.count as f64 / all.max(1) as f64);
            let many = if tally.count == 1 { "" } else { "s" };
            let mut said = format!("{} {noun}{many} ({share}): {what}", whole(tally.count));
            tally.examples.iter().for_each(|example| said.push_str(&format!("\n  {example}")));
            let bearable = *of_reference && tally.count <= allowed;
            let is_bad = match severity {
                Severity::Fault => !bearable,
                Severity::Unlikely => is_most(tally.count, all),
                Severity::Doubt | Severity::Kind => false,
            };
            let verdict = if is_bad { Bad } else { Doubtful };
            let name = if component.is_empty() { "data" } else { component };
            checks.push(DoctorCheck::new(verdict, name, said));
        }
        for (component, mut all) in kinds {
            all.sort_by(|a, b| b.cmp(a));
            // A list of accepted answers is one reference, and each of them is read.
            let read = all.iter().map(|(count, _)| count).sum::<u64>().max(distinct);
            let kind = |(count, kind): &(u64, &str)| {
                format!("{kind} {}", percent(*count as f64 / read.max(1) as f64))
            };
            let said = format!("references read as {}", all.iter().map(kind).collect::<Vec<_>>().join(", "));
            checks.push(DoctorCheck::new(Good, component, said));
        }
        checks
    }

    /// Whether most rows, and more than are borne, have no total, whatever the response is.
    fn scored(&self, allowed: u64) -> Option<DoctorCheck> {
        let share = percent(self.unscored as f64 / self.rows.max(1) as f64);
        let said = || format!("{} ({share}) cannot be scored with this recipe", many(self.unscored, "row"));
        (is_most(self.unscored, self.rows) && self.unscored > allowed)
            .then(|| DoctorCheck::new(Bad, "data", said()))
    }

    /// Where a reference that is missing seems to stand, or where it was found.
    fn hint(&self) -> Option<DoctorCheck> {
        let missing = Code::MissingReference.meaning().trim();
        let is_missing = self.found.keys().any(|(_, _, _, what)| *what == missing);
        let found = self.fields.iter().map(|(field, count)| format!("`{field}` of {}", many(*count, "row")));
        let found = found.filter(|_| self.needs_reference).collect::<Vec<_>>().join(", ");
        self.renames.iter().find(|(field, _)| *field == "reference")?;
        let names: Vec<String> =
            self.renames.iter().map(|(_, name)| format!("{:?}", cut(name, SHOWN))).collect();
        let flags: String =
            self.renames.iter().map(|(field, name)| format!(" --field {field}={name}")).collect();
        let said = format!("the rows have {}: try{flags}", names.join(" and "));
        match (is_missing, found.is_empty()) {
            (true, _) => Some(DoctorCheck::new(Doubtful, "fields", said)),
            (false, true) => None,
            (false, false) => {
                Some(DoctorCheck::new(Good, "fields", format!("references read from {found}; {said}")))
            }
        }
    }

    /// Compares the reference of a row with that of an earlier one of the same prompt.
    fn unequal(&mut self, seen: &Seen) -> Option<Found> {
        let (prompt, reference) = (seen.prompt?, seen.reference.as_ref()?);
        if !self.needs_reference {
            return None;
        }
        let full = self.prompts.len() >= MAX_REMEMBERED;
        let Some((id, first)) = self.prompts.get(&prompt) else {
            if !full {
                self.prompts.insert(prompt, (seen.id.clone(), reference.clone()));
            }
            return None;
        };
        let mut checks = reference_checks(self.engine.plan()).map(|(_, check)| check).peekable();
        let same = first == reference
            || checks.peek().is_some() && checks.all(|check| check.is_same(first, reference));
        (!same).then(|| Found {
            component: String::new(),
            severity: Severity::Fault,
            what: "the prompt has another reference in an earlier row",
            detail: format!("{id} has {}", cut(first, SHOWN)),
            of_reference: false,
        })
    }

    fn count(&mut self, id: &str, reference: Option<&str>, found: Found) -> Result<(), CliError> {
        if let Some(out) = self.out.as_mut().filter(|_| found.severity != Severity::Kind) {
            let value = json!({
                "id": id,
                "component": found.component,
                "severity": found.severity,
                "what": found.what,
                "detail": found.detail,
                "reference": reference,
            });
            let bytes = line(&value, out.name())?;
            out.write_all(&bytes).map_err(|error| CliError::writing(out.name(), error))?;
        }
        let shown =
            reference.map_or_else(String::new, |reference| format!(" {}", cut(reference.trim(), SHOWN)));
        let detail = match found.detail.as_str() {
            "" => String::new(),
            detail => format!(" ({})", cut(detail, 2 * SHOWN)),
        };
        let key = (found.severity, found.of_reference, found.component, found.what);
        let tally = self.found.entry(key).or_default();
        tally.count += 1;
        if tally.examples.len() < EXAMPLES {
            tally.examples.push(format!("{}:{}{detail}", cut(id, SHOWN), shown.replace('\n', " ")));
        }
        Ok(())
    }
}

/// Whether a count is more than half of all.
fn is_most(count: u64, all: u64) -> bool {
    count > all / 2
}

/// The components that can say something about references alone, each name once.
fn reference_checks(plan: &Plan) -> impl Iterator<Item = (&str, &dyn ReferenceCheck)> {
    let mut names = BTreeSet::new();
    let components = plan.branches.iter().flat_map(|branch| &branch.components);
    components.filter_map(move |component| match &component.scorer {
        Scorer::Rule(rule) if names.insert(component.name.as_str()) => {
            rule.reference_check().map(|check| (component.name.as_str(), check))
        }
        _ => None,
    })
}

/// Whether the data, or the recipe's way of reading them, are to blame.
fn is_about_data(code: Code) -> bool {
    code.as_str().starts_with("input.") || code.as_str().starts_with("recipe.")
}

/// Whether it comes with the response, which the trainer makes.
fn is_of_response(code: Code) -> bool {
    matches!(code, Code::MissingTokens | Code::MissingFinishReason)
}

/// What the components of a row did not find.
fn missing(plan: &Plan, row: &Row, has_response: bool) -> Vec<Found> {
    let found = |component: &str, severity, code: Code| Found {
        component: component.to_owned(),
        severity,
        what: code.meaning().trim(),
        detail: code.as_str().to_owned(),
        of_reference: false,
    };
    let Some(branch) = row.branch.map(|at| &plan.branches[at]) else {
        let code = row.total.cause().map(|cause| cause.reason.code);
        return code.into_iter().map(|code| found("", Severity::Fault, code)).collect();
    };
    let Branch { components, parts, .. } = branch;
    let outcomes = components.iter().zip(parts).zip(&row.outcomes);
    let blamed = outcomes.filter_map(|((component, part), outcome)| {
        let outcome = outcome.as_ref()?;
        let code = outcome.reason().map(|reason| reason.code).filter(|code| is_about_data(*code))?;
        if !has_response && is_of_response(code) {
            return None;
        }
        let checked = matches!(&component.scorer, Scorer::Rule(rule) if rule.reference_check().is_some());
        // The remarks on the reference say it better.
        if checked && matches!(code, Code::ReferenceUnparsable | Code::EmptyReference) {
            return None;
        }
        let fatal = match outcome {
            Outcome::Skipped(_) => part.required,
            _ => part.weight != 0.0,
        };
        Some(found(&component.name, if fatal { Severity::Fault } else { Severity::Doubt }, code))
    });
    blamed.collect()
}

/// The remarks of all components on one reference, or on each accepted answer of one.
fn remarks(plan: &Plan, reference: &Reference<'_>) -> Vec<Found> {
    match reference.form() {
        ReferenceForm::Text => text_remarks(plan, reference),
        ReferenceForm::Accepted => {
            reference.accepted().iter().flat_map(|one| text_remarks(plan, one)).collect()
        }
        ReferenceForm::Document => Vec::new(),
    }
}

fn text_remarks(plan: &Plan, reference: &str) -> Vec<Found> {
    let of = |(name, check): (&str, &dyn ReferenceCheck)| {
        let name = name.to_owned();
        check.remarks(reference).into_iter().map(move |Remark { severity, what, detail }| Found {
            component: name.clone(),
            severity,
            what,
            detail: detail.into_owned(),
            of_reference: true,
        })
    };
    reference_checks(plan).flat_map(of).collect()
}

fn seen(rollouts: &[Rollout<'static>], report: &Report) -> Vec<Seen> {
    let mut last: Option<(Reference<'_>, Vec<Found>)> = None;
    let runs_programs = solutions::are_wanted(&report.plan);
    let rows = rollouts.iter().zip(&report.rows).map(|(rollout, row)| {
        let mut found = missing(&report.plan, row, rollout.response != STAND_IN);
        let (field, reference) = rollout.compared_with().unzip();
        let text = reference.as_deref().map(str::to_owned);
        if let Some(reference) = reference {
            // The rows of a group mostly have one reference.
            let known = last.take().filter(|(known, _)| *known == reference);
            let remarked = || {
                let remarked = remarks(&report.plan, &reference);
                (reference, remarked)
            };
            found.extend(last.insert(known.unwrap_or_else(remarked)).1.iter().cloned());
        }
        let prompt =
            rollout.prompt.as_ref().map(|prompt| rapidhash::v3::rapidhash_v3(prompt.key().as_bytes()));
        Seen {
            id: rollout.id.as_deref().unwrap_or("").to_owned(),
            prompt,
            found,
            renames: other_names(&rollout.extra, rollout.prompt.is_some(), rollout.reference.is_some()),
            reference: text,
            is_scored: row.total.value().is_some()
                || row.total.cause().is_none_or(|cause| {
                    let code = cause.reason.code;
                    !is_about_data(code) || rollout.response == STAND_IN && is_of_response(code)
                }),
            field: field.flatten(),
            solution: runs_programs.then(|| solutions::of(rollout)).flatten().map(Box::new),
        }
    });
    rows.collect()
}

impl Sink for Findings {
    type Piece = Seen;

    fn renderer(&self) -> Renderer<Seen> {
        Arc::new(|rollouts, report| Ok(seen(rollouts, report)))
    }

    fn bytes(piece: &Seen) -> usize {
        let reference = piece.reference.as_ref().map_or(0, String::len);
        let solution = piece.solution.as_ref().map_or(0, |rollout| rollout.bytes());
        size_of::<Seen>() + piece.id.len() + reference + solution + piece.found.len() * size_of::<Found>()
    }

    fn write(&mut self, mut piece: Seen) -> Result<(), CliError> {
        self.rows += 1;
        self.unscored += u64::from(!piece.is_scored);
        if let Some(field) = piece.field {
            *self.fields.entry(field).or_default() += 1;
        }
        if self.renames.is_empty() {
            self.renames = std::mem::take(&mut piece.renames);
        }
        if let Some(mut solution) = piece.solution.take() {
            if self.solutions.len() < solutions::MAX_SOLUTIONS {
                solution.group = Some(self.rows.to_string().into());
                self.solutions.push(*solution);
            } else {
                self.more_solutions += 1;
            }
        }
        let hash = piece.reference.as_ref().map(|text| rapidhash::v3::rapidhash_v3(text.as_bytes()));
        let room = self.references.len() < MAX_REMEMBERED;
        let is_new = hash.is_some_and(|hash| room && self.references.insert(hash));
        let unequal = self.unequal(&piece);
        let found = std::mem::take(&mut piece.found).into_iter().chain(unequal);
        for one in found.filter(|one| is_new || !one.of_reference) {
            self.count(&piece.id, piece.reference.as_deref(), one)?;
        }
        Ok(())
    }
}
