//! A response and the variants of it that loose mode looks at, made lazily and shared by all constraints of a row.

use crate::constraint::Check;
use crate::own::CheckError;
use crate::text::view::View;
use plaudit_text::strip;
use std::cell::OnceCell;

/// How forgiving the checks are towards the frame of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Mode {
    /// The response as it stands.
    #[default]
    Strict,
    /// Any of eight variants: without its first line, its last or both, and without stars.
    Loose,
}

/// The number of variants of loose mode.
const VARIANTS: usize = 8;

/// A response and the same without stars: what the variants are slices of.
#[derive(Debug)]
pub struct Texts<'a> {
    text: &'a str,
    starless: OnceCell<String>,
}

impl<'a> Texts<'a> {
    /// Nothing is computed yet.
    pub fn new(text: &'a str) -> Self {
        Self { text, starless: OnceCell::new() }
    }

    fn starless(&self) -> &str {
        self.starless.get_or_init(|| self.text.replace('*', ""))
    }
}

/// One response that checks are held against.
pub struct Response<'a> {
    texts: &'a Texts<'a>,
    views: [OnceCell<Option<View<'a>>>; VARIANTS],
}

impl<'a> Response<'a> {
    /// Nothing is computed yet.
    pub fn new(texts: &'a Texts<'a>) -> Self {
        Self { texts, views: [const { OnceCell::new() }; VARIANTS] }
    }

    /// Whether the response follows a constraint. One of one's own that fails is not followed; [`Response::verdict`] says so.
    pub fn passes(&self, check: &Check, mode: Mode) -> bool {
        self.verdict(check, mode) == Ok(true)
    }

    /// Whether the response follows a constraint: one variant that does is enough.
    ///
    /// # Errors
    ///
    /// A constraint of one's own that failed, where no variant follows it.
    pub fn verdict(&self, check: &Check, mode: Mode) -> Result<bool, CheckError> {
        let last = match mode {
            Mode::Strict => 1,
            Mode::Loose => VARIANTS,
        };
        let mut failed = None;
        for view in (0..last).filter_map(|variant| self.view(variant)) {
            match check.verdict(view) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// A variant, or nothing where it is blank or the same as an earlier one.
    fn view(&self, variant: usize) -> Option<&View<'a>> {
        self.views[variant].get_or_init(|| self.variant(variant).map(View::new)).as_ref()
    }

    fn variant(&self, variant: usize) -> Option<&'a str> {
        let text = self.texts.text;
        let slice = match variant % 4 {
            0 => text,
            1 => strip(without_first(text)?),
            2 => strip(without_last(text)?),
            _ => strip(without_last(without_first(text)?)?),
        };
        if slice.is_empty() {
            return None;
        }
        if variant < 4 {
            return Some(slice);
        }
        // Taking stars out keeps the order of everything else, so that the slice of the text is a slice without stars.
        let start = slice.as_ptr() as usize - text.as_ptr() as usize;
        let stars = |part: &str| memchr::memchr_iter(b'*', part.as_bytes()).count();
        let (before, inside) = (stars(&text[..start]), stars(slice));
        if inside == 0 {
            return None;
        }
        let start = start - before;
        self.texts.starless().get(start..start + slice.len() - inside)
    }
}

fn without_first(text: &str) -> Option<&str> {
    memchr::memchr(b'\n', text.as_bytes()).map(|at| &text[at + 1..])
}

fn without_last(text: &str) -> Option<&str> {
    memchr::memrchr(b'\n', text.as_bytes()).map(|at| &text[..at])
}

/// Which of the checks a text follows.
pub fn verdicts(text: &str, checks: &[Check], mode: Mode) -> Vec<bool> {
    let texts = Texts::new(text);
    let response = Response::new(&texts);
    checks.iter().map(|check| response.passes(check, mode)).collect()
}
