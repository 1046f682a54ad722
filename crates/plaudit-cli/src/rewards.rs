//! `plaudit rewards`: lists the rewards and shows the page of one.

use crate::GOOD;
use crate::console::Style;
use crate::error::CliError;
use crate::files::Output;
use crate::imports::ImportArgs;
use crate::summary::short;
use clap::Args;
use plaudit::recipe::did_you_mean;
use plaudit::registry::RewardEntry;
use plaudit::reward::{Properties, object_of};
use serde_json::{Value, json};
use std::io::Write as _;

const EXAMPLES: &str = "\
Examples:
  plaudit rewards
  plaudit rewards length_penalty
  plaudit rewards length_penalty --json";

/// List the rewards, or explain one: what it scores, how it can be gamed, its parameters
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rewards {
    /// The reward to explain
    name: Option<String>,
    /// As data, with the JSON schema of the parameters
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
}

impl Rewards {
    pub(crate) fn run(&self) -> Result<u8, CliError> {
        let text = match (&self.name, self.json) {
            (None, false) => list(Style::of_stdout()),
            (None, true) => format!("{:#}", Value::Array(RewardEntry::all().map(data).collect())),
            (Some(name), false) => page(find(name)?, Style::of_stdout()),
            (Some(name), true) => format!("{:#}", data(find(name)?)),
        };
        print(&text)
    }
}

/// Writes text to stdout, and all is well.
pub(crate) fn print(text: &str) -> Result<u8, CliError> {
    let mut out = Output::open("-")?;
    writeln!(out, "{text}").map_err(|error| CliError::writing("stdout", error))?;
    out.finish().map(|()| GOOD)
}

fn find(name: &str) -> Result<RewardEntry<'static>, CliError> {
    RewardEntry::find(name).ok_or_else(|| {
        let hint = did_you_mean(name, RewardEntry::names());
        let hint = hint.unwrap_or_else(|| "`plaudit rewards` lists them".to_owned());
        CliError::Arguments(format!("there is no reward {name:?}; {hint}"))
    })
}

fn list(style: Style) -> String {
    let width = RewardEntry::all().map(|entry| entry.name().len()).max().unwrap_or(0);
    let row = |entry: RewardEntry<'static>| {
        let group = entry.with_defaults().is_some_and(|scorer| scorer.compares());
        let needs = [(entry.needs_reference(), "reference"), (group, "group")];
        let needs: Vec<&str> =
            needs.into_iter().filter(|(needed, _)| *needed).map(|(_, word)| word).collect();
        let needs = if needs.is_empty() { String::new() } else { format!(" [{}]", needs.join(", ")) };
        let also = match entry.aliases() {
            [] => String::new(),
            aliases => format!(" (also: {})", aliases.join(", ")),
        };
        let summary = wrap(&format!("{}{needs}{also}", entry.page().0), 100 - width - 2);
        let summary = summary.join(&format!("\n{:indent$}", "", indent = width + 2));
        format!("{}  {summary}", style.bold(format!("{:width$}", entry.name())))
    };
    let mut lines = Vec::new();
    for heading in HEADINGS {
        let rows: Vec<String> =
            RewardEntry::all().filter(|entry| heading_of(*entry) == heading).map(row).collect();
        if !rows.is_empty() {
            lines.push(style.dim(heading));
            lines.extend(rows);
            lines.push(String::new());
        }
    }
    let hint = "[reference]: needs a reference; [group]: compares the rollouts of a group. `plaudit rewards NAME` explains one.";
    lines.extend(wrap(hint, 100).iter().map(|line| style.dim(line)));
    lines.join("\n")
}

/// The headings of the list, by what a reward needs.
const HEADINGS: [&str; 4] = ["Rules", "Programs, which run in a sandbox", "Judges", "Of your own"];

fn heading_of(entry: RewardEntry<'_>) -> &'static str {
    match entry {
        RewardEntry::Rule(_) => HEADINGS[0],
        RewardEntry::Code(_) => HEADINGS[1],
        RewardEntry::Judged(_) => HEADINGS[2],
        RewardEntry::Custom(_) => HEADINGS[3],
    }
}

fn page(entry: RewardEntry<'_>, style: Style) -> String {
    let mut lines = vec![style.bold(entry.name()), String::new()];
    lines.extend(entry.page().1.lines().map(|line| match line.strip_prefix("## ") {
        Some(heading) => style.bold(heading),
        None => line.to_owned(),
    }));
    lines.push(String::new());
    lines.push(style.bold("Parameters"));
    let schema = entry.schema();
    let parameters: Vec<Parameter> = parameters(&schema, &schema);
    if parameters.is_empty() {
        lines.push("none".to_owned());
    }
    lines.extend(parameter_lines(&parameters, 2, style));
    lines.push(String::new());
    match entry.with_defaults().map(|scorer| scorer.properties()) {
        Some(Properties { range, floor, .. }) => lines.push(format!(
            "{}  {} to {} with the default parameters; {} for a response that breaks a limit",
            style.bold("Range"),
            short(range.min),
            short(range.max),
            short(floor)
        )),
        None => lines.push(format!("{}  depends on the parameters", style.bold("Range"))),
    }
    if !entry.aliases().is_empty() {
        lines.push(format!("{}  {}", style.bold("Also known as"), entry.aliases().join(", ")));
    }
    lines.join("\n")
}

/// Parameters with their types and meanings, and below an object those of its keys.
fn parameter_lines(parameters: &[Parameter], indent: usize, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let heads: Vec<String> = parameters.iter().map(|one| format!("{}{}", one.name, one.default)).collect();
    let width = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
    for (one, head) in parameters.iter().zip(&heads) {
        let padding = width - head.chars().count();
        let name = format!("{:indent$}{}{}{:padding$}  ", "", style.blue(&one.name), one.default, "");
        let beside = " ".repeat(width + indent + 2);
        for (at, kind) in wrap(&one.kind, 98 - indent - width.min(60)).iter().enumerate() {
            lines.push(format!("{}{}", if at == 0 { &name } else { &beside }, style.dim(kind)));
        }
        let text = wrap(&one.description, 96 - indent).into_iter().filter(|line| !line.is_empty());
        lines.extend(text.map(|line| format!("{:deeper$}{line}", "", deeper = indent + 4)));
        lines.extend(parameter_lines(&one.keys, indent + 4, style));
    }
    lines
}

/// A reward as data.
pub(crate) fn data(entry: RewardEntry<'_>) -> Value {
    json!(plaudit_serve::RewardReply::new(entry))
}

/// One parameter, in words.
struct Parameter {
    name: String,
    kind: String,
    default: String,
    description: String,
    /// The keys of an object.
    keys: Vec<Parameter>,
}

/// The parameters of an object's schema, whose definitions are in the root.
fn parameters(schema: &Value, root: &Value) -> Vec<Parameter> {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let parameter = |(name, own): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: type_of(own, root),
        keys: object_of(own, root).map_or_else(Vec::new, |object| parameters(object, root)),
        default: match own.get("default") {
            Some(default) => format!(" = {default}"),
            None if required(name) => " (required)".to_owned(),
            None => String::new(),
        },
        description: own["description"].as_str().unwrap_or("").replace('\n', " "),
    };
    schema["properties"].as_object().into_iter().flatten().map(parameter).collect()
}

/// The type of a parameter: its choices where there are some, and its bounds.
fn type_of(own: &Value, root: &Value) -> String {
    let own = match own["$ref"].as_str().and_then(|path| root.pointer(path.trim_start_matches('#'))) {
        Some(definition) => definition,
        None => own,
    };
    if let Some(choices) = own["enum"].as_array() {
        return choices.iter().map(plain).collect::<Vec<_>>().join(" | ");
    }
    if let Some(only) = own.get("const") {
        return plain(only);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(kinds) = own[key].as_array() {
            return kinds.iter().map(|kind| type_of(kind, root)).collect::<Vec<_>>().join(" | ");
        }
    }
    let word = |name: &str| match name {
        "integer" => "whole number".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "true | false".to_owned(),
        "array" => format!("list of {}", type_of(&own["items"], root)),
        other => other.to_owned(),
    };
    let kind = match &own["type"] {
        Value::String(name) => word(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).map(word).collect::<Vec<_>>().join(" | ")
        }
        _ => "any".to_owned(),
    };
    match (own["minimum"].as_f64(), own["maximum"].as_f64()) {
        (Some(min), Some(max)) => format!("{kind} {} … {}", short(min), short(max)),
        (Some(min), None) => format!("{kind} ≥ {}", short(min)),
        (None, Some(max)) => format!("{kind} ≤ {}", short(max)),
        (None, None) => kind,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Breaks text into lines between words.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
