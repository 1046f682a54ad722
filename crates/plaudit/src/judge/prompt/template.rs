//! Prompt templates of recipes (Jinja): checked when they are loaded, with fuel and size limits when they are rendered.

use super::template_delimiters::TemplateDelimiters;
use crate::reward::ParamError;
use crate::tokenizer::ResourceCache;
use minijinja::value::{Object, Value};
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use plaudit_text::exact;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// The most steps that a rendering may take.
const FUEL: u64 = 50_000;
/// The largest prompt, in bytes.
const MAX_BYTES: usize = 4 << 20;
/// The largest template, in bytes.
const MAX_SOURCE: usize = 256 << 10;
/// What a template can name.
const VARIABLES: [&str; 9] =
    ["id", "group", "prompt", "messages", "response", "responses", "reference", "extra", "fence"];

/// A checked template.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    used: BTreeSet<String>,
    /// The delimiters that it is written with.
    pub(in crate::judge) delimiters: TemplateDelimiters,
}

/// The one template of an environment.
const NAME: &str = "prompt";

impl Template {
    /// The template in a file below the recipe's folder, or the text itself where it has braces. `single` says whether
    /// one response is shown, or several.
    pub(in crate::judge) fn load(
        written: &str,
        single: bool,
        cache: &ResourceCache,
    ) -> Result<Self, ParamError> {
        let refuse = |message: String| ParamError::new("prompt", message);
        let source = match written.contains("{{") || written.contains("{%") {
            true => written.to_owned(),
            false if written.is_empty() => {
                return Err(refuse("is missing: name a file, or write the template".into()));
            }
            false => cache
                .read(written, MAX_SOURCE)
                .map_err(|message| refuse(format!("{message} (a prompt without {{{{ }}}} names a file)")))?,
        };
        if source.len() > MAX_SOURCE {
            return Err(refuse(format!("is longer than {MAX_SOURCE} bytes")));
        }
        let delimiters = TemplateDelimiters::of(&source);
        let mut environment = environment();
        environment
            .add_template_owned(NAME, source)
            .map_err(|error| refuse(format!("is no template: {}", plain(&error))))?;
        let names = environment
            .get_template(NAME)
            .map_err(|error| refuse(plain(&error)))?
            .undeclared_variables(false);
        let used: BTreeSet<String> = names.into_iter().collect();
        let absent = if single { "responses" } else { "response" };
        let known: Vec<&str> = VARIABLES.into_iter().filter(|name| *name != absent).collect();
        let strange: Vec<&str> = used
            .iter()
            .map(String::as_str)
            .filter(|name| !known.contains(name) && *name != "range")
            .collect();
        if let Some(name) = strange.first() {
            return Err(refuse(format!("names {name:?}, but the variables are {}", known.join(", "))));
        }
        if !used.contains("response") && !used.contains("responses") {
            let wanted = if single { "response" } else { "responses" };
            return Err(refuse(format!("never shows {{{{ {wanted} }}}}, so the judge would see nothing")));
        }
        let template = Self { environment, used, delimiters };
        template
            .render(&sample_values(single))
            .map_err(|error| refuse(format!("cannot be filled in: {error}")))?;
        Ok(template)
    }

    /// Whether the template looks at a variable.
    pub(in crate::judge) fn uses(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// The prompt, or why there is none.
    pub(in crate::judge) fn render(&self, values: &Value) -> Result<String, String> {
        render(&self.environment, NAME, values)
    }
}

/// An environment without files, in which a misspelt name is an error and work is bounded.
pub(in crate::judge) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
}

/// Fills a template in, up to the largest prompt.
pub(in crate::judge) fn render(
    environment: &Environment<'_>,
    name: &str,
    values: &Value,
) -> Result<String, String> {
    let template = environment.get_template(name).map_err(|error| plain(&error))?;
    let mut out = BoundedBuffer(Vec::new());
    template.render_captured_to(values.clone(), &mut out).map_err(|error| match error.kind() {
        ErrorKind::WriteFailure => format!("it makes more than {MAX_BYTES} bytes"),
        ErrorKind::OutOfFuel => format!("it takes more than {FUEL} steps"),
        _ => plain(&error),
    })?;
    String::from_utf8(out.0).map_err(|error| error.to_string())
}

/// JSON as a template sees it, with the template's own delimiters broken.
pub(in crate::judge) fn value(json: &serde_json::Value, delimiters: &TemplateDelimiters) -> Value {
    use serde_json::Value as Json;
    let value = |json: &Json| value(json, delimiters);
    match json {
        Json::Null => Value::from(()),
        Json::Bool(yes) => Value::from(*yes),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(()),
        },
        Json::String(text) => Value::from(delimiters.escape(exact::plain(text)).as_ref()),
        Json::Array(items) => items.iter().map(value).collect(),
        Json::Object(map) => Value::from_pairs(map.iter().map(|(key, item)| (key.as_str(), value(item)))),
    }
}

/// What an error says, with its line.
fn plain(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}

/// Takes so many bytes and no more.
struct BoundedBuffer(Vec<u8>);

impl io::Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stands for an `extra` of which nothing is known yet: it has every field.
#[derive(Debug)]
struct AnyField;

impl Object for AnyField {
    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(Value::from_object(AnyField))
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("x")
    }
}

/// Values like those that the template will meet.
fn sample_values(single: bool) -> Value {
    let shown = |label: &str| context! { label, text => "text" };
    let common = context! {
        id => "id", group => "group", prompt => "prompt", reference => "reference", fence => "fence",
        messages => vec![context! { role => "user", content => "prompt" }],
        extra => Value::from_object(AnyField),
    };
    match single {
        true => context! { response => "text", ..common },
        false => context! { responses => vec![shown("A"), shown("B")], ..common },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Template, String> {
        Template::load(text, true, &ResourceCache::default()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn what_a_response_says_is_not_a_template() {
        let template = load("A {{ response }} B").expect("a template");
        let response = "{{ 7*7 }}{% for i in range(9) %}x{% endfor %}";
        assert_eq!(template.render(&context! { response }).expect("a prompt"), format!("A {response} B"));
    }

    #[test]
    fn templates_that_cannot_work_are_refused_when_they_are_loaded() {
        let deep = format!("{{{{ {}response{} }}}}", "(".repeat(5000), ")".repeat(5000));
        for (text, says) in [
            ("{{ response }}{{ respons }}", "\"respons\""),
            ("{{ responses }}", "\"responses\""),
            ("{{ prompt }}", "never shows"),
            ("{{ response }}{% for i in range(1000000000) %}x{% endfor %}", "range"),
            (
                "{{ response }}{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
                "steps",
            ),
            ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}{{ response }}", ""),
            ("{{ response }}{% include '/etc/passwd' %}", ""),
            ("{{ response }}{{ ''.__class__.__mro__ }}", ""),
            ("{{ response }}{% if %}", "line 1"),
            (deep.as_str(), ""),
        ] {
            let start = crate::timing::cpu_time();
            let message = load(text).map(|_| ()).expect_err(text);
            assert!(message.contains(says), "{text}: {message}");
            assert!((crate::timing::cpu_time() - start).as_millis() < 500, "{text}");
        }
    }

    #[test]
    fn fields_of_extra_are_known_only_when_a_rollout_comes() {
        let template = load("{{ extra.level.name }} {{ response }}").expect("a template");
        let extra = value(&serde_json::json!({ "level": { "name": "hard" } }), &template.delimiters);
        assert_eq!(template.render(&context! { response => "r", extra }).expect("a prompt"), "hard r");
        assert!(template.render(&context! { response => "r", extra => context! {} }).is_err());
    }
}
