//! `code_syntax_check`: the share of the response's Python blocks that Python can parse.

use super::code_blocks::python_blocks;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use plaudit_code::{PythonParser, Syntax};
use plaudit_text::strip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of the response's Python blocks that are Python, less a penalty where one is not.
///
/// ## What it scores
/// Every closed fenced block that names Python (`python`, `py` or `python3`, in any case) or no language is parsed, white space at its ends
/// aside; nothing is run. The score is the share of blocks that parse, less `penalty` where one does not: 1 where all do, and as low as
/// minus `penalty`. A response without blocks gets 0; blocks without anything in them are left out. Valid is what
/// Python's `ast.parse` accepts: also what only the compiler refuses, such as a `return` outside of a function.
///
/// As in CPython, more than 200 nested brackets or 99 levels of indentation are a syntax error. A response is floored as
/// `model.too_complex` where its code has more than 100,000 tokens, 3,000 operators that nest in one expression or 200 nested
/// lambdas in defaults of lambdas. In blocks of more than 4 KB, and after the first 16 KB of code, f-strings are read as plain strings:
/// the expressions in them are not parsed.
///
/// ## When to use it
/// As a cheap component beside tests that run the code, or where there are none.
///
/// ## How it can be gamed
/// `pass` in a block of its own is valid Python. So is much prose of one word to a line. Count it beside what the code must do.
///
/// ## Example
/// ```yaml
/// syntax: { reward: code_syntax_check, weight: 0.2, penalty: 0.5 }
/// ```
///
/// ## References
/// RM-Gallery `code_syntax_check`; the parser is ruff's.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CodeSyntaxCheck {
    /// Which part of the response is read.
    pub scope: Scope,
    /// What is taken away where a block does not parse.
    #[schemars(range(min = 0))]
    pub penalty: f64,
    /// Whether blocks that name no language are taken for Python.
    pub bare: bool,
    /// The version of Python whose grammar counts: newer syntax is an error.
    pub python: GrammarVersion,
}

/// A version of Python.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum GrammarVersion {
    #[serde(rename = "3.8")]
    Python38,
    #[serde(rename = "3.9")]
    Python39,
    #[serde(rename = "3.10")]
    Python310,
    #[serde(rename = "3.11")]
    Python311,
    #[serde(rename = "3.12")]
    Python312,
    #[default]
    #[serde(rename = "3.13")]
    Python313,
    #[serde(rename = "3.14")]
    Python314,
}

impl GrammarVersion {
    /// The number after `3.`.
    pub(super) const fn minor(self) -> u8 {
        8 + self as u8
    }
}

impl Default for CodeSyntaxCheck {
    fn default() -> Self {
        Self { scope: Scope::Final, penalty: 0.5, bare: true, python: GrammarVersion::default() }
    }
}

impl Reward<Rule> for CodeSyntaxCheck {
    const NAME: &'static str = "code_syntax_check";
    const FACTS: &'static [&'static str] = &["valid_blocks", "total_blocks"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(-self.penalty, 1.0), move |sample| self.score(sample)))
    }
}

impl CodeSyntaxCheck {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let blocks = python_blocks(self.scope.of(sample.text), self.bare);
        let mut parser = PythonParser::new(self.python.minor());
        let (mut valid, mut first_error) = (0_u32, None);
        for (number, block) in blocks.iter().enumerate() {
            match parser.check(strip(block)) {
                Syntax::Valid => valid += 1,
                Syntax::Invalid(line) => first_error = first_error.or(Some((number, line))),
                Syntax::TooComplex => {
                    let message = "The code is larger or nested deeper than is read.";
                    return Outcome::floored(-self.penalty, Reason::new(Code::ModelTooComplex, message));
                }
            }
        }
        let share = if blocks.is_empty() { 0.0 } else { f64::from(valid) / blocks.len() as f64 };
        let mut info = Info::of([
            ("valid_blocks", Fact::Count(u64::from(valid))),
            ("total_blocks", Fact::Count(blocks.len() as u64)),
        ]);
        let Some((number, line)) = first_error else { return Outcome::scored(share, info) };
        info.push("error_block", Fact::Count(number as u64 + 1));
        if let Some(line) = line {
            info.push("error_line", Fact::Count(line as u64));
        }
        Outcome::scored(share - self.penalty, info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::scored;
    use serde_json::json;

    fn blocks(codes: &[&str]) -> String {
        codes.iter().map(|code| format!("Here:\n```python\n{code}\n```\n")).collect()
    }

    #[test]
    fn one_bad_block_costs_its_share_and_the_penalty() {
        for (codes, params, value) in [
            (&["x = 1"][..], json!({}), 1.0),
            (&["x = 1", "x = ("], json!({}), 0.0),
            (&["x = 1", "x = ("], json!({"penalty": 0.0}), 0.5),
            (&["x = ("], json!({"penalty": 2}), -2.0),
            (&[], json!({}), 0.0),
            (&["", "\n\n"], json!({}), 0.0),
            (&["", "x"], json!({}), 1.0),
            (&["type X = int"], json!({"python": "3.11"}), -0.5),
            (&["type X = int"], json!({}), 1.0),
        ] {
            let outcome = scored::<CodeSyntaxCheck>(params, &blocks(codes));
            assert_eq!(outcome.value(), Some(value), "{codes:?}");
        }
    }

    #[test]
    fn the_first_error_is_told() {
        let outcome = scored::<CodeSyntaxCheck>(json!({}), &blocks(&["a", "b\nc\nd e", "f g"]));
        let fact = |name: &str| outcome.info().and_then(|info| info.get(name)).cloned();
        assert_eq!(fact("valid_blocks"), Some(Fact::Count(1)));
        assert_eq!(fact("total_blocks"), Some(Fact::Count(3)));
        assert_eq!(fact("error_block"), Some(Fact::Count(2)));
        assert_eq!(fact("error_line"), Some(Fact::Count(3)));
    }

    #[test]
    fn blocks_without_a_language_can_be_left_out() {
        let response = "```\nno python\n```\n```python\nx\n```";
        assert_eq!(scored::<CodeSyntaxCheck>(json!({}), response).value(), Some(0.0));
        assert_eq!(scored::<CodeSyntaxCheck>(json!({"bare": false}), response).value(), Some(1.0));
    }

    #[test]
    fn deep_code_is_floored() {
        let outcome = scored::<CodeSyntaxCheck>(json!({}), &blocks(&["x", &"-".repeat(100_000)]));
        assert_eq!(outcome.value(), Some(-0.5));
        assert_eq!(outcome.reason().map(|reason| reason.code), Some(Code::ModelTooComplex));
        // CPython says that these are syntax errors.
        for deep in ["(".repeat(100_000), format!("{}{}", "(".repeat(1000), ")".repeat(1000))] {
            let outcome = scored::<CodeSyntaxCheck>(json!({}), &blocks(&["x", &deep]));
            assert_eq!((outcome.value(), outcome.reason()), (Some(0.0), None));
        }
    }
}
