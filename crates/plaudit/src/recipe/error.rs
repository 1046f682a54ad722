//! Recipe errors: code, path, line, message and fix.

use std::fmt;

use serde::Serialize;

/// At most so many errors are kept of one recipe: a hostile file could otherwise hold a hundred thousand,
/// and nobody reads past the first screens.
pub const ERRORS_MAX: usize = 1000;

/// Words longer than this are never compared with the known ones; the comparison is quadratic in length.
const WORD_MAX: usize = 64;

/// One thing that the author of a recipe has to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecipeError {
    /// A stable code such as `recipe.unknown_key`.
    pub code: &'static str,
    /// The dotted path of the key; empty for the recipe as a whole.
    pub path: String,
    /// The line in the file, counted from 1, where the recipe came from a file.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What would probably put it right.
    pub fix: Option<String>,
}

impl RecipeError {
    /// An error at a dotted path, without a line and a fix.
    pub(crate) fn new(code: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, path: path.into(), line: None, message: message.into(), fix: None }
    }

    /// The same error on a line.
    pub(crate) fn at(self, line: Option<u32>) -> Self {
        Self { line, ..self }
    }

    /// The same error with what would put it right.
    pub(crate) fn fixed_by(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// The same with control characters escaped: a recipe's keys reach a terminal in it.
    fn printable(self) -> Self {
        Self {
            path: escape_controls(self.path),
            message: escape_controls(self.message),
            fix: self.fix.map(escape_controls),
            ..self
        }
    }
}

fn escape_controls(text: String) -> String {
    let is_control = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_control) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.path.as_str()) {
            (Some(line), "") => write!(f, "line {line}: ")?,
            (Some(line), path) => write!(f, "line {line}, {path}: ")?,
            (None, "") => {}
            (None, path) => write!(f, "{path}: ")?,
        }
        write!(f, "{} ({})", self.message, self.code)?;
        match &self.fix {
            Some(fix) => write!(f, "; {fix}"),
            None => Ok(()),
        }
    }
}

/// All the errors of a recipe: at least one, sorted by line, then by path. Those without a line come last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RecipeErrors(Vec<RecipeError>);

impl RecipeErrors {
    /// `Ok` where the list is empty, so that a reader can end with `RecipeErrors::none(found)?`.
    pub fn none(mut found: Vec<RecipeError>) -> Result<(), Self> {
        fn key(error: &RecipeError) -> (bool, Option<u32>, &str, &str) {
            (error.line.is_none(), error.line, &error.path, error.code)
        }
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by(|a, b| key(a).cmp(&key(b)));
        Err(Self(found.into_iter().map(RecipeError::printable).collect()))
    }

    /// The same errors without lines, for a recipe that did not come from a file.
    #[must_use]
    pub fn without_lines(self) -> Self {
        self.map(|error| RecipeError { line: None, ..error })
    }

    /// The same errors, each of them changed.
    pub(super) fn map(self, change: impl FnMut(RecipeError) -> RecipeError) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// The errors in order.
    pub fn as_slice(&self) -> &[RecipeError] {
        &self.0
    }
}

impl From<RecipeError> for RecipeErrors {
    fn from(error: RecipeError) -> Self {
        Self(vec![error.printable()])
    }
}

impl IntoIterator for RecipeErrors {
    type Item = RecipeError;
    type IntoIter = std::vec::IntoIter<RecipeError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for RecipeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        if self.0.len() >= ERRORS_MAX {
            write!(f, "\nonly the first {ERRORS_MAX} errors are shown")?;
        }
        Ok(())
    }
}

impl std::error::Error for RecipeErrors {}

/// The candidate that `word` was probably meant to be: at most a third of its letters differ, letter case aside.
/// Of equally close candidates the first is taken.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Four bytes a letter at most, so a longer word is refused before it is copied.
    if word.len() > 4 * WORD_MAX {
        return None;
    }
    let word = letters(word);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = letters(candidate);
        let longer = word.len().max(other.len());
        let limit = longer / 3;
        if longer > WORD_MAX || word.len().abs_diff(other.len()) > limit {
            continue;
        }
        let distance = edits(&word, &other);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// "did you mean ...?": the closest candidate, or up to three that hold the word as a part, as `ngram` in
/// `ngram_repetition_penalty`. What stands between words does not count: `mathverify` is in `math_verify_reward`.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(near) = closest(word, candidates.clone()) {
        return Some(format!("did you mean {near:?}?"));
    }
    if !(3..=WORD_MAX).contains(&word.len()) {
        return None;
    }
    let bare = |name: &str| name.to_lowercase().replace(['_', '-', '.'], "");
    let part = bare(word);
    let holding =
        candidates.into_iter().filter(|candidate| !part.is_empty() && bare(candidate).contains(&part));
    let names: Vec<String> = holding.take(3).map(|name| format!("{name:?}")).collect();
    let (last, others) = names.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        _ => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

fn letters(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).collect()
}

/// Optimal string alignment: insertions, deletions, substitutions, and swaps of neighbours, each counted once.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let substituted = above[j] + usize::from(a[i] != b[j]);
            let mut least = substituted.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: Option<u32>, path: &str) -> RecipeError {
        RecipeError { code: "recipe.type", path: path.into(), line, message: "wrong".into(), fix: None }
    }

    #[test]
    fn reads_as_a_sentence() {
        let error = RecipeError {
            code: "recipe.unknown_key",
            path: "components.format.wieght".into(),
            line: Some(7),
            message: "unknown key".into(),
            fix: Some("did you mean \"weight\"?".into()),
        };
        assert_eq!(
            error.to_string(),
            "line 7, components.format.wieght: unknown key (recipe.unknown_key); did you mean \"weight\"?"
        );
        assert_eq!(
            super::RecipeError { path: String::new(), line: None, ..error }.to_string().find(':'),
            None
        );
    }

    #[test]
    fn sorted_by_line_then_path() {
        let found = vec![error(None, "a"), error(Some(9), "b"), error(Some(2), "d"), error(Some(2), "c")];
        let errors = RecipeErrors::none(found).unwrap_err();
        let order: Vec<_> = errors.as_slice().iter().map(|m| m.path.as_str()).collect();
        assert_eq!(order, ["c", "d", "b", "a"]);
        assert_eq!(errors.to_string().lines().count(), 4);
        assert_eq!(RecipeErrors::none(vec![]), Ok(()));
    }

    #[test]
    fn guesses_what_was_meant() {
        let keys = ["weight", "reward", "mode", "n"];
        assert_eq!(closest("wieght", keys), Some("weight"));
        assert_eq!(closest("Reward", keys), Some("reward"));
        assert_eq!(closest("rewards", keys), Some("reward"));
        assert_eq!(closest("mod", keys), Some("mode"));
        assert_eq!(closest("N", keys), Some("n"));
    }

    #[test]
    fn does_not_guess_wildly() {
        let keys = ["weight", "mode", "n", "max"];
        for word in ["k", "", "temperature", "judge", &"w".repeat(1 << 20)] {
            assert_eq!(closest(word, keys), None, "{word:.20}");
        }
    }

    #[test]
    fn a_part_of_a_name_is_enough() {
        let names =
            ["ngram_repetition_penalty", "total_length", "thought_length", "length_penalty", "kimi.length"];
        let said = |word| did_you_mean(word, names);
        assert_eq!(said("ngram").as_deref(), Some("did you mean \"ngram_repetition_penalty\"?"));
        let lengths = "did you mean \"total_length\", \"thought_length\" or \"length_penalty\"?";
        assert_eq!(said("Length").as_deref(), Some(lengths));
        assert_eq!(said("totl_length").as_deref(), Some("did you mean \"total_length\"?"));
        assert_eq!(said("ThoughtLen").as_deref(), Some("did you mean \"thought_length\"?"));
        assert_eq!((said("ng"), said(""), said("judge"), said("___")), (None, None, None, None));
    }

    #[test]
    fn control_characters_are_escaped() {
        let errors = RecipeErrors::none(vec![error(Some(1), "components.f\u{1b}[31m")]).unwrap_err();
        assert!(errors.to_string().contains("components.f\\u{1b}[31m"), "{errors}");
    }

    #[test]
    fn a_swap_is_one_edit() {
        let count = |a: &str, b: &str| edits(&letters(a), &letters(b));
        assert_eq!(count("wieght", "weight"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
    }
}
