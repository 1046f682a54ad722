//! Path tracking for the recipe readers: where a reader is, and the errors found so far.

use super::error::{ERRORS_MAX, RecipeError};

/// Collections inside collections, at most so deep. The deepest shipped recipe needs five; the limit keeps
/// everything that recurses over a tree within the stack.
pub(super) const DEPTH_MAX: usize = 32;

/// One step down into a tree.
enum PathStep {
    Key(String),
    Index(usize),
}

/// The path from the root to the place that is being read, and the errors found so far.
pub(super) struct PathTracker {
    base: String,
    steps: Vec<PathStep>,
    pub(super) errors: Vec<RecipeError>,
}

impl PathTracker {
    /// A tracker that starts at `base`, a dotted path; empty for the root of a recipe.
    pub(super) fn new(base: &str) -> Self {
        Self { base: base.to_owned(), steps: Vec::new(), errors: Vec::new() }
    }

    pub(super) fn enter_key(&mut self, name: &str) {
        self.steps.push(PathStep::Key(name.to_owned()));
    }

    pub(super) fn enter_index(&mut self, index: usize) {
        self.steps.push(PathStep::Index(index));
    }

    pub(super) fn leave(&mut self) {
        self.steps.pop();
    }

    /// True when nothing more is worth reading.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    pub(super) fn depth(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn path(&self) -> String {
        let mut path = self.base.clone();
        for step in &self.steps {
            if !path.is_empty() {
                path.push('.');
            }
            match step {
                PathStep::Key(name) => path.push_str(&segment(name)),
                PathStep::Index(index) => path.push_str(&index.to_string()),
            }
        }
        path
    }

    pub(super) fn error(
        &mut self,
        code: &'static str,
        line: Option<u32>,
        message: impl Into<String>,
        fix: Option<&str>,
    ) {
        if !self.is_full() {
            let error = RecipeError::new(code, self.path(), message).at(line);
            self.errors.push(RecipeError { fix: fix.map(str::to_owned), ..error });
        }
    }

    /// Too deep; the caller stops here, because a tree beyond the limit must not be built.
    pub(super) fn too_deep(&mut self, line: Option<u32>) {
        self.error("recipe.depth", line, too_deep(), None);
    }

    pub(super) fn duplicate_key(&mut self, line: Option<u32>, first: Option<u32>) {
        let message = match (first, line) {
            (Some(first), Some(line)) => format!("the key is given twice, on lines {first} and {line}"),
            _ => "the key is given twice".to_owned(),
        };
        self.error("recipe.duplicate_key", line, message, Some("remove one of them"));
    }

    /// True under a key whose value is a secret by its name, also inside a list there.
    pub(super) fn is_secret(&self) -> bool {
        let nearest = self.steps.iter().rev().find_map(|step| match step {
            PathStep::Key(name) => Some(name.as_str()),
            PathStep::Index(_) => None,
        });
        // An override starts at a path, so the key may be the last part of that, list places aside.
        let is_name = |part: &&str| part.parse::<usize>().is_err();
        is_secret_key(nearest.or_else(|| self.base.rsplit('.').find(is_name)).unwrap_or(""))
    }

    /// What every text value has to keep to: no secret in the recipe, no variable in the text.
    pub(super) fn text(&mut self, text: &str, line: Option<u32>) {
        if self.is_secret() && !text.is_empty() {
            let message = "a secret does not belong in a recipe";
            let fix = "put it into an environment variable and name that in a key ending in \"_env\"";
            self.error("recipe.inline_secret", line, message, Some(fix));
        } else if text.contains("${") {
            let fix = "name the variable, without \"${\", in a key ending in \"_env\"";
            self.error("recipe.env", line, "environment variables are not filled in", Some(fix));
        }
    }
}

/// What is said of a tree beyond the limit.
pub(super) fn too_deep() -> String {
    format!("more than {DEPTH_MAX} lists and maps inside one another")
}

fn is_secret_key(name: &str) -> bool {
    ["api_key", "apikey", "token", "secret", "password"].iter().any(|key| name.eq_ignore_ascii_case(key))
}

/// A key as part of a path: in quotes where it could be misread, and never longer than a line.
fn segment(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '<' | '?');
    if !name.is_empty() && name.chars().all(plain) { shorten(name) } else { format!("{:?}", shorten(name)) }
}

/// A path from outside as it is shown: each part like a key of a recipe, and no more parts than a recipe can have.
pub(super) fn dotted(path: &str) -> String {
    path.split('.').take(DEPTH_MAX + 1).map(segment).collect::<Vec<_>>().join(".")
}

/// At most forty characters of a text, so that a message cannot be flooded.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_dotted_and_bounded() {
        let mut tracker = PathTracker::new("components");
        tracker.enter_key("a.b");
        tracker.enter_index(3);
        tracker.enter_key(&"x".repeat(1 << 20));
        assert_eq!(tracker.path(), format!("components.\"a.b\".3.{}…", "x".repeat(40)));
        tracker.leave();
        assert_eq!(tracker.path(), "components.\"a.b\".3");
    }

    #[test]
    fn no_letter_of_a_secret_is_shown() {
        let mut tracker = PathTracker::new("");
        tracker.enter_key("API_Key");
        tracker.enter_index(0);
        tracker.text("XYZ-THISISASECRET", Some(1));
        let said = tracker.errors[0].to_string();
        assert!(said.contains("recipe.inline_secret") && !said.contains("XYZ"), "{said}");
    }

    #[test]
    fn errors_are_capped() {
        let mut tracker = PathTracker::new("");
        for _ in 0..ERRORS_MAX + 5 {
            tracker.error("recipe.type", None, "x", None);
        }
        assert_eq!(tracker.errors.len(), ERRORS_MAX);
    }
}
