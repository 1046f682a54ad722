//! `choice`: whether a response picks the right option of a multiple-choice question.

use super::choice_answer::{self, Chosen};
use super::choice_options::ChoiceOptions;
use super::choice_published;
use super::math_verify_reward::secret_seed;
use super::pattern::Searcher;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use plaudit_text::{after_thought, strip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// 1 where the response picks the right option of a multiple-choice question, else 0.
///
/// ## What it scores
/// The options stand in `extra.options` or `extra.choices`: a list of `{"A": "text"}`, of `{"label": "A", "text": "text"}` or of pairs, an object
/// `{"A": "text", ...}`, a list of texts, `{"label": [...], "text": [...]}`, one of these as JSON or as a literal of Python, or one text as
/// `A) 5 B) 6` or with a line each; or they have fields of their own: `A`, `B`, ..., `option_a`, `opa`. Labels are letters
/// or digits, and a list of texts may bring its own (`A)5`). The right one is the reference, else `extra.expected_answer`: a letter or
/// digit, also as a phrase ("Option C"), or the text of an option, or else its place from 0 on, as MMLU has it, or a list of these that name one and the same option; a list that names several makes the rollout
/// invalid. A letter that names an option is that option, though it be the text of another. Without options any letter may be the answer.
///
/// The answer is looked for after the thinking, where `mode` says; `auto` takes the last `\boxed{...}` that is no blank, else the last
/// `<answer>` pair, else the last line with a mark that `math_verify_reward` knows too: "Answer:", "the answer must be", "option C is right",
/// "my choice is C", 故选 C, "la respuesta es C" and its like in twenty languages, and `####` on the last line or before a letter alone. Else it is a response or a last line that is nothing but
/// an answer. It counts where it names one option: a letter alone (`B`, `(b)`, `**B**`, full-width or in Arabic or Bengali), a letter with a
/// mark and a text (`B) glass`), the text of one option, a formula that equals one option's in mathematics, or the only letter that a
/// sentence affirms ("A is wrong, so B"). Denied letters and articles do not count, and a list of letters (`A、B`, `A or B`) names none.
///
/// A row may bring its own patterns in `extra.template_metadata.output_regex`, as in NeMo-Gym: the first of them that matches decides, by
/// its last match in the last 16 KiB, whatever the case. `patterns` says the same for all rows.
///
/// The info has the letter as `answer`, `answered` (1 where one option was named), and `why`: `equal`, `different`, `ambiguous` (two options
/// at once), `outside` (a letter without an option) or `no_answer`. All but the first get 0. Thinking that never ends gets the floor
/// with `format.unclosed_think`. A rollout without a reference is skipped; options that cannot be read, a reference that is none of
/// them and a pattern that is none make it invalid.
///
/// ## When to use it
/// For GPQA, MMLU, ARC and their like. Ask for one form of the answer in the prompt and name it in `mode`: the fewer places are looked at,
/// the less is guessed. `semantics: published` reproduces NeMo-Gym's `mcqa`, with its faults.
///
/// ## How it can be gamed
/// By a guess: with four options a quarter is right. Let groups be large, and watch `answered`. A pattern of one's own may match anywhere
/// in the response. With `semantics: published` "anything but the glass rod" is the glass rod, and "B. coli" is B.
///
/// ## Example
/// ```yaml
/// right: { reward: choice, weight: 1.0, mode: lenient_boxed }
/// ```
///
/// ## References
/// NeMo-Gym `mcqa`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Choice {
    /// Where the answer is looked for. Without it `extra.grading_mode` says it, where a row has that, and else it is `auto`.
    pub mode: Option<ChoiceMode>,
    /// Patterns whose last match is the answer: the first group, or all of the match where there is none. Where none of them matches,
    /// `mode` decides. A row's own patterns come before them.
    pub patterns: Vec<String>,
    /// How answers are read.
    pub semantics: ChoiceSemantics,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for Choice {
    fn default() -> Self {
        Self { mode: None, patterns: Vec::new(), semantics: ChoiceSemantics::Corrected, scope: Scope::Final }
    }
}

/// Where an answer is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceMode {
    /// In the last box, else in `<answer>` tags, after "Answer:" or "the answer is", or as all there is.
    Auto,
    /// In the last box, as a letter.
    StrictSingleLetterBoxed,
    /// In the last box, as a letter or as the text of an option.
    LenientBoxed,
    /// After the last `Answer:` that says something.
    LenientAnswerColon,
    /// The same; NeMo-Gym has two readers of such lines.
    LenientAnswerColonMd,
}

/// How answers are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChoiceSemantics {
    /// As a reader would.
    Corrected,
    /// As NeMo-Gym's `mcqa` does: the thinking is text like any other, and `auto` is `lenient_boxed`.
    Published,
}

/// How much of the end of a response is searched for a pattern, in bytes: a little, and more where nothing is found there.
const SEARCHED: [usize; 2] = [1 << 12, 1 << 14];
/// The most patterns of a row or a component.
const MAX_PATTERNS: usize = 16;

impl Reward<Rule> for Choice {
    const NAME: &'static str = "choice";
    const NEEDS_REFERENCE: bool = true;
    const CORRECTNESS: bool = true;
    const FACTS: &'static [&'static str] = &["answered"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let few = ParamError::check(self.patterns.len() <= MAX_PATTERNS, "patterns", "are at most 16");
        let compiled: Result<Vec<_>, _> = self.patterns.iter().map(|pattern| searcher(pattern)).collect();
        let compiled = compiled.map_err(|message| ParamError::new("patterns", message));
        let patterns = ParamError::gather([few], compiled)?;
        let seed = secret_seed().map_err(|error| vec![error])?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(&patterns, sample, seed)))
    }
}

/// A pattern that ignores the case, with at most one group where it has any.
fn searcher(pattern: &str) -> Result<Searcher, String> {
    Searcher::new(&format!("(?i){pattern}"))
}

impl Choice {
    fn score(&self, patterns: &[Searcher], sample: &RuleInput<'_>, seed: u64) -> Result<Outcome, Outcome> {
        let options = ChoiceOptions::of(sample)?;
        if self.semantics == ChoiceSemantics::Published && options.are_numbered() {
            return Err(bad_row("The options of the question are not named by letters.".to_owned()));
        }
        let right = self.right(sample, &options)?;
        let options = match self.semantics {
            ChoiceSemantics::Corrected => options.without_twins(right),
            ChoiceSemantics::Published => options,
        };
        let mode = self.mode(sample)?;
        let text = self.scope.of(sample.text);
        let text = match self.semantics {
            ChoiceSemantics::Corrected => {
                after_thought(text).ok_or_else(|| Outcome::floored(0.0, Code::UnclosedThink))?
            }
            ChoiceSemantics::Published => strip(text),
        };
        let own = self.own_patterns(sample)?;
        let mut work = 0;
        for pattern in own.iter().chain(patterns) {
            let found = self.matched(pattern, text, &options, (&mut work, seed))?;
            if found != Chosen::Nothing {
                return Ok(outcome(found, right));
            }
        }
        let found = match self.semantics {
            ChoiceSemantics::Corrected => choice_answer::read(text, mode, &options, seed),
            ChoiceSemantics::Published => letter(choice_published::read(text, mode, &options)),
        };
        Ok(outcome(found, right))
    }

    /// The letter of the right option.
    fn right(&self, sample: &RuleInput<'_>, options: &ChoiceOptions) -> Result<char, Outcome> {
        let number;
        let expected = match sample.extra.get("expected_answer") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(Value::Number(written)) => {
                number = written.to_string();
                Some(number.as_str())
            }
            Some(_) if sample.reference.is_some() => None,
            Some(_) => return Err(bad_row("The row's expected_answer is no text.".to_owned())),
        };
        let read = |reference: &str| match self.semantics {
            ChoiceSemantics::Corrected => choice_answer::reference(reference, options),
            ChoiceSemantics::Published => super::choice_options::single(&reference.to_uppercase()),
        };
        let letter = match (sample.reference, expected) {
            (None, Some(expected)) => read(strip(expected)),
            (Some(reference), _) if let Some(all) = reference.accepted() => {
                let letters: BTreeSet<Option<char>> = all.iter().map(|one| read(one.stripped())).collect();
                if letters.len() > 1 {
                    return Err(bad_row(
                        "The reference has several answers, and one option is right.".to_owned(),
                    ));
                }
                letters.first().copied().ok_or_else(|| Outcome::skipped(Code::EmptyReference))?
            }
            _ => read(sample.reference()?.stripped()),
        };
        letter.ok_or_else(|| match options.0.is_empty() {
            // A reference that is no letter is that of another kind of task.
            true => Outcome::skipped(Reason::new(
                Code::MissingExtra,
                "The rollout has no options, and its reference is no letter.",
            )),
            false => bad_row("The reference is neither the letter nor the text of an option.".to_owned()),
        })
    }

    fn mode(&self, sample: &RuleInput<'_>) -> Result<ChoiceMode, Outcome> {
        if let Some(mode) = self.mode {
            return Ok(mode);
        }
        match sample.extra.get("grading_mode").filter(|mode| !mode.is_null()) {
            None => Ok(ChoiceMode::Auto),
            Some(mode) => ChoiceMode::deserialize(mode)
                .map_err(|_| bad_row("The row's grading_mode is not known.".to_owned())),
        }
    }

    /// The patterns that the row brings.
    fn own_patterns(&self, sample: &RuleInput<'_>) -> Result<Vec<Searcher>, Outcome> {
        let given = match sample.extra.get("template_metadata") {
            None | Some(Value::Null) => None,
            Some(Value::Object(metadata)) => metadata.get("output_regex"),
            Some(_) => return Err(bad_row("The row's template_metadata is no object.".to_owned())),
        };
        let written: Vec<&Value> = match given {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(all)) => all.iter().collect(),
            Some(one) => vec![one],
        };
        if written.len() > MAX_PATTERNS {
            return Err(bad_row("The row has more than 16 patterns.".to_owned()));
        }
        let mut patterns = Vec::new();
        for pattern in written {
            let pattern =
                pattern.as_str().ok_or_else(|| bad_row("A pattern of the row is no text.".to_owned()))?;
            match searcher(pattern) {
                Ok(pattern) => patterns.push(pattern),
                // The origin passes over what its engine cannot compile.
                Err(message)
                    if self.semantics == ChoiceSemantics::Published
                        && message.starts_with("regex_syntax") => {}
                Err(message) => {
                    return Err(bad_row(format!("A pattern of the row cannot be used: {message}.")));
                }
            }
        }
        Ok(patterns)
    }

    fn matched(
        &self,
        pattern: &Searcher,
        text: &str,
        options: &ChoiceOptions,
        (work, seed): (&mut usize, u64),
    ) -> Result<Chosen, Outcome> {
        let mut captured = None;
        for searched in SEARCHED {
            let end = &text[text.ceil_char_boundary(text.len().saturating_sub(searched))..];
            captured = pattern.last(end, work).map_err(|code| Outcome::floored(0.0, code))?;
            if captured.is_some() || end.len() == text.len() {
                break;
            }
        }
        let Some(captured) = captured else { return Ok(Chosen::Nothing) };
        match self.semantics {
            ChoiceSemantics::Corrected => Ok(choice_answer::captured(captured, options, seed)),
            ChoiceSemantics::Published if pattern.groups() > 1 => {
                let message = "A pattern of the row has more than one group, which its origin cannot read.";
                Err(bad_row(message.to_owned()))
            }
            ChoiceSemantics::Published => Ok(letter(choice_published::captured(captured, options))),
        }
    }
}

fn bad_row(what: String) -> Outcome {
    Outcome::invalid(Reason::new(Code::BadOptions, what))
}

fn letter(found: Option<char>) -> Chosen {
    found.map_or(Chosen::Nothing, Chosen::Letter)
}

fn outcome(found: Chosen, right: char) -> Outcome {
    let (value, why, answer) = match found {
        Chosen::Letter(letter) if letter == right => (1.0, "equal", Some(letter)),
        Chosen::Letter(letter) => (0.0, "different", Some(letter)),
        Chosen::Ambiguous => (0.0, "ambiguous", None),
        Chosen::Outside => (0.0, "outside", None),
        Chosen::Nothing => (0.0, "no_answer", None),
    };
    let answered = Fact::Count(u64::from(answer.is_some()));
    let mut info = Info::of([("why", Fact::Word(why)), ("answered", answered)]);
    if let Some(letter) = answer {
        info.push("answer", Fact::Text(letter.to_string()));
    }
    Outcome::scored(value, info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one, rejected};
    use serde_json::json;

    fn ask(parameters: Value, response: &str, reference: Option<&str>, extra: Value) -> Outcome {
        let extra = extra.as_object().unwrap().clone();
        one::<Choice>(parameters, TestRollout { response, reference, extra, ..TestRollout::default() })
    }

    fn why(outcome: &Outcome) -> String {
        match outcome.info().and_then(|info| info.get("why")) {
            Some(Fact::Word(word)) => (*word).to_owned(),
            _ => outcome.reason().map_or("", |reason| reason.code.as_str()).to_owned(),
        }
    }

    #[test]
    fn wrong_and_no_answer_are_told_apart() {
        let extra = json!({"options": ["red", "blue", "green"]});
        for (response, value, word) in [
            ("\\boxed{B}", 1.0, "equal"),
            ("\\boxed{blue}", 1.0, "equal"),
            ("\\boxed{C}", 0.0, "different"),
            ("\\boxed{D}", 0.0, "outside"),
            ("\\boxed{A or B}", 0.0, "ambiguous"),
            ("I cannot say.", 0.0, "no_answer"),
            ("<think>\\boxed{B}</think> I cannot say.", 0.0, "no_answer"),
            ("<think>\\boxed{B}", 0.0, "format.unclosed_think"),
        ] {
            let outcome = ask(json!({}), response, Some("B"), extra.clone());
            assert_eq!((outcome.value(), why(&outcome).as_str()), (Some(value), word), "{response}");
            for reference in ["blue", "Option B", "The answer is B.", "\\boxed{B}", "1"] {
                let outcome = ask(json!({}), response, Some(reference), extra.clone());
                assert_eq!(outcome.value(), Some(value), "{response} {reference}");
            }
        }
    }

    #[test]
    fn texts_of_options_may_be_twice_there_or_have_lines() {
        let twice = json!({"options": ["8.75", "8.79", "8.75"]});
        for (response, word) in
            [("The answer is 8.75.", "equal"), ("(C)", "equal"), ("(A)", "different"), ("8.79", "different")]
        {
            assert_eq!(why(&ask(json!({}), response, Some("C"), twice.clone())), word, "{response}");
        }
        let lines = json!({"options": ["sort\njoin", "join\nsort"]});
        for (response, word) in
            [("B. join\nsort", "equal"), ("A. sort\njoin", "different"), ("B. sort\njoin", "no_answer")]
        {
            assert_eq!(why(&ask(json!({}), response, Some("B"), lines.clone())), word, "{response}");
        }
    }

    #[test]
    fn a_list_of_letters_is_no_answer() {
        for (response, word) in [
            ("【答案】A、B <eoa>", "ambiguous"),
            ("【答案】A、B、C、D <eoa>", "ambiguous"),
            ("Answer: A. Red B. Blue C. Green", "ambiguous"),
            ("【答案】A. ①② B. ①③ C. ②④ D. ③④ <eoa>", "ambiguous"),
            ("Answer: A. Blue is cold. B. is wrong, C. is wrong.", "equal"),
            ("【答案】A <eoa>", "equal"),
            ("Fill \\boxed ~{\\textasciitilde} in.\nWe choose option A. #### A", "equal"),
        ] {
            assert_eq!(why(&ask(json!({}), response, Some("A"), json!({}))), word, "{response}");
        }
    }

    #[test]
    fn answers_are_announced_in_many_languages() {
        for (response, word) in [
            ("Uno.\nLa respuesta correcta es la opción B.", "equal"),
            ("Eins.\nDie richtige Antwort ist B.", "equal"),
            ("Un.\nLa bonne réponse est la B.", "equal"),
            ("Um.\nA resposta correta é a letra B.", "equal"),
            ("La risposta è B.", "equal"),
            ("Правильный ответ: B", "equal"),
            ("一\n答えはBです。", "equal"),
            ("하나\n정답은 B입니다.", "equal"),
            ("Satu.\nJawabannya adalah B.", "equal"),
            ("Đáp án đúng là B.", "equal"),
            ("Bir.\nCevap: B", "equal"),
            ("واحد\nالإجابة: B", "equal"),
            ("एक\nउत्तर: B", "equal"),
            ("La respuesta es A.", "different"),
            ("Antwort: A oder B", "ambiguous"),
            ("Réponse : A ou B", "ambiguous"),
            ("Ответ: A или B", "ambiguous"),
            ("Answer: B (or C)", "ambiguous"),
            ("Answer: B, maybe C", "ambiguous"),
            ("Answer: B–C", "ambiguous"),
            ("La respuesta no es B.", "no_answer"),
            ("Die Antwort ist nicht B.", "no_answer"),
        ] {
            let outcome = ask(json!({}), response, Some("B"), json!({"options": ["red", "blue", "green"]}));
            assert_eq!(why(&outcome), word, "{response}");
        }
    }

    #[test]
    fn data_that_are_at_fault_give_no_number() {
        let pattern =
            |pattern: Value| json!({"options": ["x", "y"], "template_metadata": {"output_regex": pattern}});
        for (reference, extra, word) in [
            (None, json!({"options": ["x"]}), "input.missing_reference"),
            (Some(" "), json!({"options": ["x"]}), "input.empty_reference"),
            (Some("42"), json!({}), "input.missing_extra"),
            (Some("D"), json!({"options": ["x", "y"]}), "input.options"),
            (Some("A"), json!({"options": 3}), "input.options"),
            (Some("A"), json!({"options": ["x"], "grading_mode": "loose"}), "input.options"),
            (Some("A"), pattern(json!("[")), "input.options"),
            (Some("A"), pattern(json!(3)), "input.options"),
            (Some("A"), json!({"options": ["x"], "template_metadata": "Answer"}), "input.options"),
            (None, json!({"options": ["x"], "expected_answer": ["A"]}), "input.options"),
            (Some("2"), json!({"options": ["x", "y"]}), "input.options"),
        ] {
            let outcome = ask(json!({}), "\\boxed{A}", reference, extra.clone());
            assert_eq!((outcome.value(), why(&outcome).as_str()), (None, word), "{reference:?} {extra}");
        }
        assert_eq!(ask(json!({}), "\\boxed{q}", Some("Q"), json!({})).value(), Some(1.0));
        let nemo = json!({"options": [{"A": "x"}], "expected_answer": "a"});
        assert_eq!(ask(json!({}), "\\boxed{A}", None, nemo).value(), Some(1.0));
        let arc = json!({"choices": {"label": ["1", "2"], "text": ["x", "y"]}, "expected_answer": 2});
        assert_eq!(ask(json!({}), "\\boxed{2}", None, arc.clone()).value(), Some(1.0));
        assert_eq!(ask(json!({"semantics": "published"}), "\\boxed{2}", None, arc).value(), None);
        assert_eq!(rejected::<Choice>(json!({"patterns": ["("]})), ["patterns"]);
    }

    #[test]
    fn patterns_come_first_and_modes_after() {
        let extra = json!({"options": ["x", "y", "z"], "template_metadata": {"output_regex": ["<<(.)>>", "pick (\\w)"]}});
        for (response, word) in [
            ("pick A <<A>> <<b>>", "equal"),
            ("pick A or pick b", "equal"),
            ("<<D>> \\boxed{B}", "outside"),
            ("Answer: A. \\boxed{B}", "equal"),
        ] {
            assert_eq!(why(&ask(json!({}), response, Some("B"), extra.clone())), word, "{response}");
        }
        let long = format!("<<A>>{}<<B>>", "<<C>> ".repeat(2000));
        assert_eq!(why(&ask(json!({}), &long, Some("B"), extra)), "equal");
    }
}
