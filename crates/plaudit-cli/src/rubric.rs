//! `plaudit rubric check`: looks at the wording and the weights of rubrics, and counts what asking about them takes.

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::files::Source;
use crate::rewards::print;
use crate::summary::{cut, many, percent, short, whole};
use crate::{GOOD, PARTLY};
use clap::{Args, Subcommand};
use plaudit::exec::Pool;
use plaudit::input::Fields;
use plaudit::judge::rubric_frame_bytes;
use plaudit::rubric::{self, Item, ItemRemark, RubricFormula};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  plaudit rubric check rubric.yaml
  plaudit rubric check --rows examples/rubrics.jsonl
  plaudit rubric check --rows healthbench.parquet --items-per-call 8";

/// How many unreadable rows and remarks are shown.
const SHOWN: usize = 20;
/// Bytes of a token, as `plaudit plan` counts.
const TOKEN: usize = 4;

/// Look at rubrics before a judge is asked about them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rubric {
    #[command(subcommand)]
    verb: RubricVerb,
}

#[derive(Debug, Subcommand)]
enum RubricVerb {
    /// Say which items repeat each other, ask two things, cannot be answered or cannot matter, and what they cost
    Check(RubricCheck),
}

#[derive(Debug, Args)]
struct RubricCheck {
    /// A file with one rubric: JSON, YAML or TOML
    #[arg(required_unless_present = "rows", conflicts_with = "rows")]
    file: Option<String>,
    /// A data set whose rows have rubrics: JSON lines or Parquet, with or without responses
    #[arg(long, value_name = "DATA")]
    rows: Option<String>,
    /// The field of the rows that holds the rubric
    #[arg(long, value_name = "NAME", requires = "rows")]
    field: Option<String>,
    /// The formula that makes one number of the verdicts
    #[arg(long, value_name = "NAME", default_value = "healthbench", value_parser = formula)]
    aggregate: RubricFormula,
    /// How many items a call asks about
    #[arg(long, value_name = "N", default_value_t = rubric::ITEMS_PER_CALL as u64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    items_per_call: u64,
    /// As data
    #[arg(long)]
    json: bool,
}

fn formula(text: &str) -> Result<RubricFormula, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| error.to_string())
}

/// What was found in rubrics.
#[derive(Default)]
struct RubricFindings {
    rows: u64,
    without: u64,
    /// By the place that rubrics stand in: how many.
    places: BTreeMap<String, u64>,
    unreadable: Vec<String>,
    unreadable_rows: u64,
    items: u64,
    negative: u64,
    choices: u64,
    most: usize,
    distinct: BTreeSet<u64>,
    calls: u64,
    bytes: u64,
    remarks: Vec<(String, ItemRemark, String)>,
    kinds: BTreeMap<&'static str, u64>,
}

impl Rubric {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let RubricVerb::Check(check) = &self.verb;
        check.run()
    }
}

impl RubricCheck {
    fn run(&self) -> Result<u8, CliError> {
        let mut found = RubricFindings::default();
        if let Some(file) = &self.file {
            let text = std::fs::read_to_string(file).map_err(|error| CliError::File(file.clone(), error))?;
            found.rows = 1;
            match rubric::parse_file(file, &text) {
                Ok(items) => found.add(self, "", file.clone(), &items),
                Err(error) => return Err(CliError::Arguments(format!("{file}: {error}"))),
            }
        } else if let Some(data) = &self.rows {
            self.read(data, &mut found)?;
        }
        let code = if found.unreadable_rows > 0 || !found.remarks.is_empty() { PARTLY } else { GOOD };
        match self.json {
            true => print(&format!("{:#}", found.data()))?,
            false => print(&found.text(self, Style::of_stdout()))?,
        };
        Ok(code)
    }

    fn read(&self, data: &str, found: &mut RubricFindings) -> Result<(), CliError> {
        let mut fields = Fields::own();
        // Most data sets have no responses yet.
        fields.stand_in_response("");
        for block in Source::open(data)?.read_ahead(&Arc::new(Pool::new(None)), fields)? {
            let Ok(parsed) = block?.parsed.recv() else { continue };
            for entry in parsed.entries {
                found.rows += 1;
                let row = match entry.rollouts {
                    Ok(mut parsed) => parsed.rollouts.next(),
                    Err(error) => {
                        found.refuse(entry.number, error.to_string());
                        continue;
                    }
                };
                let Some(row) = row else { continue };
                let read = match &self.field {
                    Some(field) => match rubric::at(&row.extra, field) {
                        Some(value) => {
                            rubric::from_value(value, field).map(|items| Some((field.as_str(), items)))
                        }
                        None => Ok(None),
                    },
                    None => rubric::find(&row.extra),
                };
                match read {
                    Ok(Some((place, items))) => {
                        found.add(self, place, format!("row {}", entry.number), &items)
                    }
                    Ok(None) => found.without += 1,
                    Err(error) => found.refuse(entry.number, error.to_string()),
                }
            }
        }
        Ok(())
    }
}

impl RubricFindings {
    fn refuse(&mut self, row: u64, error: String) {
        self.unreadable_rows += 1;
        if self.unreadable.len() < SHOWN {
            self.unreadable.push(format!("row {row}: {error}"));
        }
    }

    fn add(&mut self, check: &RubricCheck, place: &str, name: String, items: &[Item]) {
        if let Err(error) = check.aggregate.check(items) {
            self.unreadable_rows += 1;
            self.unreadable.push(format!("{name}: {error}"));
        }
        *self.places.entry(place.to_owned()).or_insert(0) += 1;
        self.items += items.len() as u64;
        self.most = self.most.max(items.len());
        self.negative += items.iter().filter(|item| item.negative).count() as u64;
        self.choices += items.iter().filter(|item| item.choices.is_some()).count() as u64;
        let hash = |item: &Item| {
            use std::hash::{DefaultHasher, Hash as _, Hasher as _};
            let mut hasher = DefaultHasher::new();
            item.criterion.hash(&mut hasher);
            hasher.finish()
        };
        self.distinct.extend(items.iter().map(hash));
        let calls = match check.aggregate {
            RubricFormula::Implicit => 1,
            _ => (items.len() as u64).div_ceil(check.items_per_call),
        };
        self.calls += calls;
        let bytes: usize = items.iter().map(|item| item.criterion.len()).sum();
        self.bytes += calls * rubric_frame_bytes() as u64 + bytes as u64;
        for remark in rubric::check(items, check.aggregate) {
            *self.kinds.entry(remark.kind).or_insert(0) += 1;
            if self.remarks.len() < SHOWN {
                let text = items[remark.item].criterion.clone();
                self.remarks.push((name.clone(), remark, text));
            }
        }
    }

    fn rubrics(&self) -> u64 {
        self.places.values().sum()
    }

    fn data(&self) -> Value {
        let remark = |(name, remark, text): &(String, ItemRemark, String)| json!({ "where": name, "item": remark.item + 1, "kind": remark.kind, "message": remark.message, "criterion": text });
        json!({
            "rows": self.rows, "rubrics": self.rubrics(), "without": self.without, "unreadable": self.unreadable_rows,
            "errors": self.unreadable, "places": self.places, "items": self.items, "most_items": self.most,
            "distinct_items": self.distinct.len(), "negative": self.negative, "with_choices": self.choices,
            "calls": self.calls, "tokens": self.bytes / TOKEN as u64, "remark_kinds": self.kinds,
            "remarks": self.remarks.iter().map(remark).collect::<Vec<_>>(),
        })
    }

    fn text(&self, check: &RubricCheck, style: Style) -> String {
        let mut lines = Vec::new();
        let (rubrics, items) = (self.rubrics(), self.items.max(1));
        let mut line =
            |name: &str, text: String| lines.push(format!("{}  {text}", style.bold(format!("{name:10}"))));
        if check.rows.is_some() {
            line(
                "rows",
                format!(
                    "{}: {} with a rubric, {} without, {} unreadable",
                    whole(self.rows),
                    whole(rubrics),
                    whole(self.without),
                    whole(self.unreadable_rows)
                ),
            );
            for (place, count) in &self.places {
                line("", format!("{} in `{}`", whole(*count), printable(place)));
            }
        }
        if rubrics > 0 {
            let mean = self.items as f64 / rubrics as f64;
            let each = if rubrics > 1 {
                format!(", {} a rubric, {} at most", short(mean), self.most)
            } else {
                String::new()
            };
            line(
                "items",
                format!(
                    "{}{each}; {} in different words",
                    whole(self.items),
                    whole(self.distinct.len() as u64)
                ),
            );
            line(
                "negative",
                format!("{} ({})", whole(self.negative), percent(self.negative as f64 / items as f64)),
            );
            if self.choices > 0 {
                line("choices", format!("{} have answers of their own", whole(self.choices)));
            }
            let calls = self.calls as f64 / rubrics as f64;
            let tokens = self.bytes as f64 / TOKEN as f64 / rubrics as f64;
            line(
                "cost",
                format!(
                    "{} a response, about {} prompt tokens beside its query and itself, at {} a call",
                    many(calls.round() as u64, "call"),
                    whole(tokens.round() as u64),
                    many(check.items_per_call, "item")
                ),
            );
            line(
                "",
                "`plaudit plan DATA --recipe RECIPE` counts it for your rollouts and your judge".to_owned(),
            );
        }
        for (name, remark, text) in &self.remarks {
            let head = format!("{}, item {}", printable(name), remark.item + 1);
            lines.push(format!(
                "{} {} {}",
                style.yellow(head),
                remark.message,
                style.dim(format!("({})", printable(&cut(text, 80))))
            ));
        }
        let all: u64 = self.kinds.values().sum();
        if all > self.remarks.len() as u64 {
            let kinds: Vec<String> =
                self.kinds.iter().map(|(kind, count)| format!("{kind} {}", whole(*count))).collect();
            lines.push(format!(
                "and {} more: of all, {}",
                whole(all - self.remarks.len() as u64),
                kinds.join(", ")
            ));
        }
        for error in &self.unreadable {
            lines.push(style.red(printable(error)));
        }
        if all == 0 && self.unreadable_rows == 0 && rubrics > 0 {
            lines.push("nothing to remark".to_owned());
        }
        lines.join("\n")
    }
}
