//! `plaudit recipe`: checks and shows recipes, and lists the shipped ones.

use crate::console::{Style, printable};
use crate::error::CliError;
use crate::imports::ImportArgs;
use crate::rewards::print;
use crate::scoring::{overridden, pair};
use crate::summary::short;
use crate::{FAILED, GOOD};
use clap::{Args, Subcommand};
use plaudit::compose::Combine;
use plaudit::plan::{Branch, Plan};
use plaudit::recipe::{self, RecipeError, closest};
use plaudit::reward::Range;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  plaudit recipe check my.yaml
  plaudit recipe check quickstart --set components.length.weight=0.5
  plaudit recipe show quickstart > my.yaml
  plaudit recipe schema > plaudit.schema.json";

/// Check, show and list recipes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Recipe {
    #[command(subcommand)]
    verb: RecipeVerb,
}

#[derive(Debug, Subcommand)]
enum RecipeVerb {
    /// Say what a recipe means, or everything that is wrong with it
    Check(RecipeCheck),
    /// Print the text of a shipped recipe
    Show {
        /// The name of the recipe
        name: String,
    },
    /// List the shipped recipes
    List,
    /// Print the JSON schema of recipes, for editors
    Schema,
}

#[derive(Debug, Args)]
struct RecipeCheck {
    /// The recipe: a file, or the name of a shipped one
    recipe: String,
    /// Override a value of the recipe, such as components.length.weight=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    imports: ImportArgs,
    /// As data
    #[arg(long)]
    json: bool,
}

impl Recipe {
    /// The modules that are imported first.
    pub(crate) fn imports(&self) -> Option<&ImportArgs> {
        match &self.verb {
            RecipeVerb::Check(check) => Some(&check.imports),
            RecipeVerb::Show { .. } | RecipeVerb::List | RecipeVerb::Schema => None,
        }
    }

    pub(crate) fn run(&self) -> Result<u8, CliError> {
        match &self.verb {
            RecipeVerb::Check(check) => check.run(),
            RecipeVerb::Show { name } => print(show(name)?.trim_end()),
            RecipeVerb::List => print(&list(Style::of_stdout())),
            RecipeVerb::Schema => print(&format!("{:#}", recipe::schema())),
        }
    }
}

impl RecipeCheck {
    fn run(&self) -> Result<u8, CliError> {
        let plan = overridden(&self.recipe, &self.set).and_then(|recipe| recipe.plan());
        if !self.json {
            return print(&meaning(&plan?, Style::of_stdout()));
        }
        let (value, code) = match &plan {
            Ok(plan) => (data(plan), GOOD),
            Err(errors) => (json!({ "ok": false, "errors": errors }), FAILED),
        };
        print(&format!("{value:#}"))?;
        Ok(code)
    }
}

fn show(name: &str) -> Result<&'static str, CliError> {
    let known = recipe::shipped().iter().find(|(known, _)| *known == name);
    known.map(|(_, text)| *text).ok_or_else(|| {
        let names = recipe::shipped().iter().map(|(known, _)| *known);
        let hint = match closest(name, names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "`plaudit recipe list` lists them".to_owned(),
        };
        CliError::Arguments(format!("there is no shipped recipe {name:?}; {hint}"))
    })
}

/// The shipped recipes with the first line of their head comment.
fn list(style: Style) -> String {
    let width = recipe::shipped().iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, text): &(&str, &str)| {
        let summary = text.lines().find_map(|line| line.strip_prefix('#')).unwrap_or("").trim();
        format!("{}  {summary}", style.bold(format!("{name:width$}")))
    };
    recipe::shipped().iter().map(row).collect::<Vec<_>>().join("\n")
}

/// What the total can be, where every component applies: as the components give it, or a gate that closes.
fn total_range(branch: &Branch) -> Range {
    let (mut min, mut max, mut weights) = (0.0, 0.0, 0.0);
    for (component, part) in
        branch.components.iter().zip(&branch.parts).filter(|(_, part)| part.weight != 0.0)
    {
        let range = component.scorer.properties().range;
        let ends = (part.weight * range.min, part.weight * range.max);
        min += ends.0.min(ends.1);
        max += ends.0.max(ends.1);
        weights += part.weight;
    }
    let (min, max) = match branch.combine {
        Combine::Sum => (min, max),
        Combine::Mean if weights < 0.0 => (max / weights, min / weights),
        Combine::Mean => (min / weights, max / weights),
    };
    let gates = branch.components.iter().filter_map(|component| component.gate?.total);
    let (min, max) = gates.fold((min, max), |(min, max), total| (min.min(total), max.max(total)));
    Range::new(min, max)
}

/// What a recipe means, as `plaudit recipe check` prints it.
pub(crate) fn meaning(plan: &Plan, style: Style) -> String {
    let mut lines = vec![format!("ok: {}", style.bold(printable(&plan.name)))];
    for (index, branch) in plan.branches.iter().enumerate() {
        if branch.components.is_empty() {
            continue;
        }
        if index > 0 {
            lines.push(format!("routed to {}", style.bold(printable(&branch.name))));
        }
        lines.extend(rows(branch, style));
    }
    let warning =
        |warning: &RecipeError| style.yellow(format!("warning: {}", printable(&warning.to_string())));
    lines.extend(plan.warnings.iter().map(warning));
    lines.join("\n")
}

fn rows(branch: &Branch, style: Style) -> Vec<String> {
    let names: Vec<String> = branch.components.iter().map(|component| printable(&component.name)).collect();
    let width = |words: &mut dyn Iterator<Item = usize>| words.max().unwrap_or(0).max(5);
    let name_width = width(&mut names.iter().map(|name| name.chars().count()));
    let reward_width = width(&mut branch.components.iter().map(|component| component.reward.len()));
    let row = |((component, part), name): ((&plaudit::plan::Component, &plaudit::compose::Part), &String)| {
        let range = component.scorer.properties().range;
        let role = match (&component.gate, part.weight) {
            (Some(gate), _) => match gate.total {
                Some(total) => format!("  below {} the total is {}", short(gate.min), short(total)),
                None => format!("  gate below {}", short(gate.min)),
            },
            (None, 0.0) => "  measured, not added".to_owned(),
            _ => String::new(),
        };
        let reward = style.dim(format!("{:reward_width$}", component.reward));
        format!(
            "  {name:name_width$}  {reward}  weight {:<6}  {} … {}{role}",
            short(part.weight),
            short(range.min),
            short(range.max)
        )
    };
    let mut lines: Vec<String> = branch.components.iter().zip(&branch.parts).zip(&names).map(row).collect();
    let range = total_range(branch);
    let combine = match branch.combine {
        Combine::Sum => "sum",
        Combine::Mean => "weighted mean",
    };
    let total = format!("{:name_width$}", "total");
    let reward = style.dim(format!("{combine:reward_width$}"));
    lines.push(format!(
        "  {}  {reward}  {:13}  {} … {}",
        style.bold(total),
        "",
        short(range.min),
        short(range.max)
    ));
    lines
}

fn data(plan: &Plan) -> Value {
    let branch = |branch: &Branch| {
        let components: Vec<Value> = (branch.components.iter().zip(&branch.parts))
            .map(|(component, part)| {
                let range = component.scorer.properties().range;
                json!({
                    "name": component.name,
                    "reward": component.reward,
                    "weight": part.weight,
                    "required": part.required,
                    "range": { "min": range.min, "max": range.max },
                    "floor": component.floor,
                    "gate": component.gate.map(|gate| json!({ "min": gate.min, "total": gate.total })),
                })
            })
            .collect();
        let range = total_range(branch);
        json!({
            "name": branch.name,
            "combine": branch.combine,
            "components": components,
            "total": { "min": range.min, "max": range.max },
        })
    };
    let branches: Vec<Value> = plan.branches.iter().map(branch).collect();
    json!({ "ok": true, "name": plan.name, "branches": branches, "warnings": plan.warnings })
}
