//! Field guessing for a line without a response: likely prompt, response and reference by well-known names.

use super::{Fields, InputError, PROMPT, REFERENCE, RESPONSE, RESPONSES, path};
use crate::rollout::{FIELDS, REFERENCE_FIELDS};
use serde_json::{Map, Value};

/// Where the response of other data sets stands, the likeliest first.
const ANSWERS: [&str; 17] = [
    "completion",
    "output",
    "generated_text",
    "generation",
    "generated",
    "model_output",
    "model_response",
    "prediction",
    "pred",
    "response_text",
    "reply",
    "text",
    "content",
    "messages",
    "answer",
    "solution",
    "chosen",
];
/// Where the responses of a group stand.
const LISTS: [&str; 6] = ["completions", "outputs", "generations", "samples", "candidates", "answers"];
const PROMPTS: [&str; 6] = ["question", "query", "instruction", "problem", "input", "user"];
/// Where a reference may stand beside [`REFERENCE_FIELDS`]: names that say too little to be taken for one.
const PERHAPS: [&str; 18] = [
    "gold",
    "answers",
    "gold_answer",
    "correct_answer",
    "answerKey",
    "answer_key",
    "answer_idx",
    "answer_letter",
    "golden_answers",
    "ground_truth_answer",
    "gt_answer",
    "gt",
    "Answer",
    "Correct Answer",
    "correct",
    "cop",
    "label",
    "expected",
];

/// All names that a reference may have, the likeliest first.
fn references() -> impl Iterator<Item = &'static str> {
    REFERENCE_FIELDS.into_iter().chain(PERHAPS)
}

/// How many fields a message names, and how much of each, in characters.
const MAX_NAMED: usize = 8;
const MAX_SHOWN: usize = 40;

/// The error of a line without a response: what it has instead. `taken` says which fields were found and are no longer in
/// the map.
pub(super) fn missing_response(
    map: &Map<String, Value>,
    fields: &Fields,
    taken: [bool; FIELDS.len()],
) -> InputError {
    let found = fields.names.iter().zip(taken).filter(|(_, taken)| *taken).map(|(name, _)| &**name);
    let mut names: Vec<&str> = found.chain(map.keys().map(String::as_str)).collect();
    names.sort_unstable();
    let wanted = [RESPONSE, RESPONSES].into_iter().find(|field| fields.names[*field] != FIELDS[*field].name);
    let wanted =
        wanted.map_or_else(String::new, |field| format!(": there is no field {:?}", fields.names[field]));
    let present = match names.as_slice() {
        [] => "there are no fields at all".to_owned(),
        names => format!("the fields are {}", some_names(names.iter().copied())),
    };
    InputError {
        renames: renames(map, taken[PROMPT], taken[REFERENCE]),
        ..InputError::new("input.response", format!("response is missing{wanted}; {present}"))
    }
}

/// Which of these names of fields, or paths to them, may be that of the reference: the likeliest.
pub fn likely_reference<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let is_called = |name: &str, known: &str| name == known || name.rsplit('.').next() == Some(known);
    references().find_map(|known| names.clone().find(|name| is_called(name, known)))
}

/// Some names of fields, in quotes.
pub fn some_names<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.take(MAX_NAMED).map(quoted).collect::<Vec<_>>().join(", "))
}

/// A name in quotes, cut where it is long.
fn quoted(name: &str) -> String {
    match name.char_indices().nth(MAX_SHOWN) {
        None => format!("{name:?}"),
        Some((end, _)) => format!("{:?}…", &name[..end]),
    }
}

/// Fields with the names that they seem to have in a line without a response, such as `("response", "completion")`.
/// Nothing where no name of a response is known.
fn renames(line: &Map<String, Value>, has_prompt: bool, has_reference: bool) -> Vec<(&'static str, String)> {
    let text = |name: &str| match line.get(name)? {
        Value::String(_) => Some(name.to_owned()),
        messages => last_turn(name, messages),
    };
    let list = |name: &&str| line.get(*name).and_then(Value::as_array).is_some_and(|all| is_texts(all));
    let one = ANSWERS.into_iter().find_map(text).map(|name| ("response", name));
    let many = || LISTS.into_iter().find(list).map(|name| ("responses", name.to_owned()));
    let Some(response) = one.or_else(many) else { return Vec::new() };
    let mut others = names_beside(line, (has_prompt, has_reference), Some(&response.1));
    let at = others.iter().take_while(|(field, _)| *field == "prompt").count();
    others.insert(at, response);
    others
}

/// The prompt and the reference with the names that they seem to have in a line, unless it has them under their own.
pub fn other_names(
    line: &Map<String, Value>,
    has_prompt: bool,
    has_reference: bool,
) -> Vec<(&'static str, String)> {
    names_beside(line, (has_prompt, has_reference), None)
}

/// The same beside a response, whose name is none of theirs.
fn names_beside(
    line: &Map<String, Value>,
    (has_prompt, has_reference): (bool, bool),
    response: Option<&str>,
) -> Vec<(&'static str, String)> {
    let is_prompt = |name: &&str| line.get(*name).is_some_and(|value| value.is_string() || is_chat(value));
    let is_reference =
        |name: &&str| Some(*name) != response && path::find(line, name).is_some_and(|value| !value.is_null());
    let prompt = PROMPTS.into_iter().filter(|_| !has_prompt).find(is_prompt);
    let reference = references().filter(|_| !has_reference).find(is_reference);
    let prompt = prompt.map(|name| ("prompt", name.to_owned()));
    prompt.into_iter().chain(reference.map(|name| ("reference", name.to_owned()))).collect()
}

/// The path to the text of the last of some chat messages that stand under a name.
pub(super) fn last_turn(name: &str, messages: &Value) -> Option<String> {
    let last = messages.as_array().filter(|_| is_chat(messages))?.last()?;
    last.get("content")?.is_string().then(|| format!("{name}.-1.content"))
}

/// Whether a value is a list of chat messages.
pub(super) fn is_chat(value: &Value) -> bool {
    let message = |one: &Value| one.get("role").is_some_and(Value::is_string);
    value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(message))
}

fn is_texts(all: &[Value]) -> bool {
    !all.is_empty() && all.iter().all(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guessed(line: Value) -> String {
        let Value::Object(line) = line else { return String::new() };
        let names = renames(&line, false, false).into_iter();
        names.map(|(field, name)| format!("{field}={name}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_data_set_without_responses_has_other_names() {
        let Value::Object(line) = json!({"question": "q", "answer": 42}) else { return };
        let names = |prompt, reference| other_names(&line, prompt, reference);
        assert_eq!(
            names(false, false),
            [("prompt", "question".to_owned()), ("reference", "answer".to_owned())]
        );
        assert_eq!(names(true, false), [("reference", "answer".to_owned())]);
        assert_eq!(names(true, true), []);
    }

    #[test]
    fn likely_references_are_found_by_name() {
        let likely = |names: &[&'static str]| likely_reference(names.iter().copied());
        assert_eq!(likely(&["question", "label", "gold"]), Some("gold"));
        assert_eq!(likely(&["question", "reward_model.ground_truth"]), Some("reward_model.ground_truth"));
        assert_eq!(likely(&["extra_info.index", "extra_info.gold"]), Some("extra_info.gold"));
        assert_eq!(likely(&["choices.label", "answerKey"]), Some("answerKey"));
        assert_eq!(likely(&["question", "goal"]), None);
    }

    #[test]
    fn well_known_names_are_guessed() {
        let line = json!({"question": "q", "completion": "c", "answer": 42});
        assert_eq!(guessed(line), "prompt=question response=completion reference=answer");
        assert_eq!(guessed(json!({"question": "q", "answer": "a"})), "prompt=question response=answer");
        let line = json!({"outputs": ["a"], "reward_model": {"ground_truth": "g"}});
        assert_eq!(guessed(line), "responses=outputs reference=reward_model.ground_truth");
        let chat = json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]);
        assert_eq!(guessed(json!({"messages": chat})), "response=messages.-1.content");
        assert_eq!(guessed(json!({"messages": [], "output": 7, "question": "q"})), "");
    }
}
