//! Reads the rubric of a row, in every shape that data sets publish, into the normal form, or says where it cannot be read.
//!
//! | Shape | Where | An item |
//! |---|---|---|
//! | HealthBench | `rubrics`; for verl `reward_model.rubrics`, `extra_info.reward_model.rubrics` | `criterion`, `points`, `tags` |
//! | Rubrics as Rewards | `rubric` | `description`, `weight`, `title` |
//! | open-instruct | `ground_truth`, as JSON text too: `rubrics`, `rubrics_types` | `description`, `rubric_item` or `Ingredient`; `weight`, `title` |
//! | NeMo-Gym multichallenge | `rubric`, `metadata.rubric` | `question`, `pass_criteria`, `weight` |
//! | NeMo-Gym verifif | `llm_judge` | `content`, `pass_criteria`, `source`, `is_misalignment_check`, `uid` |
//! | AdvancedIF for verl | `reward_model.ground_truth`, `extra_info.prompt_metadata.rubrics` | a question |
//! | tinker-cookbook | `rubric_items` | `rubric_str` |
//! | verifiers | a file: `criteria` | `name`, `text`, `weight`, `choices` |
//! | one's own | any of these | `criterion`, `weight`, `negative`, `choices`, `tags`, or a text |

use super::Item;
use crate::input::strict;
use crate::text::document::{self, DocumentFormat};
use serde_json::{Map, Value};
use std::fmt;

/// The most items of a rubric.
const MAX_ITEMS: usize = 1000;

/// Why a rubric cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RubricError {
    /// What is wrong.
    pub error: &'static str,
    /// Its place, such as `rubrics[2].points`.
    pub place: String,
}

impl fmt::Display for RubricError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => out.write_str(self.error),
            place => write!(out, "{place}: {}", self.error),
        }
    }
}

type ReadResult<T> = Result<T, RubricError>;

fn wrong<T>(error: &'static str, place: impl Into<String>) -> ReadResult<T> {
    Err(RubricError { error, place: place.into() })
}

/// How a data set writes the items of a rubric.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// The keys of the text, the first of which is named where all are missing.
    text: &'static [&'static str],
    /// The key of the weight, where items have one.
    weight: Option<&'static str>,
    /// Whether an item without a weight has the weight 1.
    default_weight: bool,
    /// Whether weights are not below zero.
    positive: bool,
    /// Keys whose values are tags, with the name of the tag.
    tags: &'static [&'static str],
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Own,
    HealthBench,
    RubricsAsRewards,
    OpenInstruct,
    Multichallenge,
    VerifIf,
    Questions,
    Tinker,
    Verifiers,
}

const PLAIN: Shape = Shape {
    text: &["criterion"],
    weight: Some("weight"),
    default_weight: true,
    positive: false,
    tags: &[],
    kind: Kind::Own,
};
const HEALTHBENCH: Shape =
    Shape { weight: Some("points"), default_weight: false, kind: Kind::HealthBench, ..PLAIN };
const RUBRICS_AS_REWARDS: Shape = Shape {
    text: &["description"],
    default_weight: false,
    tags: &["title"],
    kind: Kind::RubricsAsRewards,
    ..PLAIN
};
const OPEN_INSTRUCT: Shape = Shape {
    text: &["description", "rubric_item", "Ingredient"],
    tags: &["title"],
    kind: Kind::OpenInstruct,
    ..PLAIN
};
const MULTICHALLENGE: Shape =
    Shape { text: &["question"], positive: true, kind: Kind::Multichallenge, ..PLAIN };
const VERIFIF: Shape =
    Shape { text: &["content"], weight: None, tags: &["source", "uid"], kind: Kind::VerifIf, ..PLAIN };
const QUESTIONS: Shape = Shape { weight: None, kind: Kind::Questions, ..PLAIN };
const TINKER: Shape = Shape { text: &["rubric_str"], weight: None, kind: Kind::Tinker, ..PLAIN };
const VERIFIERS: Shape =
    Shape { text: &["text"], positive: true, tags: &["name"], kind: Kind::Verifiers, ..PLAIN };

/// Where rows have rubrics, and in which shape.
const PLACES: [(&str, Shape); 10] = [
    ("rubrics", HEALTHBENCH),
    ("rubric", RUBRICS_AS_REWARDS),
    ("metadata.rubric", MULTICHALLENGE),
    ("llm_judge", VERIFIF),
    ("rubric_items", TINKER),
    ("criteria", VERIFIERS),
    ("reward_model.rubrics", HEALTHBENCH),
    ("extra_info.reward_model.rubrics", HEALTHBENCH),
    ("extra_info.rubrics", HEALTHBENCH),
    ("extra_info.rubric", RUBRICS_AS_REWARDS),
];

/// The columns that may be rubrics by themselves, which an adapter has to hand on.
pub fn columns() -> impl Iterator<Item = &'static str> {
    PLACES.iter().map(|(path, _)| *path).filter(|path| !path.contains('.'))
}

/// The rubric of a row by its other fields, wherever data sets put one, and where that was; none where it has none.
pub fn find(row: &Map<String, Value>) -> ReadResult<Option<(&'static str, Vec<Item>)>> {
    for (path, shape) in PLACES {
        let Some(value) = at(row, path) else { continue };
        // A list that is empty in one place may be full in the other that the same data set has.
        let other = (path == "rubric").then(|| at(row, "metadata.rubric")).flatten();
        if is_empty(value) && other.is_some_and(|other| !is_empty(other)) {
            continue;
        }
        return items(value, path, shape).map(|items| Some((path, items)));
    }
    let named = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or("").to_ascii_lowercase();
    let questions = named("data_source").contains("advancedif");
    if let Some(value) = at(row, "reward_model.ground_truth")
        && (questions || holds_rubrics(value))
    {
        let path = "reward_model.ground_truth";
        return labelled(value, path, QUESTIONS).map(|found| found.map(|items| (path, items)));
    }
    let path = "extra_info.prompt_metadata.rubrics";
    if let Some(value) = at(row, path) {
        return items(value, path, QUESTIONS).map(|items| Some((path, items)));
    }
    for path in ["ground_truth", "label", "extra_info.ground_truth"] {
        if let Some(value) = at(row, path)
            && (named("dataset") == "rubric" || holds_rubrics(value))
        {
            return labelled(value, path, OPEN_INSTRUCT).map(|found| found.map(|items| (path, items)));
        }
    }
    Ok(None)
}

/// The rubric that a reference holds, where it is one rather than an answer.
pub(crate) fn in_reference(reference: Option<&Value>) -> ReadResult<Option<Vec<Item>>> {
    match reference.filter(|value| holds_rubrics(value)) {
        Some(value) => labelled(value, "reference", OPEN_INSTRUCT),
        None => Ok(None),
    }
}

/// The rubric that a value is, which stands at a place: a list of items, an object that holds one, or either as JSON text.
pub fn from_value(value: &Value, place: &str) -> ReadResult<Vec<Item>> {
    let value = json(value, place)?;
    match &value {
        Value::Object(map) => {
            let inner = ["rubrics", "rubric", "criteria", "items"];
            let Some((key, list)) = inner.iter().find_map(|key| Some((*key, map.get(*key)?))) else {
                return wrong("no rubric", join(place, "rubrics"));
            };
            let shape = if key == "criteria" { VERIFIERS } else { PLAIN };
            let mut items = items(list, &join(place, key), shape)?;
            tag_by_types(&mut items, map.get("rubrics_types"));
            Ok(items)
        }
        _ => items(&value, place, PLAIN),
    }
}

/// The rubric that a file holds, in JSON, YAML or TOML as its name says.
pub fn parse_file(name: &str, text: &str) -> ReadResult<Vec<Item>> {
    let unreadable = || RubricError { error: "unreadable file", place: String::new() };
    let format = match name.rsplit('.').next() {
        Some("toml") => DocumentFormat::Toml,
        Some("yaml" | "yml") => DocumentFormat::Yaml,
        _ => DocumentFormat::Json,
    };
    let value = document::value_of(text, format).ok_or_else(unreadable)?;
    match &value {
        Value::Object(_) => from_value(&value, ""),
        Value::Array(list) => items(
            &value,
            "",
            if list.iter().any(|item| item.get("text").is_some()) { VERIFIERS } else { PLAIN },
        ),
        _ => Err(unreadable()),
    }
}

/// What a path leads to that is not nothing.
pub fn at<'v>(row: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let mut keys = path.split('.');
    let first = row.get(keys.next()?)?;
    let found = keys.try_fold(first, |value, key| value.get(key))?;
    let blank =
        matches!(found, Value::Null) || matches!(found, Value::String(text) if text.trim().is_empty());
    (!blank).then_some(found)
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Array(list) if list.is_empty())
}

fn join(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

/// Whether a label is an object with a rubric, rather than an answer: also as JSON text, and where that is broken.
fn holds_rubrics(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("rubrics"),
        Value::String(text) => text.trim_start().starts_with('{') && text.contains("\"rubrics\""),
        Value::Array(list) => matches!(list.as_slice(), [one] if holds_rubrics(one)),
        _ => false,
    }
}

/// The rubric in a label: an object with `rubrics`, a list of one, or JSON text of either; bare questions may be a list.
fn labelled(value: &Value, place: &str, shape: Shape) -> ReadResult<Option<Vec<Item>>> {
    let mut value = json(value, place)?;
    if shape.kind == Kind::OpenInstruct
        && let Value::Array(list) = &mut value
        && let [one] = list.as_mut_slice()
    {
        value = json(&one.take(), place)?;
    }
    match &value {
        Value::Object(map) => match map.get("rubrics").filter(|list| !list.is_null()) {
            Some(list) => {
                let mut items = items(list, &join(place, "rubrics"), shape)?;
                tag_by_types(&mut items, map.get("rubrics_types"));
                Ok(Some(items))
            }
            None => Ok(None),
        },
        Value::Array(_) if shape.kind == Kind::Questions => items(&value, place, shape).map(Some),
        _ => wrong("not an object", place),
    }
}

/// JSON text as what it says; anything else as it is.
fn json(value: &Value, place: &str) -> ReadResult<Value> {
    match value {
        Value::String(text) => strict::read(text).or_else(|_| wrong("not JSON", place)),
        other => Ok(other.clone()),
    }
}

/// Items of a list, or of the JSON text of one.
fn items(value: &Value, place: &str, shape: Shape) -> ReadResult<Vec<Item>> {
    let value = json(value, place)?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(map) if map.contains_key("criteria") || map.contains_key("rubrics") => {
            return from_value(&value, place);
        }
        _ => return wrong("not a list", place),
    };
    if list.is_empty() {
        return wrong("empty rubric", place);
    }
    if list.len() > MAX_ITEMS {
        return wrong("more than 1000 items", place);
    }
    let shape = shape_of(list, shape);
    let items = list.iter().enumerate().map(|(at, item)| read_item(item, &format!("{place}[{at}]"), shape));
    let items: Vec<Item> = items.collect::<ReadResult<_>>()?;
    if shape.kind == Kind::Verifiers {
        if items.iter().all(|item| item.weight <= 0.0) {
            return wrong("no positive weight", place);
        }
        for (at, item) in items.iter().enumerate() {
            if items[..at].iter().any(|other| other.tags == item.tags) {
                return wrong("name twice", format!("{place}[{at}].name"));
            }
        }
    }
    Ok(items)
}

/// The shape that the items have, which need not be that of their place.
fn shape_of(list: &[Value], usual: Shape) -> Shape {
    let has = |key: &str| list.iter().any(|item| item.get(key).is_some());
    match usual.kind {
        // A file of verifiers and questions have their own place.
        Kind::Verifiers | Kind::VerifIf | Kind::Tinker => usual,
        Kind::Questions if list.iter().any(Value::is_object) => shape_of(list, PLAIN),
        Kind::Questions => usual,
        _ if list.iter().all(Value::is_string) => QUESTIONS,
        _ if has("points") => HEALTHBENCH,
        _ if has("question") || (has("pass_criteria") && !has("content")) => MULTICHALLENGE,
        _ if has("content") => VERIFIF,
        _ if has("rubric_str") => TINKER,
        _ if has("rubric_item") || has("Ingredient") => OPEN_INSTRUCT,
        _ if has("description") && usual.kind == Kind::RubricsAsRewards => RUBRICS_AS_REWARDS,
        _ if has("description") => OPEN_INSTRUCT,
        _ if has("text") => VERIFIERS,
        Kind::HealthBench | Kind::Own if has("criterion") => PLAIN,
        _ if has("criterion") => PLAIN,
        _ => usual,
    }
}

fn read_item(item: &Value, place: &str, shape: Shape) -> ReadResult<Item> {
    let map = match item {
        Value::Object(map) => map,
        _ if shape.kind == Kind::Questions || (shape.kind == Kind::Own && item.is_string()) => {
            let Value::String(text) = item else { return wrong("criterion not text", place) };
            return Ok(Item {
                criterion: not_blank(text, place.to_owned())?,
                weight: 1.0,
                negative: false,
                choices: None,
                tags: Vec::new(),
            });
        }
        _ => return wrong("item not an object", place),
    };
    if shape.kind == Kind::Verifiers {
        match map.get("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => {}
            Some(Value::Null) | None => return wrong("name missing", join(place, "name")),
            Some(_) => return wrong("name not text", join(place, "name")),
        }
    }
    let criterion = text_of(map, place, shape.text)?;
    let weight = match shape.weight {
        Some(key) => weight_of(map, place, key, shape)?,
        None => 1.0,
    };
    let choices = match shape.kind {
        Kind::Verifiers => {
            Some(choices_of(map, place)?.unwrap_or_else(|| super::YES_NO.map(str::to_owned).to_vec()))
        }
        Kind::Own => choices_of(map, place)?,
        _ => None,
    };
    let negative = match shape.kind {
        Kind::Multichallenge => passes_by_no(map, place)?,
        Kind::VerifIf => passes_by_no(map, place)? != is_turned(map, place)?,
        Kind::Own => match map.get("negative") {
            None | Some(Value::Null) => weight < 0.0,
            Some(Value::Bool(negative)) => *negative || weight < 0.0,
            Some(_) => return wrong("negative not a boolean", join(place, "negative")),
        },
        _ => weight < 0.0,
    };
    Ok(Item { criterion, weight, negative, choices, tags: tags_of(map, shape) })
}

fn not_blank(text: &str, place: String) -> ReadResult<String> {
    if text.trim().is_empty() { wrong("criterion blank", place) } else { Ok(text.to_owned()) }
}

/// The text of an item, in the first of some keys that has one.
fn text_of(map: &Map<String, Value>, place: &str, keys: &[&'static str]) -> ReadResult<String> {
    let given: Vec<(&str, &Value)> =
        keys.iter().filter_map(|key| Some((*key, map.get(*key).filter(|value| !value.is_null())?))).collect();
    let filled = given.iter().find(|(_, value)| value.as_str().is_some_and(|text| !text.trim().is_empty()));
    match (filled, given.first()) {
        (Some((_, Value::String(text))), _) => Ok(text.clone()),
        (_, Some((key, Value::String(_)))) => wrong("criterion blank", join(place, key)),
        (_, Some((key, _))) => wrong("criterion not text", join(place, key)),
        (_, None) => wrong("criterion missing", join(place, keys.first().copied().unwrap_or("criterion"))),
    }
}

fn weight_of(map: &Map<String, Value>, place: &str, key: &str, shape: Shape) -> ReadResult<f64> {
    let number = match map.get(key) {
        None | Some(Value::Null) if shape.default_weight => return Ok(1.0),
        None | Some(Value::Null) => return wrong("weight missing", join(place, key)),
        Some(Value::Number(number)) => number.as_f64(),
        // A text that is a JSON number, and nothing that only looks like one.
        Some(Value::String(text)) => match strict::read(text.trim()) {
            Ok(Value::Number(number)) => number.as_f64(),
            _ => None,
        },
        Some(_) => None,
    };
    match number.filter(|number| number.is_finite()) {
        None => wrong("weight not a number", join(place, key)),
        Some(number) if number < 0.0 && shape.positive => wrong("negative weight", join(place, key)),
        Some(number) => Ok(number),
    }
}

/// Two different answers or more, worst to best.
fn choices_of(map: &Map<String, Value>, place: &str) -> ReadResult<Option<Vec<String>>> {
    let refuse = || wrong("choices", join(place, "choices"));
    let list = match map.get("choices") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => return refuse(),
    };
    let mut choices: Vec<String> = Vec::new();
    for choice in list {
        match choice {
            Value::String(text)
                if !text.trim().is_empty() && !choices.iter().any(|one| one.trim() == text.trim()) =>
            {
                choices.push(text.clone());
            }
            _ => return refuse(),
        }
    }
    if choices.len() < 2 { refuse() } else { Ok(Some(choices)) }
}

/// Whether an item passes where the judge says no.
fn passes_by_no(map: &Map<String, Value>, place: &str) -> ReadResult<bool> {
    match map.get("pass_criteria") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::String(word)) if word.trim().eq_ignore_ascii_case("yes") => Ok(false),
        Some(Value::String(word)) if word.trim().eq_ignore_ascii_case("no") => Ok(true),
        Some(_) => wrong("pass_criteria unknown", join(place, "pass_criteria")),
    }
}

/// Whether a user's instruction is one that the response must not follow, which turns its item round.
fn is_turned(map: &Map<String, Value>, place: &str) -> ReadResult<bool> {
    let user = match map.get("source").and_then(Value::as_str) {
        Some("user") => true,
        Some("system") => false,
        _ => return wrong("source unknown", join(place, "source")),
    };
    match map.get("is_misalignment_check") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(checks)) => Ok(user && *checks),
        Some(_) => wrong("is_misalignment_check not a boolean", join(place, "is_misalignment_check")),
    }
}

/// The categories with which descriptions in Rubrics as Rewards begin.
const CATEGORIES: [&str; 4] = ["Essential", "Important", "Optional", "Pitfall"];

fn tags_of(map: &Map<String, Value>, shape: Shape) -> Vec<String> {
    let mut tags = Vec::new();
    if shape.kind == Kind::RubricsAsRewards {
        let text = map.get("description").and_then(Value::as_str).unwrap_or("");
        let category = CATEGORIES.iter().find(|category| {
            text.strip_prefix(**category).is_some_and(|rest| rest.starts_with(" Criteria:"))
        });
        tags.extend(category.map(|category| format!("category:{category}")));
    }
    for key in shape.tags {
        tags.extend(map.get(*key).and_then(word).map(|word| format!("{key}:{word}")));
    }
    if matches!(shape.kind, Kind::Own | Kind::HealthBench) {
        match map.get("tags") {
            Some(Value::Array(list)) => tags.extend(list.iter().filter_map(word)),
            Some(Value::Object(named)) => {
                let named = named.iter().filter_map(|(key, value)| Some(format!("{key}:{}", word(value)?)));
                tags.extend(named);
            }
            Some(Value::String(tag)) => tags.push(tag.clone()),
            _ => {}
        }
    }
    tags
}

/// The word that a tag is; none for nothing.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Marks each item with its type, where a label lists them: whether it was there before the training or came up in it.
fn tag_by_types(items: &mut [Item], types: Option<&Value>) {
    let types = types.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (item, kind) in items.iter_mut().zip(types) {
        if let Some(kind) = word(kind) {
            item.tags.insert(0, format!("type:{kind}"));
        }
    }
}
