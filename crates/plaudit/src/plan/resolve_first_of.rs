//! Resolves `first_of` components: reads their names, and looks the components up once all are there.

use super::first_of::FirstOf;
use super::resolve::Resolver;
use super::{Branch, Component, Scorer};
use crate::compose::Part;
use crate::recipe::file::FirstOfConfig;
use crate::recipe::{Node, RecipeError, check, did_you_mean};
use crate::reward::inline_schema;
use crate::rule::Rule;

/// What stands for the reward of such a component in tables.
const REWARD: &str = "first_of";

impl Resolver<'_> {
    /// A component that is made of others, whose places are not known yet.
    pub(super) fn first_of(&mut self, name: &str, node: &Node) -> Option<(Component, Part)> {
        let path = format!("components.{name}");
        self.refuse_component_name(name, &path, node);
        let before = self.errors.len();
        check(node, &inline_schema::<FirstOfConfig>(), &path, self.errors);
        if self.errors.len() > before {
            return None;
        }
        let written: FirstOfConfig = serde_json::from_value(node.to_value()).ok()?;
        let first = FirstOf::named(written.first_of);
        let component = Component {
            name: name.to_owned(),
            reward: REWARD.to_owned(),
            gate: None,
            floor: first.properties().floor,
            reads: None,
            per_turn: false,
            right_from: None,
            scorer: Scorer::FirstOf(first),
            asks: None,
        };
        Some((component, Part { weight: written.weight, required: written.required, normalize: None }))
    }

    /// Looks up the components that others are made of.
    pub(super) fn link_first_of(&mut self, branch: &mut Branch) {
        let mut taken: Vec<usize> = Vec::new();
        for at in 0..branch.components.len() {
            let Scorer::FirstOf(first) = &branch.components[at].scorer else { continue };
            match linked(branch, first, &mut taken) {
                Ok(first) => {
                    // Whether an answer is right is for all of them together to say.
                    if branch.right_from.is_some_and(|(place, _)| first.of.contains(&place)) {
                        branch.right_from = Some((at, first.range.max));
                    }
                    branch.components[at].floor = first.properties().floor;
                    branch.components[at].scorer = Scorer::FirstOf(first);
                }
                Err((message, fix)) => {
                    let path = format!("components.{}.first_of", branch.components[at].name);
                    let error = RecipeError::new("recipe.first_of", &*path, message).at(self.line(&path));
                    self.errors.push(match fix {
                        Some(fix) => error.fixed_by(fix),
                        None => error,
                    });
                }
            }
        }
    }
}

/// The same components with their places, or what is wrong with them and the likely fix.
fn linked(
    branch: &Branch,
    first: &FirstOf,
    taken: &mut Vec<usize>,
) -> Result<FirstOf, (String, Option<String>)> {
    let wrong = |message: String| Err((message, None));
    let (mut of, mut range) = (Vec::new(), None);
    for (place, name) in first.names.iter().enumerate() {
        let Some(at) = branch.components.iter().position(|component| component.name == *name) else {
            let names = branch.components.iter().map(|component| component.name.as_str());
            return Err((format!("there is no component {name:?}"), did_you_mean(name, names)));
        };
        let is_last = place + 1 == first.names.len();
        match &branch.components[at].scorer {
            Scorer::FirstOf(_) => return wrong(format!("{name:?} is made of others itself")),
            Scorer::Rule(Rule::Each(_)) | Scorer::Code(_) => {}
            Scorer::Rule(Rule::Group(_)) => {
                return wrong(format!("{name:?} compares a group, and the others would be missing from it"));
            }
            Scorer::Judged(_) | Scorer::Custom(_) if !is_last => {
                return wrong(format!("{name:?} is no rule: only the last may ask somebody"));
            }
            scorer if scorer.compares() => {
                return wrong(format!("{name:?} compares a group: write mode: pointwise"));
            }
            Scorer::Judged(_) | Scorer::Custom(_) => {}
        }
        if branch.parts[at].weight != 0.0 {
            return wrong(format!("{name:?} would count twice: give it weight: 0"));
        }
        if taken.contains(&at) {
            return wrong(format!("{name:?} stands in first_of twice"));
        }
        let own = branch.components[at].scorer.properties().range;
        if *range.get_or_insert(own) != own || !own.max.is_finite() {
            let message = format!(
                "the values of {name:?} go from {} to {}: all must have the same range, with a best value",
                own.min, own.max
            );
            return wrong(message);
        }
        taken.push(at);
        of.push(at);
    }
    let Some(range) = range else { return wrong("name at least two components".to_owned()) };
    Ok(FirstOf { names: first.names.clone(), of, range })
}
