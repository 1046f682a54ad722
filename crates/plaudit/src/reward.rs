//! The `Reward` trait: what every rule and every judged reward implements, and its entry in the registry.

pub use crate::error::ParamError;
pub use crate::tokenizer::ResourceCache;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The numbers that a component can give. Either end may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Range {
    /// From `min` to `max`.
    pub const fn new(min: f64, max: f64) -> Self {
        Self { min, max }
    }
}

/// What is known of a loaded reward before it scores anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Properties {
    /// The numbers that it can give.
    pub range: Range,
    /// What a rollout gets whose response breaks a limit: finite, and no better than an honest bad response.
    pub floor: f64,
    /// Whether it scores a response of any length fast enough, so that the limit on the length of responses does not
    /// apply to it.
    pub any_length: bool,
    /// Whether it skips a rollout for which the trainer gave no token count.
    pub needs_tokens: bool,
    /// Whether it compares with one text, so that it is asked for each accepted answer where a reference is a list of them.
    pub compares_text: bool,
}

impl Properties {
    /// A reward with that range: the floor is its lower end, and long responses get the floor.
    pub const fn new(range: Range) -> Self {
        Self { range, floor: range.min, any_length: false, needs_tokens: false, compares_text: false }
    }
}

/// A reward: a struct of parameters that loads as an `S` (a rule, or a judged reward).
///
/// The doc comment of the struct is the reward's page; those of its fields describe the parameters.
pub trait Reward<S>: DeserializeOwned + JsonSchema + Default {
    /// The name in recipes.
    const NAME: &'static str;
    /// Other names under which it is found.
    const ALIASES: &'static [&'static str] = &[];
    /// Whether it compares with the rollout's reference.
    const NEEDS_REFERENCE: bool = false;
    /// Whether its value says if the answer is right: a trainer reports the first such component as the accuracy.
    const CORRECTNESS: bool = false;
    /// The keys of its info that hold a number for every scored response, and that a trainer should log, such as a
    /// length.
    const FACTS: &'static [&'static str] = &[];

    /// Checks the parameters and loads what they name (a pattern, a tokenizer). Reports all errors at once.
    fn build(self, cache: &mut ResourceCache) -> Result<S, Vec<ParamError>>;
}

/// One entry in the list of rules or of judged rewards, which loads an `S`.
pub struct Registration<S> {
    /// The name in recipes.
    pub name: &'static str,
    /// Other names under which it is found.
    pub aliases: &'static [&'static str],
    /// Whether it compares with the rollout's reference.
    pub needs_reference: bool,
    /// Whether its value says if the answer is right.
    pub correctness: bool,
    /// The keys of its info that a trainer should log.
    pub facts: &'static [&'static str],
    /// The JSON schema of its parameters, with their documentation.
    pub schema: fn() -> Value,
    /// Loads the reward from parameters that the schema allows.
    pub build: fn(Value, &mut ResourceCache) -> Result<S, Vec<ParamError>>,
}

impl<S> Registration<S> {
    /// The entry of one reward.
    pub const fn of<R: Reward<S>>() -> Self {
        Self {
            name: R::NAME,
            aliases: R::ALIASES,
            needs_reference: R::NEEDS_REFERENCE,
            correctness: R::CORRECTNESS,
            facts: R::FACTS,
            schema: || inline_schema::<R>(),
            build: |given, cache| parameters::<R>(given)?.build(cache),
        }
    }

    /// The summary and the page of the reward, from the doc comment of its parameters.
    pub fn page(&self) -> (String, String) {
        let schema = (self.schema)();
        let page = schema["description"].as_str().unwrap_or("").trim().to_owned();
        (page.lines().next().unwrap_or("").to_owned(), page)
    }
}

/// Deserializes parameters that passed the schema.
fn parameters<T: DeserializeOwned>(value: Value) -> Result<T, Vec<ParamError>> {
    serde_json::from_value(value).map_err(|error| vec![ParamError::new("", error.to_string())])
}

/// The JSON schema of a type with all subschemas inlined, so that schemas can be merged.
pub(crate) fn inline_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of the object that a parameter is or may be, of its items or of its values. Definitions are in the root.
pub fn object_of<'s>(own: &'s Value, root: &'s Value) -> Option<&'s Value> {
    if let Some(path) = own["$ref"].as_str() {
        return object_of(root.pointer(path.trim_start_matches('#'))?, root);
    }
    if own["properties"].is_object() {
        return Some(own);
    }
    let kinds = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|key| own[key].as_array()).flatten();
    let inner = ["items", "additionalProperties"].into_iter().filter_map(|key| own.get(key));
    kinds.chain(inner).find_map(|kind| object_of(kind, root))
}
