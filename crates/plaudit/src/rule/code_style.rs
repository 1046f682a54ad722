//! `code_style`: indentation and naming of the response's Python blocks.

use super::code_blocks::python_blocks;
use super::code_syntax_check::GrammarVersion;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use plaudit_code::{BoundName, NameKind, PythonParser};
use plaudit_text::{is_blank, is_space, space_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Half for blocks that do not mix tabs and spaces, half for names in snake_case.
///
/// ## What it scores
/// Every closed fenced block that names Python (`python`, `py` or `python3`, in any case) or no language gets half a point where no
/// two of its lines begin one with a space and one with a tab, and half a point times the share of its names that are good; a block
/// without names has good ones. The score is the mean of the blocks, from 0 to 1. A response without blocks gets 0; blocks without
/// anything in them are left out.
///
/// `names` says what a name is. With `text`, as in RM-Gallery, it is what the text shows: a word in ASCII after `def` and before a
/// parenthesis, and every word before an equals sign. That counts comparisons, keyword arguments, attributes, comments and strings, and
/// takes constants in capitals for bad names. With `bound` it is what the code binds: functions, parameters and
/// variables should be in snake_case, or in capitals where they are variables, and classes in CapWords. A block that is no Python, or
/// that is too complex to be parsed (see `code_syntax_check`), then has no good names.
///
/// ## When to use it
/// With a small weight beside a component that says whether the code is right. Use `names: bound` for a new training.
///
/// ## How it can be gamed
/// By code of a single line, or without names. With `names: text` a string that holds many good assignments hides bad ones.
///
/// ## Example
/// ```yaml
/// style: { reward: code_style, weight: 0.1, names: bound }
/// ```
///
/// ## References
/// RM-Gallery `code_style`; PEP 8.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CodeStyle {
    /// Which part of the response is read.
    pub scope: Scope,
    /// What counts as a name.
    pub names: Names,
    /// Whether blocks that name no language are taken for Python.
    pub bare: bool,
}

/// What counts as a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// Words before an equals sign and after `def`, wherever they stand.
    #[default]
    Text,
    /// Functions, classes, parameters and variables that the code binds.
    Bound,
}

impl Default for CodeStyle {
    fn default() -> Self {
        Self { scope: Scope::Final, names: Names::Text, bare: true }
    }
}

impl Reward<Rule> for CodeStyle {
    const NAME: &'static str = "code_style";
    const FACTS: &'static [&'static str] = &["total_blocks", "good_names", "total_names"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

impl CodeStyle {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let blocks = python_blocks(self.scope.of(sample.text), self.bare);
        let mut parser = PythonParser::new(GrammarVersion::Python314.minor());
        let (mut sum, mut mixed, mut good_names, mut total_names) = (0.0, 0, 0, 0);
        for block in &blocks {
            let counted = match self.names {
                Names::Text => Some(text_names(block.as_bytes())),
                Names::Bound => bound_names(&mut parser, block),
            };
            let naming = match counted {
                None => 0.0,
                Some((_, 0)) => 1.0,
                Some((good, all)) => f64::from(good) / f64::from(all),
            };
            let (good, all) = counted.unwrap_or((0, 0));
            let steady = is_steady(block);
            mixed += u64::from(!steady);
            good_names += u64::from(good);
            total_names += u64::from(all);
            sum += f64::from(u8::from(steady)) * 0.5 + naming * 0.5;
        }
        let score = if blocks.is_empty() { 0.0 } else { sum / blocks.len() as f64 };
        let info = Info::of([
            ("total_blocks", Fact::Count(blocks.len() as u64)),
            ("mixed_indentation", Fact::Count(mixed)),
            ("good_names", Fact::Count(good_names)),
            ("total_names", Fact::Count(total_names)),
        ]);
        Outcome::scored(score, info)
    }
}

/// Whether no two lines begin one with a space and one with a tab. Blank lines do not count.
fn is_steady(code: &str) -> bool {
    let (mut spaces, mut tabs) = (false, false);
    for line in code.split('\n').filter(|line| line.starts_with([' ', '\t']) && !is_blank(line)) {
        *(if line.starts_with(' ') { &mut spaces } else { &mut tabs }) = true;
    }
    !(spaces && tabs)
}

/// How many words before an equals sign, and between `def` and a parenthesis, are in snake_case, and how many there are.
///
/// A word that begins with digits counts from its first letter on, and `def` may end another word: so it is in RM-Gallery.
fn text_names(code: &[u8]) -> (u32, u32) {
    let (mut good, mut all) = (0, 0);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (mut at, mut defines) = (0, false);
    while at < code.len() {
        let length = code[at..].iter().take_while(|byte| is_word(byte)).count();
        if length == 0 {
            let space = space_len(&code[at..]);
            // Only white space may stand between `def` and its name.
            defines &= space > 0;
            at += space.max(1);
            continue;
        }
        let word = &code[at..at + length];
        at += length;
        let name = &word[word.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
        let mut next = at;
        while next < code.len() && space_len(&code[next..]) > 0 {
            next += space_len(&code[next..]);
        }
        let whole = name.len() == word.len();
        let names = match code.get(next) {
            Some(b'=') => u32::from(!name.is_empty()),
            Some(b'(') => u32::from(defines && whole),
            _ => 0,
        };
        all += names;
        good += if name.iter().any(u8::is_ascii_uppercase) { 0 } else { names };
        defines = word.ends_with(b"def") && next > at;
        at = next;
    }
    (good, all)
}

/// How many names that the code binds are good, and how many there are; nothing where it is no Python.
fn bound_names(parser: &mut PythonParser, code: &str) -> Option<(u32, u32)> {
    let names = parser.bound_names(code.trim_matches(is_space)).ok()?;
    let good = names.iter().filter(|bound| is_good(bound)).count();
    Some((good as u32, names.len() as u32))
}

fn is_good(bound: &BoundName<'_>) -> bool {
    let small = !bound.name.contains(char::is_uppercase);
    match bound.kind {
        NameKind::Function | NameKind::Parameter => small,
        NameKind::Variable => small || !bound.name.contains(char::is_lowercase),
        NameKind::Class => {
            let name = bound.name.trim_start_matches('_');
            !name.contains('_') && !name.starts_with(char::is_lowercase)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::scored;
    use serde_json::json;

    #[test]
    fn names_are_counted_as_the_text_shows_them() {
        for (code, counted) in [
            ("x = 1; Y=2", (1, 2)),
            ("def f(a, keyArg = 1): x == y", (2, 3)),
            ("def doIt (self): pass", (0, 1)),
            ("asyncdef g(A=1)", (1, 2)),
            ("def  f\n(x)", (1, 1)),
            ("defx(a)", (0, 0)),
            ("def 1f(a)", (0, 0)),
            ("1x = 2", (1, 1)),
            ("12 = 2", (0, 0)),
            ("def def(a)", (1, 1)),
            ("def def a(b)", (1, 1)),
            ("def f, g(a)", (0, 0)),
            ("x变 = 1; é = 2", (0, 0)),
            ("变x\u{3000}= 1", (1, 1)),
            ("x >= y != z := 1 += 2", (0, 0)),
            ("self.fooBar = 1  # aB = 1", (0, 2)),
            ("", (0, 0)),
        ] {
            assert_eq!(text_names(code.as_bytes()), counted, "{code}");
        }
    }

    #[test]
    fn tabs_and_spaces_do_not_mix() {
        for (code, steady) in [
            ("if a:\n  b\n      c", true),
            ("if a:\n\tb\n\tc", true),
            ("if a:\n\tb\n  c", false),
            (" \ta\n\t b", false),
            ("if a:\n\tb\n  \nc", true),
        ] {
            assert_eq!(is_steady(code), steady, "{code:?}");
        }
    }

    #[test]
    fn bound_names_are_those_of_the_code() {
        let score = |code: &str, names: &str| {
            scored::<CodeStyle>(json!({"names": names}), &format!("```py\n{code}\n```")).value()
        };
        for (code, text, bound) in [
            ("MAX_SIZE = 1", 0.5, 1.0),
            ("f(keyArg=1)", 0.5, 1.0),
            ("x == y and aB == c", 0.75, 1.0),
            ("# aB = 1", 0.5, 1.0),
            ("s = 'aB = 1'", 0.75, 1.0),
            ("class my_class:\n    pass", 1.0, 0.5),
            ("class _MyClass(Base): pass", 1.0, 1.0),
            ("def doIt(self): pass", 0.5, 0.75),
            ("myVar = 1", 0.5, 0.5),
            ("变量 = 1", 1.0, 1.0),
            ("no python here", 1.0, 0.5),
        ] {
            assert_eq!((score(code, "text"), score(code, "bound")), (Some(text), Some(bound)), "{code}");
        }
    }

    #[test]
    fn blocks_count_alike_and_none_is_nothing() {
        let outcome = scored::<CodeStyle>(json!({}), "```py\nA = 1\n```\n```\nb\n```\n```python\n\n```");
        assert_eq!(outcome.value(), Some(0.75));
        let fact = |name: &str| outcome.info().and_then(|info| info.get(name)).cloned();
        assert_eq!(fact("total_blocks"), Some(Fact::Count(2)));
        assert_eq!((fact("good_names"), fact("total_names")), (Some(Fact::Count(0)), Some(Fact::Count(1))));
        assert_eq!(scored::<CodeStyle>(json!({}), "no code").value(), Some(0.0));
    }
}
