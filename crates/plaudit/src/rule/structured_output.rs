//! `structured_output`: whether a response is a document that a JSON schema allows.

use super::json_schema::{CompiledSchema, Documents, Reading, SchemaChecker, SchemaError, made_strict};
use super::row_cache::RowCache;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::{Arguments, Conversation, ToolCall};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::document::{self, Dialect, DocumentError, DocumentFormat};
use crate::text::scope::Scope;
use plaudit_text::exact;
use plaudit_text::{after_thought, fenced_blocks, is_blank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// 1 where the response is a document that the JSON schema allows, else 0.
///
/// ## What it scores
/// The document is what follows the thinking: the last fenced block of the format, or else the last that names none, or else all of
/// the text, in which nothing may stand beside the document. It is read as JSON, YAML, TOML, CSV or XML and checked against the schema.
///
/// | | Where it is looked for |
/// |---|---|
/// | schema | `schema` of the component, else `extra.schema_str`, `extra.schema`, `extra.json_schema` or `extra.response_format` as in OpenAI's API; an object, or its text |
/// | format | `format` of the component, else `extra.schema_type`, else JSON |
/// | place | with `extra.response_mode: tool_call` the arguments of the only tool call, whose name must be `extra.tool_name`; where `extra.tool_payload_key` is there, what they hold under it |
/// | other schemas | `schemas` of the component, else `extra.schemas`: an object with the schemas that `$ref` may lead to by their URIs |
///
/// Of JSON Schema it checks all keywords of drafts 4, 6, 7, 2019-09 and 2020-12, and `nullable` of OpenAPI. `$schema` says the draft; without it
/// the newest counts, and what only older ones have is read as they do. References lead to a place, an anchor or an `$id` in the schema,
/// or to one of the other schemas: nothing is fetched. Patterns are those of ECMA-262. `format` describes and restricts nothing, unless
/// `formats: assert` asks for it, or the schema's own meta-schema does. Of `hostname` and `idn-hostname` the form is checked, and not the
/// tables of IDNA. Unknown formats restrict nothing. A schema with a keyword that is none of these, with a reference that leads nowhere, or
/// with a pattern that needs look-around, is not checked: the rollout is skipped with `input.schema_unsupported`. With `strict` all
/// properties are required and no others allowed, whatever the schema says.
///
/// The info has `parsed` (1 where the syntax is right) and `why`: `valid`, `schema` (with `keyword`, and `path`, a JSON pointer to the
/// value), `syntax`, `no_document` (nothing there), and of tool calls `no_call`, `several_calls`, `wrong_tool`, `arguments` and `payload`. All but
/// the first get 0. Dates, infinities and NaN, which YAML and TOML have and JSON has not, break any schema. A document above 256 KiB (of YAML 128), 128
/// levels or 30,000 values, and one that takes too long to check, get the floor with `model.too_complex`; thinking that never ends gets it
/// with `format.unclosed_think`. A rollout without a schema is skipped, and one whose schema cannot be read is invalid.
///
/// ## When to use it
/// For extraction, function calling and any other task whose answer a program reads. A valid document may be empty of meaning, so add a
/// reward for its contents. `semantics: published` reproduces NeMo-Gym's `structured_outputs`.
///
/// ## How it can be gamed
/// By the least that the schema allows: empty lists, empty texts, and no optional property. Write `required`, `minItems` and `minLength`
/// into the schema, or set `strict`. Prose around a fenced block is not looked at: `fences: none` wants the bare document.
///
/// ## Example
/// ```yaml
/// valid: { reward: structured_output, weight: 1.0, format: yaml, schema: { type: object, required: [name] } }
/// ```
///
/// ## References
/// NeMo-Gym `structured_outputs`; JSON Schema 2020-12.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StructuredOutput {
    /// The JSON schema. Without it the row's own counts.
    pub schema: Option<Value>,
    /// The format of the document. Without it `extra.schema_type` says it, and else it is JSON.
    pub format: Option<DocumentFormat>,
    /// Whether every property of the schema is required and no other allowed.
    pub strict: bool,
    /// Other schemas that `$ref` may lead to, by their URI. Without them those of the row count. Nothing is fetched.
    pub schemas: BTreeMap<String, Value>,
    /// Whether `format` of the schema restricts.
    pub formats: SchemaFormats,
    /// Where the document stands in the text.
    pub fences: DocumentFences,
    /// How documents are read and schemas taken.
    pub semantics: DocumentSemantics,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for StructuredOutput {
    fn default() -> Self {
        Self {
            schema: None,
            format: None,
            strict: false,
            schemas: BTreeMap::new(),
            formats: SchemaFormats::Annotate,
            fences: DocumentFences::Optional,
            semantics: DocumentSemantics::Corrected,
            scope: Scope::Final,
        }
    }
}

/// What `format` of a schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SchemaFormats {
    /// It describes and restricts nothing.
    Annotate,
    /// A text must have the format, where that is one of draft 2020-12.
    Assert,
}

/// Where a document stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DocumentFences {
    /// In the last fenced block of the format, or else it is the text.
    Optional,
    /// In the last fenced block of the format.
    Required,
    /// The text is the document.
    None,
}

/// How documents are read and schemas taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DocumentSemantics {
    /// Documents by their standards, schemas as they are.
    Corrected,
    /// As NeMo-Gym's `structured_outputs` does: the whole text is the document, schemas are made strict but for what stands in lists,
    /// and NaN is a number.
    Published,
}

/// A schema that was looked through, as the component takes it.
struct LoadedSchema {
    schema: Value,
    /// Nothing where the origin breaks the schema by making it strict.
    compiled: Option<CompiledSchema>,
}

/// How much of a path is shown.
const SHOWN: usize = 200;

type Schemas = RowCache<Result<Arc<LoadedSchema>, Outcome>>;

impl Reward<Rule> for StructuredOutput {
    const NAME: &'static str = "structured_output";
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["parsed"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let own = self.schema.as_ref().map(|schema| {
            let text = schema.as_str().map_or_else(|| schema.to_string(), str::to_owned);
            self.load(&text, &self.schemas).map_err(|outcome| {
                let message = outcome.reason().map_or("", |reason| &reason.message).to_owned();
                ParamError::new("schema", message)
            })
        });
        let own = own.transpose()?.map(Arc::new);
        let schemas = Schemas::new();
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(own.as_ref(), &schemas, sample)))
    }
}

/// What a response has in place of a valid document.
enum Fault {
    Word(&'static str),
    Schema(String, &'static str),
}

impl StructuredOutput {
    fn score(
        &self,
        own: Option<&Arc<LoadedSchema>>,
        schemas: &Schemas,
        sample: &RuleInput<'_>,
    ) -> Result<Outcome, Outcome> {
        let loaded = match own {
            Some(own) => Arc::clone(own),
            None => self.row_schema(schemas, sample)?,
        };
        let format = self.format(sample)?;
        let called = match field(sample, "response_mode")? {
            None | Some("text") => false,
            Some("tool_call") => true,
            Some(_) => return Err(bad_row("The row's response_mode is neither text nor tool_call.")),
        };
        let found = match called {
            true => self
                .payload(sample)?
                .map_or_else(|word| Ok(Err(Fault::Word(word))), |value| self.check(&loaded, &value))?,
            false => self.document(&loaded, format, sample)?,
        };
        let (value, why, parsed) = match &found {
            Ok(()) => (1.0, "valid", 1),
            Err(Fault::Schema(..)) => (0.0, "schema", 1),
            Err(Fault::Word(word)) => (0.0, *word, 0),
        };
        let mut info = Info::of([("why", Fact::Word(why)), ("parsed", Fact::Count(parsed))]);
        if let Err(Fault::Schema(path, keyword)) = found {
            info.push("path", Fact::Text(path));
            info.push("keyword", Fact::Word(keyword));
        }
        Ok(Outcome::scored(value, info))
    }

    /// The schema that a row brings, with other schemas that it refers to.
    fn row_schema(&self, schemas: &Schemas, sample: &RuleInput<'_>) -> Result<Arc<LoadedSchema>, Outcome> {
        let written = row_schema(sample)?;
        let others =
            sample.extra.get("schemas").filter(|others| !others.is_null() && self.schemas.is_empty());
        let Some(others) = others else {
            return schemas.get(written, |written| self.load(written, &self.schemas).map(Arc::new));
        };
        let key = Cow::Owned([&*written, "\n", &exact::write(others)].concat());
        schemas.get(key, |_| {
            let others = Documents::deserialize(others)
                .map_err(|_| bad_row("The row's schemas are no schemas by their URIs."))?;
            self.load(&written, &others).map(Arc::new)
        })
    }

    fn load(&self, written: &str, documents: &Documents) -> Result<LoadedSchema, Outcome> {
        let schema: Value = serde_json::from_str(written)
            .map_err(|error| bad_row(format!("The schema is not JSON: {error}.")))?;
        let unsupported = |failure| match failure {
            SchemaError::Unsupported(what) => {
                let message = format!("The schema's keyword {what:?}, or its value here, is not checked.");
                Outcome::skipped(Reason::new(Code::SchemaUnsupported, message))
            }
            SchemaError::Wrong(_) | SchemaError::TooMuch => bad_row("The schema cannot be used."),
        };
        let types = |schema: &Value| !matches!(schema, Value::Object(_) | Value::Bool(_));
        if types(&schema) {
            return Err(bad_row("The schema is no object."));
        }
        let published = self.semantics == DocumentSemantics::Published;
        let formats = self.formats == SchemaFormats::Assert;
        let reading = Reading { python: published, formats, documents: Some(documents) };
        // Whether a schema can be checked is told of what was written.
        let compiled = CompiledSchema::read(&schema, reading).map_err(unsupported)?;
        let schema = match (published, self.strict) {
            (true, _) => made_strict_as_nemo_gym(schema),
            (false, true) => made_strict(schema),
            (false, false) => return Ok(LoadedSchema { schema, compiled: Some(compiled) }),
        };
        Ok(LoadedSchema { compiled: CompiledSchema::read(&schema, reading).ok(), schema })
    }

    fn format(&self, sample: &RuleInput<'_>) -> Result<DocumentFormat, Outcome> {
        match (self.format, field(sample, "schema_type")?) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(DocumentFormat::Json),
            (None, Some(format)) => DocumentFormat::deserialize(Value::from(format.to_ascii_lowercase()))
                .map_err(|_| bad_row("The row's schema_type is no format that is read.")),
        }
    }

    fn document(
        &self,
        loaded: &LoadedSchema,
        format: DocumentFormat,
        sample: &RuleInput<'_>,
    ) -> Result<Result<(), Fault>, Outcome> {
        let text = self.scope.of(sample.text);
        let published = self.semantics == DocumentSemantics::Published;
        let text = match published {
            true => text,
            false => after_thought(text).ok_or_else(|| Outcome::floored(0.0, Code::UnclosedThink))?,
        };
        let Some(document) = self.located(text, format).filter(|text| !is_blank(text)) else {
            return Ok(Err(Fault::Word("no_document")));
        };
        let dialect = if published { Dialect::Python } else { Dialect::Standard };
        let value = match document::read(&document, format, dialect) {
            Ok(value) => value,
            Err(DocumentError::Syntax) => return Ok(Err(Fault::Word("syntax"))),
            Err(DocumentError::Foreign) => return Ok(Err(Fault::Schema(String::new(), "type"))),
            Err(DocumentError::TooLarge) => {
                let message = "The document is larger, deeper or has more values than is read.";
                return Err(Outcome::floored(0.0, Reason::new(Code::ModelTooComplex, message)));
            }
        };
        let value = match format.is_untyped() {
            true => document::typed(value, &loaded.schema, format, dialect),
            false => value,
        };
        self.check(loaded, &value)
    }

    /// The part of a text that is the document.
    fn located<'t>(&self, text: &'t str, format: DocumentFormat) -> Option<Cow<'t, str>> {
        if self.semantics == DocumentSemantics::Published || self.fences == DocumentFences::None {
            return Some(Cow::Borrowed(text));
        }
        let blocks = fenced_blocks(text, format.fences());
        let block = blocks.iter().rfind(|block| block.named).or_else(|| blocks.last());
        match (block, self.fences) {
            (Some(block), _) => Some(block.code()),
            (None, DocumentFences::Optional) => Some(Cow::Borrowed(text)),
            (None, _) => None,
        }
    }

    /// What the only tool call of a response holds.
    fn payload(&self, sample: &RuleInput<'_>) -> Result<Result<Value, &'static str>, Outcome> {
        let (name, key) = (field(sample, "tool_name")?, field(sample, "tool_payload_key")?);
        let calls: Vec<&ToolCall> =
            sample.text.conversation().into_iter().flat_map(Conversation::calls).collect();
        let call = match calls[..] {
            [] => return Ok(Err("no_call")),
            [call] => call,
            _ => return Ok(Err("several_calls")),
        };
        if name.is_some_and(|name| name != call.name) {
            return Ok(Err("wrong_tool"));
        }
        let Arguments::Object(map) = &call.arguments else { return Ok(Err("arguments")) };
        Ok(match key {
            Some(key) => map.get(key).cloned().ok_or("payload"),
            None => Ok(Value::Object(map.clone())),
        })
    }

    fn check(&self, loaded: &LoadedSchema, value: &Value) -> Result<Result<(), Fault>, Outcome> {
        let Some(compiled) = &loaded.compiled else {
            return Ok(Err(Fault::Schema(String::new(), "schema")));
        };
        match SchemaChecker::new().check(compiled, value) {
            Ok(()) => Ok(Ok(())),
            Err(SchemaError::Wrong(breach)) => {
                let mut path = breach.path();
                path.truncate(path.floor_char_boundary(SHOWN));
                Ok(Err(Fault::Schema(path, breach.keyword)))
            }
            Err(SchemaError::Unsupported(what)) => {
                let message = format!("The schema has {what}.");
                Err(Outcome::skipped(Reason::new(Code::SchemaUnsupported, message)))
            }
            Err(SchemaError::TooMuch) => {
                let message = "The document takes too long to check.";
                Err(Outcome::floored(0.0, Reason::new(Code::ModelTooComplex, message)))
            }
        }
    }
}

fn bad_row(what: impl Into<String>) -> Outcome {
    Outcome::invalid(Reason::new(Code::BadSchema, what.into()))
}

/// A field of a row that is a text. Anything else in its place would otherwise be passed over, and the row checked as another one.
fn field<'s>(sample: &RuleInput<'s>, name: &str) -> Result<Option<&'s str>, Outcome> {
    match sample.extra.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(bad_row(format!("The row's {name} is no text."))),
    }
}

/// The schema that a row brings, as text.
fn row_schema<'s>(sample: &RuleInput<'s>) -> Result<Cow<'s, str>, Outcome> {
    let extra = sample.extra;
    let format = extra.get("response_format");
    let nested =
        format.and_then(|format| format.get("json_schema")).map(|outer| outer.get("schema").unwrap_or(outer));
    let given = ["schema_str", "schema", "json_schema"]
        .iter()
        .find_map(|key| extra.get(*key).filter(|value| !value.is_null()));
    match given.or(nested) {
        None => Err(Outcome::skipped(Code::MissingSchema)),
        Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Some(schema) => Ok(Cow::Owned(exact::write(schema))),
    }
}

/// The origin's way: every object of the schema that has `properties` is taken for a schema, also the map of properties
/// itself where one is called so, and lists are not looked into.
fn made_strict_as_nemo_gym(mut schema: Value) -> Value {
    let mut open = vec![&mut schema];
    while let Some(schema) = open.pop() {
        let Value::Object(rules) = schema else { continue };
        if let Some(properties) = rules.get("properties") {
            let names = properties.as_object().into_iter().flat_map(|map| map.keys());
            let names: Vec<Value> = names.map(|key| Value::from(key.as_str())).collect();
            rules.insert("required".to_owned(), Value::Array(names));
            rules.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        open.extend(rules.iter_mut().map(|(_, value)| value));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one, rejected};
    use serde_json::json;

    fn ask(parameters: Value, response: &str, extra: Value) -> Outcome {
        let extra = extra.as_object().unwrap().clone();
        one::<StructuredOutput>(parameters, TestRollout { response, extra, ..TestRollout::default() })
    }

    fn why(outcome: &Outcome) -> String {
        let fact = |name: &str| match outcome.info().and_then(|info| info.get(name)) {
            Some(Fact::Word(word)) => (*word).to_owned(),
            Some(Fact::Text(text)) => text.clone(),
            _ => String::new(),
        };
        match outcome.reason() {
            Some(reason) => reason.code.as_str().to_owned(),
            None => [fact("why"), fact("path"), fact("keyword")].join(" ").trim().to_owned(),
        }
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]})
    }

    #[test]
    fn faults_are_told_apart() {
        for (response, word) in [
            ("{\"a\": 1}", "valid"),
            ("{\"a\": 1, \"c\": 2}", "valid"),
            ("<think>{}</think>{\"a\": 1}", "valid"),
            ("Here it is:\n```json\n{\"a\": 1}\n```\nDone.", "valid"),
            ("```\n{\"a\": 1}\n```", "valid"),
            ("```json\n{}\n```\n```json\n{\"a\": 1}\n```", "valid"),
            ("```python\n{}\n```\n{\"a\": 1}", "syntax"),
            ("{\"a\": 1} Done.", "syntax"),
            ("{\"a\": \"1\"}", "schema /a type"),
            ("{\"b\": \"x\"}", "schema /a required"),
            ("[]", "schema  type"),
            (" \n", "no_document"),
            ("<think>{\"a\": 1}", "format.unclosed_think"),
        ] {
            let outcome = ask(json!({}), response, json!({"schema": schema()}));
            assert_eq!(why(&outcome), word, "{response}");
            assert_eq!(outcome.value(), Some(f64::from(u8::from(word == "valid"))), "{response}");
        }
        let long = format!("[{}1]", "1,".repeat(200_000));
        assert_eq!(why(&ask(json!({}), &long, json!({"schema": {}}))), "model.too_complex");
    }

    #[test]
    fn schemas_stand_in_many_places() {
        for extra in [
            json!({"schema": schema()}),
            json!({"schema_str": schema().to_string()}),
            json!({"json_schema": schema().to_string()}),
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema()}}}),
        ] {
            assert_eq!(why(&ask(json!({}), "{}", extra)), "schema /a required");
        }
        assert_eq!(why(&ask(json!({"schema": schema()}), "{}", json!({}))), "schema /a required");
        for (extra, word) in [
            (json!({}), "input.missing_schema"),
            (json!({"schema": "{"}), "input.schema"),
            (json!({"schema": "[]"}), "input.schema"),
            (json!({"schema": {"$ref": "https://example.org/other"}}), "input.schema_unsupported"),
            (json!({"schema": {}, "schemas": [1]}), "input.schema"),
            (json!({"schema": {"type": "text"}}), "input.schema_unsupported"),
            (json!({"schema": {}, "schema_type": "ini"}), "input.schema"),
            (json!({"schema": {}, "schema_type": 3}), "input.schema"),
            (json!({"schema": {}, "response_mode": "tool-call"}), "input.schema"),
            (json!({"schema": {}, "response_mode": ["text"]}), "input.schema"),
            (json!({"schema": {}, "response_mode": "tool_call", "tool_name": 1}), "input.schema"),
            (json!({"schema": {}, "response_mode": "tool_call", "tool_payload_key": 1}), "input.schema"),
        ] {
            let outcome = ask(json!({}), "{}", extra.clone());
            assert_eq!((outcome.value(), why(&outcome).as_str()), (None, word), "{extra}");
        }
        assert_eq!(rejected::<StructuredOutput>(json!({"schema": {"pattern": "(?!a)"}})), ["schema"]);
    }

    #[test]
    fn formats_and_other_schemas_count_where_they_are_asked_for() {
        let extra = json!({"schema": {"$ref": "https://example.org/day"},
            "schemas": {"https://example.org/day": {"type": "string", "format": "date"}}});
        assert_eq!(why(&ask(json!({}), "\"soon\"", extra.clone())), "valid");
        assert_eq!(why(&ask(json!({"formats": "assert"}), "\"soon\"", extra.clone())), "schema  format");
        assert_eq!(why(&ask(json!({"formats": "assert"}), "\"2024-01-31\"", extra.clone())), "valid");
        let own = json!({"schemas": {"https://example.org/day": {"type": "integer"}}});
        assert_eq!(why(&ask(own, "\"soon\"", extra)), "schema  type");
    }

    #[test]
    fn strict_and_fences_are_parameters() {
        let extra = json!({"schema": schema()});
        let strict = json!({"strict": true});
        assert_eq!(why(&ask(strict.clone(), "{\"a\": 1}", extra.clone())), "schema /b required");
        assert_eq!(
            why(&ask(strict, "{\"a\": 1, \"b\": \"\", \"c\": 1}", extra.clone())),
            "schema /c additionalProperties"
        );
        assert_eq!(why(&ask(json!({"fences": "required"}), "{\"a\": 1}", extra.clone())), "no_document");
        assert_eq!(why(&ask(json!({"fences": "none"}), "```json\n{\"a\": 1}\n```", extra)), "syntax");
    }

    #[test]
    fn the_arguments_of_a_call_may_be_the_document() {
        let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        let ask = |calls: Value, key: Value| {
            let turns = Some(json!([{"role": "assistant", "content": "", "tool_calls": calls}]));
            let extra = json!({"schema": schema(), "response_mode": "tool_call", "tool_name": "save", "tool_payload_key": key});
            let extra = extra.as_object().cloned().unwrap();
            why(&one::<StructuredOutput>(json!({}), TestRollout { turns, extra, ..TestRollout::default() }))
        };
        let good = call("save", json!({"a": 1}));
        assert_eq!(ask(json!([good]), Value::Null), "valid");
        assert_eq!(ask(json!([call("save", json!({"data": {"a": 1}}))]), json!("data")), "valid");
        assert_eq!(ask(json!([good]), json!("data")), "payload");
        assert_eq!(ask(json!([]), Value::Null), "no_call");
        assert_eq!(ask(json!([good, good]), Value::Null), "several_calls");
        assert_eq!(ask(json!([call("load", json!({"a": 1}))]), Value::Null), "wrong_tool");
        assert_eq!(ask(json!([call("save", json!("{bad"))]), Value::Null), "arguments");
        assert_eq!(ask(json!([call("save", json!({"a": "1"}))]), Value::Null), "schema /a type");
    }
}
