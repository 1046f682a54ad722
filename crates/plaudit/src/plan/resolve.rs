//! Resolver: turns a recipe into a plan. Checks every key, loads every reward, follows every route, and reports all errors
//! at once.

use super::{Branch, Component, GroupPolicy, Plan, Route, Scorer};
use crate::compose::{Combine, Part};
use crate::exec::{DURATION_SYNTAX, parse_duration};
use crate::judge::config::ResolvedJudge;
use crate::judge::rewards::principle_sets::preset;
use crate::recipe::file::{self, ComponentConfig, RecipeFile, ReferencePart};
use crate::recipe::{Node, Recipe, RecipeError, RecipeErrors, Tree, check, closest, did_you_mean};
use crate::registry::{RewardEntry, missing_feature};
use crate::rule::Rule;
use crate::rule::custom::CustomKind;
use crate::tokenizer::ResourceCache;
use serde_json::{Map, Value};
use std::time::Duration;

impl Recipe {
    /// What the recipe means, or everything that is wrong with it.
    pub fn plan(&self) -> Result<Plan, RecipeErrors> {
        self.plan_with(&[])
    }

    /// The same, with rewards of the caller for this recipe alone. They come before those of the registry.
    pub fn plan_with(&self, custom: &[CustomKind]) -> Result<Plan, RecipeErrors> {
        let (mut found, mut warnings) = (Vec::new(), Vec::new());
        let mut judges = Vec::new();
        let mut cache = ResourceCache::at(self.folder.clone());
        let resolver = Resolver {
            recipe: self,
            errors: &mut found,
            warnings: &mut warnings,
            cache: &mut cache,
            judges: &mut judges,
            custom,
        };
        let resolved = resolver.plan();
        RecipeErrors::none(found)?;
        resolved.ok_or_else(|| RecipeError::new("recipe.schema", "", "the recipe could not be read").into())
    }
}

/// The keys that hold one.
const DURATIONS: [&str; 4] = ["timeout", "quiet", "connect_timeout", "patience"];

/// The most components of a recipe, and the most recipes that one routes to.
const MAX_COMPONENTS: usize = 256;

pub(super) struct Resolver<'r> {
    recipe: &'r Recipe,
    pub(super) errors: &'r mut Vec<RecipeError>,
    /// What can be done, but should be thought about.
    pub(super) warnings: &'r mut Vec<RecipeError>,
    cache: &'r mut ResourceCache,
    /// The judges of all recipes so far; where two have one name, the first is meant.
    pub(super) judges: &'r mut Vec<ResolvedJudge>,
    /// The custom rewards for this recipe and those that it routes to.
    custom: &'r [CustomKind],
}

impl<'r> Resolver<'r> {
    fn plan(mut self) -> Option<Plan> {
        let written = self.outline()?;
        let own = self.branch(&written);
        self.refuse_name(&written);
        self.refuse_idle(&written, &own);
        let timeout = self.duration("groups.timeout", &written.groups.timeout);
        let quiet = written.groups.quiet.as_ref().map(|quiet| self.duration("groups.quiet", quiet));
        let named = self.recipe.node.get("components").is_some_and(|all| all.entries().next().is_some());
        if own.components.is_empty() && written.route.is_none() && !named {
            let message = "the sum of nothing is no reward: name at least one component";
            self.add("recipe.no_components", "components", message);
        }
        let (branches, route) = self.routes(&written, own);
        Some(Plan {
            name: branches.first()?.name.clone(),
            branches,
            route,
            judges: std::mem::take(self.judges),
            validates: written.validation.reference == ReferencePart::Include,
            invalid_value: written.invalid_value,
            groups: GroupPolicy {
                parallel: written.groups.parallel,
                timeout: timeout?,
                same_size: written.groups.same_size,
                partial: written.groups.partial,
                quiet: quiet.flatten(),
                remember: written.groups.remember,
            },
            longest_response: written.limits.response_bytes,
            warnings: std::mem::take(self.warnings),
        })
    }

    /// The recipe without its components' own parameters. Keys with an error are reported and left out, so that the
    /// errors of all others are found as well.
    fn outline(&mut self) -> Option<RecipeFile> {
        let before = self.errors.len();
        check(&self.recipe.node, &file::outline(), "", self.errors);
        for error in &mut self.errors[before..] {
            let key = error.path.rsplit_once('.').map_or(error.path.as_str(), |(_, key)| key);
            if error.code == "recipe.type" && DURATIONS.contains(&key) {
                error.fix = Some(DURATION_SYNTAX.to_owned());
            }
        }
        let wrong: Vec<&str> = self.errors[before..].iter().map(|error| error.path.as_str()).collect();
        let whole = self.recipe.node.to_value();
        let without = |paths: &[&str]| {
            let mut value = whole.clone();
            for path in paths {
                remove(&mut value, path);
            }
            serde_json::from_value(value).ok()
        };
        let tops: Vec<&str> = wrong.iter().filter_map(|path| path.split('.').next()).collect();
        without(&wrong).or_else(|| without(&tops))
    }

    fn branch(&mut self, written: &RecipeFile) -> Branch {
        let mut branch = Branch {
            name: written.name.clone().unwrap_or_else(|| self.recipe.name.clone()),
            components: Vec::new(),
            parts: Vec::new(),
            combine: written.combine,
            right_from: None,
            turn_rewards: written.turn_rewards,
        };
        self.define(written);
        let defined: Vec<String> = written.judges.keys().cloned().collect();
        let before = self.errors.len();
        let mut named = false;
        if let Some(components) = self.recipe.node.get("components") {
            if components.entries().count() > MAX_COMPONENTS {
                self.add(
                    "recipe.too_many",
                    "components",
                    format!("a recipe has at most {MAX_COMPONENTS} components"),
                );
                return branch;
            }
            for (key, node) in components.entries() {
                let made = match node.get("first_of") {
                    Some(_) => self.first_of(&key.name, node),
                    None => self.component(&key.name, node, &defined),
                };
                if let Some((component, part)) = made {
                    let right_from = component.right_from.map(|value| (branch.components.len(), value));
                    // Who was named by the author comes before who says so by itself.
                    branch.right_from = match node.get("right_from") {
                        Some(_) if !named => right_from.inspect(|_| named = true),
                        _ => branch.right_from.or(right_from),
                    };
                    branch.components.push(component);
                    branch.parts.push(part);
                }
            }
        }
        if self.errors.len() == before {
            self.link_first_of(&mut branch);
        }
        if self.errors.len() == before && !branch.parts.is_empty() {
            self.refuse_weightless(&branch);
        }
        branch
    }

    pub(super) fn refuse_component_name(&mut self, name: &str, path: &str, node: &Node) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
            let message = "a component's name is made of letters, digits, _ and -, at most 64";
            self.errors.push(RecipeError::new("recipe.name", path, message).at(node.line));
        }
    }

    fn refuse_weightless(&mut self, branch: &Branch) {
        let settles = |component: &Component| component.gate.is_some_and(|gate| gate.total.is_some());
        let weights = branch.parts.iter().map(|part| part.weight);
        let message = if weights.clone().all(|weight| weight == 0.0) && !branch.components.iter().any(settles)
        {
            "all weights are 0, so no rollout would get a total"
        } else if branch.combine == Combine::Mean && weights.sum::<f64>() == 0.0 {
            "the weights add up to 0, so their mean does not exist"
        } else {
            return;
        };
        self.add("recipe.zero_weight", "components", message);
    }

    fn component(&mut self, name: &str, node: &Node, defined: &[String]) -> Option<(Component, Part)> {
        let path = format!("components.{name}");
        self.refuse_component_name(name, &path, node);
        let entry = self.entry(&path, node)?;
        let before = self.errors.len();
        check(node, &file::component_schema(entry), &path, self.errors);
        if self.errors.len() > before {
            return None;
        }
        let Value::Object(all) = node.to_value() else { return None };
        let reserved = file::reserved();
        let (common, mut parameters): (Map<String, Value>, Map<String, Value>) =
            all.into_iter().partition(|(key, _)| reserved.contains(key));
        if let Some((mode, set)) = common.get("reward").and_then(Value::as_str).and_then(preset) {
            parameters.entry("mode").or_insert_with(|| mode.into());
            parameters.entry("principles").or_insert_with(|| vec![set].into());
        }
        let reads = read_scope(entry, &parameters);
        let common: ComponentConfig = serde_json::from_value(Value::Object(common)).ok()?;
        let scorer = match entry.build(Value::Object(parameters), self.cache) {
            Ok(scorer) => scorer,
            Err(refusals) => {
                for refusal in refusals {
                    let line = node.get(refusal.key).map_or(node.line, |node| node.line);
                    let path =
                        if refusal.key.is_empty() { path.clone() } else { format!("{path}.{}", refusal.key) };
                    self.errors.push(RecipeError::new("recipe.value", path, refusal.message).at(line));
                }
                return None;
            }
        };
        if let Scorer::Judged(reward) = &scorer
            && let Some(warning) = reward.warning()
        {
            let line = node.get(warning.key).map_or(node.line, |node| node.line);
            let path = format!("{path}.{}", warning.key);
            self.warnings.push(RecipeError::new("recipe.no_fence", path, warning.message).at(line));
        }
        if common.gate.is_some() && !matches!(scorer, Scorer::Rule(Rule::Each(_)) | Scorer::Code(_)) {
            let message = match scorer {
                Scorer::Judged(_) => "a judged reward cannot be a gate, because gates decide who is judged",
                Scorer::Custom(_) => {
                    "a reward of the caller's cannot be a gate, because gates decide who is asked"
                }
                _ => "a reward that compares a group cannot be a gate, because gates decide who is compared",
            };
            let error = RecipeError::new("recipe.gate", format!("{path}.gate"), message);
            self.errors.push(error.at(node.line));
            return None;
        }
        if common.per_turn && !matches!(scorer, Scorer::Rule(Rule::Each(_))) {
            let message = "only a rule that scores one rollout at a time can score the state after each turn";
            let error = RecipeError::new("recipe.value", format!("{path}.per_turn"), message);
            self.errors.push(error.at(node.line));
            return None;
        }
        let component = Component {
            name: name.to_owned(),
            reward: entry.name().to_owned(),
            gate: common.gate,
            floor: common.floor.unwrap_or_else(|| scorer.properties().floor),
            reads,
            per_turn: common.per_turn,
            right_from: common
                .right_from
                .or_else(|| entry.correctness().then(|| scorer.properties().range.max)),
            asks: self.asks(&path, node, &scorer, defined)?,
            scorer,
        };
        Some((
            component,
            Part { weight: common.weight, required: common.required, normalize: common.normalize },
        ))
    }

    fn entry(&mut self, path: &str, node: &Node) -> Option<RewardEntry<'r>> {
        let Some(reward) = node.get("reward") else {
            let (code, message) = match node.value {
                Tree::Map(_) => ("recipe.missing_key", "reward is missing"),
                _ => ("recipe.type", "a map with the key reward is wanted"),
            };
            let fix = self.neighbour(path);
            let fix =
                fix.unwrap_or_else(|| "write it like { reward: reasoning_format, weight: 0.1 }".to_owned());
            self.errors.push(RecipeError::new(code, path, message).at(node.line).fixed_by(fix));
            return None;
        };
        let path = format!("{path}.reward");
        let Tree::Text(name) = &reward.value else {
            let error = RecipeError::new("recipe.type", path, "the name of a reward is wanted");
            self.errors.push(error.at(reward.line));
            return None;
        };
        let entry = RewardEntry::find_among(name, self.custom)
            .or_else(|| preset(name).and_then(|_| RewardEntry::find("principle")));
        if entry.is_none() {
            if let Some(feature) = missing_feature(name) {
                self.errors.push(left_out(path, name, feature).at(reward.line));
                return None;
            }
            let custom = self.custom.iter().map(|kind| kind.name.as_str());
            let fix = did_you_mean(name, custom).or_else(|| did_you_mean(name, RewardEntry::names()));
            let fix = fix.unwrap_or_else(|| {
                "`plaudit rewards` lists them; one of your own is registered in Python (the command: --import MODULE; verl: imports)"
                    .to_owned()
            });
            let error =
                RecipeError::new("recipe.unknown_reward", path, format!("there is no reward {name:?}"));
            self.errors.push(error.at(reward.line).fixed_by(fix));
        }
        entry
    }

    /// The recipe's name stands in logs, tables and the names of runs.
    fn refuse_name(&mut self, written: &RecipeFile) {
        let Some(name) = &written.name else { return };
        let invisible = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        };
        if name.trim() != name || name.is_empty() || name.chars().count() > 64 || name.contains(invisible) {
            self.add("recipe.name", "name", "a recipe's name has 1 to 64 visible characters");
        }
    }

    /// Refuses a validation that nothing would carry out.
    fn refuse_idle(&mut self, written: &RecipeFile, own: &Branch) {
        let compares = |component: &Component| matches!(&component.scorer, Scorer::Judged(reward) if !reward.is_scalar());
        let include = written.validation.reference == ReferencePart::Include && written.route.is_none();
        if include && !own.components.is_empty() && !own.components.iter().any(compares) {
            let message = "no component asks a judge, so nothing can be compared with the reference";
            self.add("recipe.validation", "validation.reference", message);
        }
    }

    /// The recipe's own branch and those of the recipes that it routes to.
    fn routes(&mut self, written: &RecipeFile, own: Branch) -> (Vec<Branch>, Option<Route>) {
        let own_name = own.name.clone();
        let has_own = !own.components.is_empty();
        let mut branches = vec![own];
        let Some(route) = &written.route else { return (branches, None) };
        let keys = |field: &String| {
            let rest = field.strip_prefix("extra.").filter(|rest| !rest.split('.').any(str::is_empty))?;
            Some(rest.split('.').map(str::to_owned).collect())
        };
        let by: Option<Vec<Vec<String>>> = route.by.all().iter().map(keys).collect();
        let by = by.filter(|by| !by.is_empty());
        if by.is_none() {
            let error =
                RecipeError::new("recipe.route", "route.by", "rollouts are routed by a field of extra");
            let fix = "write it like extra.data_source";
            self.errors.push(error.at(self.line("route.by")).fixed_by(fix));
        }
        if route.cases.len() > MAX_COMPONENTS {
            self.add(
                "recipe.too_many",
                "route.cases",
                format!("a recipe routes to at most {MAX_COMPONENTS} others"),
            );
            return (branches, None);
        }
        let mut known: Vec<(String, usize)> = vec![(own_name, 0)];
        let mut cases = Vec::new();
        for (value, name) in &route.cases {
            if let Some(at) = self.follow(&format!("route.cases.{value}"), name, &mut known, &mut branches) {
                cases.push((value.clone(), at));
            }
        }
        let default = match &route.default {
            Some(name) => self.follow("route.default", name, &mut known, &mut branches),
            None => has_own.then_some(0),
        };
        (branches, by.map(|by| Route { by, cases, default }))
    }

    /// The place of the recipe of that name among the branches, which it joins where it is new.
    fn follow(
        &mut self,
        path: &str,
        name: &str,
        known: &mut Vec<(String, usize)>,
        branches: &mut Vec<Branch>,
    ) -> Option<usize> {
        if let Some((_, at)) = known.iter().find(|(seen, _)| seen == name) {
            return Some(*at);
        }
        let other = match self.recipe.beside(name) {
            Ok(other) => other,
            Err(errors) => {
                self.adopt(path, name, errors);
                return None;
            }
        };
        let (mut found, mut warnings) = (Vec::new(), Vec::new());
        let mut inner = Resolver {
            recipe: &other,
            errors: &mut found,
            warnings: &mut warnings,
            cache: &mut *self.cache,
            judges: &mut *self.judges,
            custom: self.custom,
        };
        let branch = inner.outline().and_then(|written| {
            if written.route.is_some() {
                inner.add("recipe.route_depth", "route", "a recipe that is routed to cannot route again");
                return None;
            }
            let branch = inner.branch(&written);
            if branch.components.is_empty() && inner.errors.is_empty() {
                inner.add("recipe.no_components", "components", "name at least one component");
            }
            Some(branch)
        });
        if let Err(errors) = RecipeErrors::none(found) {
            self.adopt(path, name, errors);
            return None;
        }
        let line = self.line(path);
        self.warnings.extend(warnings.into_iter().map(|inner| nested_error(path, line, name, inner)));
        known.push((name.to_owned(), branches.len()));
        branches.push(branch?);
        Some(branches.len() - 1)
    }

    /// Reports the errors of another recipe at the place that names it.
    fn adopt(&mut self, path: &str, name: &str, errors: RecipeErrors) {
        let line = self.line(path);
        self.errors.extend(errors.into_iter().map(|inner| nested_error(path, line, name, inner)));
    }

    pub(super) fn duration(&mut self, path: &str, text: &str) -> Option<Duration> {
        let duration = parse_duration(text);
        if duration.is_none() {
            let message = format!("{text:?} is not a duration above 0 and of at most a day");
            let error = RecipeError::new("recipe.duration", path, message).at(self.line(path));
            self.errors.push(error.fixed_by(DURATION_SYNTAX));
        }
        duration
    }

    /// The key beside this one that was probably meant, as where an override misspells it and makes a new one.
    pub(super) fn neighbour(&self, path: &str) -> Option<String> {
        let (parent, name) = path.rsplit_once('.')?;
        let siblings = self.recipe.node.get(parent)?.entries().map(|(key, _)| key.name.as_str());
        let others: Vec<&str> = siblings.filter(|other| *other != name).collect();
        closest(name, others).map(|near| format!("did you mean {parent}.{near}?"))
    }

    pub(super) fn line(&self, path: &str) -> Option<u32> {
        let mut node = &self.recipe.node;
        for step in path.split('.') {
            node = node.get(step)?;
        }
        node.line
    }

    fn add(&mut self, code: &'static str, path: &str, message: impl Into<String>) {
        self.errors.push(RecipeError::new(code, path, message).at(self.line(path)));
    }
}

/// An error of another recipe, at the place that names it.
fn nested_error(path: &str, line: Option<u32>, name: &str, inner: RecipeError) -> RecipeError {
    let message = if inner.code == "recipe.not_found" {
        inner.message.clone()
    } else {
        let place = inner.line.map_or_else(String::new, |line| format!(" line {line}"));
        format!("in {name}{place} {}: {}", inner.path, inner.message)
    };
    RecipeError { path: path.to_owned(), line, message, ..inner }
}

/// Takes the key at a dotted path out.
fn remove(value: &mut Value, path: &str) {
    let (parents, key) = path.rsplit_once('.').unwrap_or(("", path));
    let parent =
        parents.split('.').filter(|step| !step.is_empty()).try_fold(value, |value, step| value.get_mut(step));
    if let Some(Value::Object(map)) = parent {
        map.remove(key);
    }
}

/// The error for a reward that this build lacks.
fn left_out(path: String, name: &str, feature: &str) -> RecipeError {
    let message = format!("this plaudit was built without the reward {name:?}");
    let code = if feature == "code" { "sandbox.unavailable" } else { "recipe.missing_feature" };
    RecipeError::new(code, path, message).fixed_by(format!("build it with the feature {feature}"))
}

/// The scope that a component reads: what the recipe says, or the reward's own default; none where it has no choice.
fn read_scope(entry: RewardEntry<'_>, parameters: &Map<String, Value>) -> Option<String> {
    let schema = entry.schema();
    let key = ["scope", "analyze_scope"].into_iter().find(|key| schema["properties"][*key].is_object())?;
    let usual = || schema["properties"][key]["default"].as_str();
    parameters.get(key).and_then(Value::as_str).or_else(usual).map(str::to_owned)
}
