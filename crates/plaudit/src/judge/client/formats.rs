//! Answer formats of one judge, learned from its replies: in which format each kind of question is asked, and why better
//! ones were left.
//!
//! A format is *proven* by its first verdict. Until then one call at a time tries it, so that a wrong one costs at most
//! [`TRIES`] replies. It is left when the endpoint refuses it, when it gives no probabilities, or after several replies in a
//! row without a verdict. A format that was left is not tried again, with two exceptions: an endpoint that refuses every
//! format did not mean the format, and a proven one is better than a last one that never gives a verdict.

use crate::judge::answer::{AnswerFormat, QuestionKind};
use crate::reason::Code;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many replies in a row without a verdict end a format that has never given one. One is enough where the endpoint
/// gives no probabilities.
const TRIES: u32 = 3;
/// How many replies in a row without a verdict end a format that has given some.
const PATIENCE: u32 = 8;

/// All formats, best first.
const FORMATS: [AnswerFormat; 3] = [AnswerFormat::Logprobs, AnswerFormat::Json, AnswerFormat::Tag];

/// What is known of one format for one kind of question.
#[derive(Debug, Clone, Default)]
struct Trial {
    /// Whether it has given a verdict.
    proven: bool,
    /// Replies so far.
    replies: u32,
    /// Replies in a row without a verdict.
    unread: u32,
    /// Why it is left.
    left: Option<Code>,
}

/// The formats of one judge, for each kind of question.
#[derive(Debug, Default)]
pub(super) struct FormatTable {
    trials: BTreeMap<(QuestionKind, AnswerFormat), Trial>,
    /// How often an endpoint refused every format of a kind of question.
    all_refused: BTreeMap<QuestionKind, u32>,
    changed: bool,
}

/// In which format a judge is asked one kind of question, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FormatReply")]
pub struct FormatChoice {
    /// The kind of question: `score`, `pair`, `ranking` or `free`.
    pub question: &'static str,
    /// The format: `logprobs`, `json` or `tag`.
    pub format: &'static str,
    /// The better formats that were left, each with the reason's code.
    pub left: BTreeMap<&'static str, &'static str>,
    /// All of it in words, such as `verdicts on pairs by json: logprobs gave no usable probabilities`.
    pub text: String,
}

impl FormatTable {
    /// The best of the formats that is not left, and whether there is a worse one.
    pub(super) fn choose(
        &self,
        kind: QuestionKind,
        formats: &[AnswerFormat],
    ) -> Option<(AnswerFormat, bool)> {
        let open = formats.iter().position(|format| !self.is_left(kind, *format));
        let at = open.or_else(|| formats.len().checked_sub(1))?;
        Some((formats[at], at + 1 < formats.len()))
    }

    pub(super) fn is_left(&self, kind: QuestionKind, format: AnswerFormat) -> bool {
        self.trial(kind, format).is_some_and(|trial| trial.left.is_some())
    }

    /// Whether one call at a time should ask in it, until it is known to work.
    pub(super) fn is_on_trial(&self, kind: QuestionKind, format: AnswerFormat) -> bool {
        self.trial(kind, format).is_none_or(|trial| !trial.proven && trial.replies < TRIES)
    }

    /// The formats among these that have given verdicts before they were left, so that the record may hold some.
    pub(super) fn left_with_verdicts(
        &self,
        kind: QuestionKind,
        formats: &[AnswerFormat],
    ) -> Vec<AnswerFormat> {
        let had = |trial: &Trial| trial.proven && trial.left.is_some();
        formats.iter().copied().filter(|format| self.trial(kind, *format).is_some_and(had)).collect()
    }

    /// Takes in how a reply was read, and whether a worse format is there to go on to.
    pub(super) fn observe(
        &mut self,
        kind: QuestionKind,
        format: AnswerFormat,
        read: Result<(), Code>,
        has_next: bool,
    ) {
        let trial = self.trials.entry((kind, format)).or_default();
        trial.replies = trial.replies.saturating_add(1);
        let code = match read {
            Ok(()) => {
                self.changed |= !trial.proven;
                (trial.proven, trial.unread) = (true, 0);
                return;
            }
            // Says something of the question, and nothing of the format.
            Err(Code::JudgeRefusal | Code::JudgeContentFilter) => return,
            Err(code) => code,
        };
        trial.unread = trial.unread.saturating_add(1);
        let most = match (trial.proven, code) {
            (false, Code::JudgeNoLogprobs) => 1,
            (true, Code::JudgeNoLogprobs) | (false, _) => TRIES,
            (true, _) => PATIENCE,
        };
        if has_next && trial.unread >= most {
            self.changed |= trial.left.is_none();
            trial.left.get_or_insert(code);
        } else if !has_next && !trial.proven && trial.unread >= PATIENCE {
            trial.unread = 0;
            self.take_back(kind, |left| left.proven);
        }
    }

    /// Takes in that the endpoint refused a request in the format, and whether it named the format as the cause.
    pub(super) fn refuse(&mut self, kind: QuestionKind, format: AnswerFormat, named: bool, has_next: bool) {
        let trial = self.trials.entry((kind, format)).or_default();
        if has_next && (named || !trial.proven) {
            self.changed |= trial.left.is_none();
            trial.left.get_or_insert(Code::JudgeClientError);
        } else if !has_next && !named && !trial.proven {
            let refused = self.all_refused.entry(kind).or_insert(0);
            *refused += 1;
            if *refused <= TRIES {
                self.take_back(kind, |left| left.left == Some(Code::JudgeClientError));
            }
        }
    }

    fn take_back(&mut self, kind: QuestionKind, which: impl Fn(&Trial) -> bool) {
        for ((of, _), trial) in &mut self.trials {
            if *of == kind && trial.left.is_some() && which(trial) {
                (trial.left, trial.unread, self.changed) = (None, 0, true);
            }
        }
    }

    fn trial(&self, kind: QuestionKind, format: AnswerFormat) -> Option<&Trial> {
        self.trials.get(&(kind, format))
    }

    /// What the record keeps, such as `pair-logprobs=judge.no_logprobs pair+json`, where it has changed. A format that
    /// has given verdicts and was left has `~` instead of `-`.
    pub(super) fn take_changed(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let word = |((kind, format), trial): (&(QuestionKind, AnswerFormat), &Trial)| {
            let (kind, format) = (kind.as_str(), format.as_str());
            match (trial.left, trial.proven) {
                (Some(code), proven) => {
                    Some(format!("{kind}{}{format}={}", if proven { '~' } else { '-' }, code.as_str()))
                }
                (None, true) => Some(format!("{kind}+{format}")),
                (None, false) => None,
            }
        };
        Some(self.trials.iter().filter_map(word).collect::<Vec<_>>().join(" "))
    }

    /// Takes in what the record has kept. A word without a kind of question holds for all kinds.
    pub(super) fn load(&mut self, kept: &str) {
        for word in kept.split(' ') {
            let (word, code) = word.split_once('=').unwrap_or((word, ""));
            let Some(at) = word.find(['+', '-', '~']) else { continue };
            let (kind, sign, format) = (&word[..at], &word[at..=at], &word[at + 1..]);
            let Some(format) = AnswerFormat::named(format) else { continue };
            let code = Code::parse(code);
            for known in
                QuestionKind::ALL.into_iter().filter(|known| kind.is_empty() || known.as_str() == kind)
            {
                let trial = self.trials.entry((known, format)).or_default();
                trial.proven = sign != "-";
                trial.left = (sign != "+").then(|| code.unwrap_or(Code::JudgeNoLogprobs));
            }
        }
    }

    /// In which format each kind of question is asked that has been asked so far.
    pub(super) fn choices(&self) -> Vec<FormatChoice> {
        let kinds = QuestionKind::ALL.into_iter();
        kinds.filter_map(|kind| self.choice(kind)).collect()
    }

    fn choice(&self, kind: QuestionKind) -> Option<FormatChoice> {
        let tried = FORMATS.iter().filter_map(|format| Some((*format, self.trial(kind, *format)?)));
        let (left, open): (Vec<_>, Vec<_>) = tried.partition(|(_, trial)| trial.left.is_some());
        let (format, _) = open.first()?;
        let left: Vec<(AnswerFormat, Code)> =
            left.into_iter().filter_map(|(format, trial)| Some((format, trial.left?))).collect();
        let why = left.iter().map(|(format, code)| format!("{} {}", format.as_str(), why(*code)));
        let why = why.collect::<Vec<_>>().join(", ");
        let text = format!("verdicts on {} by {}", kind.plural(), format.as_str());
        let text = if why.is_empty() { text } else { format!("{text}: {why}") };
        let left = left.into_iter().map(|(format, code)| (format.as_str(), code.as_str())).collect();
        Some(FormatChoice { question: kind.as_str(), format: format.as_str(), left, text })
    }
}

/// Why a format was left, in words that follow its name.
fn why(code: Code) -> String {
    match code {
        Code::JudgeNoLogprobs => "gave no usable probabilities".to_owned(),
        Code::JudgeClientError => "was refused by the endpoint".to_owned(),
        code => format!("gave replies without a verdict ({})", code.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AnswerFormat::{Json, Logprobs, Tag};
    use QuestionKind::{Pair, Score};

    const ALL: &[AnswerFormat] = &FORMATS;

    fn format(table: &FormatTable) -> AnswerFormat {
        table.choose(Pair, ALL).expect("a format").0
    }

    /// The format after replies that were read as said.
    fn after(table: &mut FormatTable, reads: &[Result<(), Code>]) -> AnswerFormat {
        for read in reads {
            let (format, has_next) = table.choose(Pair, ALL).expect("a format");
            table.observe(Pair, format, *read, has_next);
        }
        format(table)
    }

    #[test]
    fn a_reply_without_probabilities_is_enough() {
        let mut table = FormatTable::default();
        assert_eq!(after(&mut table, &[Err(Code::JudgeNoLogprobs)]), Json);
        assert_eq!(after(&mut table, &[Ok(())]), Json);
        assert_eq!(table.choose(Score, ALL), Some((Logprobs, true)), "another kind of question is apart");
        assert_eq!(
            table.choices()[0].text,
            "verdicts on pairs by json: logprobs gave no usable probabilities"
        );
    }

    #[test]
    fn replies_without_a_verdict_end_a_format_in_a_row() {
        let prose = Err(Code::JudgeSchema);
        let mut table = FormatTable::default();
        assert_eq!(after(&mut table, &[prose, prose]), Logprobs);
        assert!(table.is_on_trial(Pair, Logprobs));
        assert_eq!(after(&mut table, &[prose]), Json);
        let mut proven = FormatTable::default();
        assert_eq!(after(&mut proven, &[Ok(())]), Logprobs);
        assert!(!proven.is_on_trial(Pair, Logprobs));
        for _ in 0..20 {
            assert_eq!(after(&mut proven, &[prose, prose, prose, prose, prose, Ok(())]), Logprobs);
        }
        assert_eq!(after(&mut proven, &[prose; PATIENCE as usize]), Json);
        assert_eq!(proven.left_with_verdicts(Pair, ALL), [Logprobs]);
    }

    #[test]
    fn refusals_of_the_judge_say_nothing_of_a_format() {
        let mut table = FormatTable::default();
        assert_eq!(after(&mut table, &[Err(Code::JudgeRefusal); 50]), Logprobs);
        assert!(!table.is_on_trial(Pair, Logprobs), "calls are not made one by one for ever");
    }

    #[test]
    fn a_named_format_is_left_whenever_it_is_refused() {
        let mut table = FormatTable::default();
        after(&mut table, &[Ok(())]);
        table.refuse(Pair, Logprobs, false, true);
        assert_eq!(format(&table), Logprobs, "one bad request");
        table.refuse(Pair, Logprobs, true, true);
        assert_eq!(format(&table), Json);
    }

    #[test]
    fn an_endpoint_that_refuses_everything_is_believed_late() {
        let mut table = FormatTable::default();
        for calls in 1..=5 {
            table.refuse(Pair, Logprobs, false, true);
            table.refuse(Pair, Json, false, true);
            assert_eq!(format(&table), Tag);
            table.refuse(Pair, Tag, false, false);
            assert_eq!(format(&table), if calls <= TRIES { Logprobs } else { Tag });
        }
    }

    #[test]
    fn a_proven_format_comes_back_where_the_last_one_is_no_better() {
        let prose = Err(Code::JudgeEmpty);
        let mut table = FormatTable::default();
        assert_eq!(after(&mut table, &[Ok(())]), Logprobs);
        assert_eq!(after(&mut table, &[prose; (PATIENCE + TRIES) as usize]), Tag);
        assert_eq!(after(&mut table, &[prose; PATIENCE as usize]), Logprobs);
    }

    #[test]
    fn the_record_keeps_what_was_learned() {
        let mut table = FormatTable::default();
        after(&mut table, &[Ok(())]);
        after(&mut table, &[Err(Code::JudgeSchema); PATIENCE as usize]);
        after(&mut table, &[Ok(())]);
        let kept = table.take_changed().expect("changed");
        assert_eq!(kept, "pair~logprobs=judge.schema pair+json");
        assert_eq!(table.take_changed(), None);
        let mut again = FormatTable::default();
        again.load(&kept);
        assert_eq!((format(&again), again.choices()), (Json, table.choices()));
        assert_eq!(again.left_with_verdicts(Pair, ALL), [Logprobs]);
        let mut old = FormatTable::default();
        old.load("-logprobs +json junk pair+nothing");
        assert_eq!(format(&old), Json);
        assert_eq!(old.choose(Score, ALL), Some((Json, true)));
    }
}
