//! Recipes: YAML, JSON or a Python dict, read into a tree with line numbers and checked against a schema.

use serde_json::Value;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

pub mod check;
pub mod error;
pub mod file;
mod json;
mod overrides;
mod path;
mod scalar;
pub mod tree;
mod yaml;

pub use check::check;
pub use error::{RecipeError, RecipeErrors, closest, did_you_mean};
pub use file::schema;
pub use tree::{Node, Tree, TreeKey};

/// The names and texts of the shipped recipes of `crates/plaudit/recipes/`, which are compiled in.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    macro_rules! texts {
        ($($name:literal),+) => { &[$(($name, include_str!(concat!("../../recipes/", $name, ".yaml")))),+] };
    }
    texts![
        "quickstart",
        "math",
        "code",
        "code_text",
        "instructions",
        "choice",
        "structured_output",
        "lists",
        "rlvr",
        "safety",
        "writing",
        "tools",
        "agent",
        "open_r1",
        "lengths",
        "tutorial",
        "overlap",
        "judged",
        "rubric"
    ]
}

/// A recipe as it was written, with what was overridden; [`Recipe::plan`] says what it means.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub(crate) node: Node,
    /// The name of the file or of the shipped recipe, for a recipe that gives itself none.
    pub(crate) name: String,
    /// Where the files that it names are looked for; none for a recipe that did not come from a file.
    pub(crate) folder: Option<PathBuf>,
    /// What it was read from, where that was text.
    source: Option<Source>,
}

/// A recipe as text, with what is needed to read it again elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Source {
    /// The text.
    pub text: String,
    /// Whether it is JSON rather than YAML.
    pub json: bool,
    /// The name of the file or of the shipped recipe.
    pub name: String,
    /// Where the files that it names are looked for.
    pub folder: Option<PathBuf>,
}

impl Recipe {
    /// The shipped recipe of that name, or the one in that file.
    pub fn named(name: &str) -> Result<Self, RecipeErrors> {
        if let Some((_, text)) = shipped().iter().find(|(known, _)| *known == name) {
            let (text, name) = ((*text).to_owned(), name.to_owned());
            return Self::from_source(Source { text, json: false, name, folder: None });
        }
        let path = Path::new(name);
        if path.exists() {
            return Self::from_file(path);
        }
        let known: Vec<&str> = shipped().iter().map(|(known, _)| *known).collect();
        let message = format!("there is neither a shipped recipe nor a file {name:?}");
        let fix = did_you_mean(name, known.iter().copied())
            .unwrap_or_else(|| format!("the shipped ones are {}", known.join(", ")));
        Err(RecipeError::new("recipe.not_found", "", message).fixed_by(fix).into())
    }

    /// The recipe in a file: JSON where its name ends so, else YAML.
    pub fn from_file(path: &Path) -> Result<Self, RecipeErrors> {
        let text = read_bounded(path).map_err(|message| {
            RecipeError::new("recipe.file", "", format!("{}: {message}", path.display()))
        })?;
        let json = path.extension().is_some_and(|extension| extension == "json");
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self::from_source(Source {
            text,
            json,
            name: name.unwrap_or_else(|| "recipe".to_owned()),
            folder: path.parent().map(Path::to_path_buf),
        })
    }

    /// The recipe that was read before, as [`Recipe::source`] gave it.
    pub fn from_source(source: Source) -> Result<Self, RecipeErrors> {
        let node = if source.json { Node::from_json(&source.text)? } else { Node::from_yaml(&source.text)? };
        Ok(Self { node, name: source.name.clone(), folder: source.folder.clone(), source: Some(source) })
    }

    /// What the recipe was read from, without overrides; none for one that came as a value.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// A recipe from YAML text.
    pub fn from_yaml(text: &str) -> Result<Self, RecipeErrors> {
        let (text, name) = (text.to_owned(), "recipe".to_owned());
        Self::from_source(Source { text, json: false, name, folder: None })
    }

    /// A recipe from a value that was parsed elsewhere.
    pub fn from_value(value: &Value) -> Result<Self, RecipeErrors> {
        Ok(Self { node: Node::from_value(value)?, name: "recipe".to_owned(), folder: None, source: None })
    }

    /// Overrides one value, as by `--set components.format.weight=0.1`.
    pub fn set(&mut self, path: &str, text: &str) -> Result<(), RecipeErrors> {
        self.node.set(path, text)
    }

    /// Puts a whole value in the place of one, or where there is none.
    pub fn put(&mut self, path: &str, value: &Value) -> Result<(), RecipeErrors> {
        self.node.put(path, value)
    }

    /// What was written, with what was overridden, as a plain value.
    pub fn to_value(&self) -> Value {
        self.node.to_value()
    }

    /// A recipe that this one routes to: a shipped one, or a file below this one's folder.
    pub(crate) fn beside(&self, name: &str) -> Result<Self, RecipeErrors> {
        let is_shipped = shipped().iter().any(|(known, _)| *known == name);
        let Some(folder) = self.folder.as_ref().filter(|_| !is_shipped) else { return Self::named(name) };
        let message = "only files below the folder of the recipe can be named";
        let outside = || Err(RecipeError::new("recipe.path", "", message).into());
        let path = Path::new(name);
        if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return outside();
        }
        let file = folder.join(path);
        // A recipe file beside the caller has the empty path for a folder.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match (file.canonicalize(), folder.canonicalize()) {
            (Ok(real), Ok(folder)) if !real.starts_with(&folder) => outside(),
            (Ok(_), Ok(_)) => Self::from_file(&file),
            _ => Self::named(name),
        }
    }
}

/// The text of a regular file of at most the size of a recipe; anything else is refused before it is read.
fn read_bounded(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut text = String::new();
    // One byte more than allowed, so that the reader of the tree sees that it is too much.
    let limit = tree::SIZE_MAX as u64 + 1;
    file.take(limit).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod yaml_tests;
