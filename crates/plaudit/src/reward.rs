//! What is a reward, whatever asks for it? A name, a page, parameters with a schema, and a statement of what it can give.

pub use crate::error::ParamError;
use crate::tokenizer::ResourceCache;
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

/// What every loaded reward states of itself.
pub trait Stated: Send + Sync {
    /// The numbers that it can give.
    fn range(&self) -> Range;

    /// What a rollout gets whose response breaks a limit: finite, and no better than an honest bad response.
    fn floor(&self) -> f64 {
        self.range().min
    }

    /// Whether a response of any length is scored in time that does not matter, so that the limit on the length of
    /// responses need not floor it.
    fn any_length(&self) -> bool {
        false
    }
}

/// The parameters of a reward, which are also its place in the registry.
///
/// The doc comment of the type is the reward's page; those of its fields describe the parameters.
pub trait Registered: DeserializeOwned + JsonSchema {
    /// The name in recipes.
    const NAME: &'static str;
    /// Other names under which it is found.
    const ALIASES: &'static [&'static str] = &[];
    /// Whether it compares with the rollout's reference.
    const NEEDS_REFERENCE: bool = false;
}

/// One entry of the registry, which loads an `S`.
pub struct Kind<S> {
    /// The name in recipes.
    pub name: &'static str,
    /// Other names under which it is found.
    pub aliases: &'static [&'static str],
    /// Whether it compares with the rollout's reference.
    pub needs_reference: bool,
    /// The JSON schema of its parameters, with their documentation.
    pub schema: fn() -> Value,
    /// Loads the reward from parameters that the schema allows.
    pub build: fn(Value, &mut ResourceCache) -> Result<S, Vec<ParamError>>,
}

impl<S> Kind<S> {
    /// The summary and the page of the reward, from the doc comment of its parameters.
    pub fn page(&self) -> (String, String) {
        let schema = (self.schema)();
        let page = schema["description"].as_str().unwrap_or("").trim().to_owned();
        (page.lines().next().unwrap_or("").to_owned(), page)
    }

    /// Whether that is the reward's name or one of its aliases.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// Parameters as the type that holds them, or why they are none.
pub(crate) fn parameters<T: DeserializeOwned>(value: Value) -> Result<T, Vec<ParamError>> {
    serde_json::from_value(value).map_err(|error| vec![ParamError::new("", error.to_string())])
}

/// The JSON schema of a type with everything that it is made of in place, so that schemas can be put together.
pub(crate) fn inline_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
