//! Writes a verdict as the simulated judge's reply: text in the requested format, and tokens with log-probabilities.

use super::items::AskedItem;
use super::judge::Verdict;
use super::prompt::{Asked, Form};
use serde::Serialize;
use serde_json::json;

/// How much of the chance goes to the labels; the rest goes to words that are no verdict.
const MASS: f64 = 0.99;
/// What else the judge might have said, with its share of the rest.
const OTHERS: [(&str, f64); 3] = [("The", 0.6), ("Response", 0.3), ("I", 0.1)];
/// The smallest probability that is reported, because the logarithm of 0 is no number.
const LEAST: f64 = 1e-12;
/// Bytes of a token, in the simulation's way of counting.
pub(crate) const TOKEN: usize = 4;

/// The text of an answer in three pieces, of which the second is the verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pieces: [String; 3],
    chances: Vec<(String, f64)>,
}

/// A token of an answer with its chance, as the protocol writes it.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerToken<'t> {
    token: &'t str,
    logprob: f64,
    bytes: &'t [u8],
    top_logprobs: Vec<Top<'t>>,
}

#[derive(Debug, Serialize)]
struct Top<'t> {
    token: &'t str,
    logprob: f64,
    bytes: &'t [u8],
}

impl Answer {
    /// Says a verdict.
    pub(crate) fn new(asked: &Asked<'_>, form: Form<'_>, verdict: Verdict) -> Self {
        let Verdict { drawn, chances } = verdict;
        if let Asked::Items { items, .. } = asked {
            return Self { pieces: itemised(items, form, &drawn), chances };
        }
        let best = drawn.first().map_or("", String::as_str).to_owned();
        let reason = reason(asked, &best);
        let pieces = match form {
            // A single label is all that fits, so of a ranking it is the best.
            Form::Whole => [String::new(), best, String::new()],
            Form::Json => {
                let verdict = match asked {
                    Asked::Ranking { .. } => format!("[\"{}\"]", drawn.join("\", \"")),
                    Asked::Pair { .. } => format!("\"{best}\""),
                    Asked::Score { .. } | Asked::Share { .. } | Asked::Items { .. } => best,
                };
                quoted(format!("{{\"reason\": \"{reason}\", \"verdict\": "), verdict, "}")
            }
            Form::Tag(nonce) => {
                let close = format!("</verdict {nonce}>");
                [format!("{reason}\n<verdict {nonce}>"), drawn.join(", "), close]
            }
            Form::Result => [format!("{reason}\n<result>"), best, "</result>".to_owned()],
            Form::Score => ["{\"score\": ".to_owned(), best, "}".to_owned()],
        };
        Self { pieces, chances }
    }

    /// Says nothing that could be taken for a verdict.
    pub(crate) fn chatty() -> Self {
        let text = "That is an interesting question! There is much to be said on all sides, and what is best depends \
            on what one is looking for. Let me know if you would like to hear more.";
        Self { pieces: [text.to_owned(), String::new(), String::new()], chances: Vec::new() }
    }

    /// The text, and whether it had to be cut at so many tokens.
    pub(crate) fn text(&self, longest: Option<u64>) -> (String, bool) {
        let mut text = self.pieces.concat();
        let cut = longest.is_some_and(|longest| (text.len().div_ceil(TOKEN) as u64) > longest);
        if let (true, Some(longest)) = (cut, longest) {
            let bytes = usize::try_from(longest).unwrap_or(usize::MAX).saturating_mul(TOKEN);
            text.truncate(text.floor_char_boundary(bytes));
        }
        (text, cut)
    }

    /// The tokens of the text, each of the pieces being one, with the `top` most likely choices for the verdict.
    pub(crate) fn tokens<'t>(&'t self, text: &'t str, top: usize) -> Vec<AnswerToken<'t>> {
        let mut tokens = Vec::new();
        let mut from = 0;
        for (at, piece) in self.pieces.iter().enumerate() {
            let to = (from + piece.len()).min(text.len());
            let shown = text.get(from..to).filter(|shown| !shown.is_empty());
            if let Some(shown) = shown {
                let is_verdict = at == 1 && shown.len() == piece.len();
                tokens.push(self.token(shown, if is_verdict { top } else { 0 }));
            }
            from = to;
        }
        tokens
    }

    fn token<'t>(&'t self, text: &'t str, top: usize) -> AnswerToken<'t> {
        let own = self.chances.iter().find(|(label, _)| label == text).map(|(_, chance)| chance * MASS);
        let logprob = own.unwrap_or(MASS).max(LEAST).ln();
        let mut tops = Vec::new();
        if own.is_some() {
            let labels = self.chances.iter().map(|(label, chance)| (label.as_str(), chance * MASS));
            let others = OTHERS.iter().map(|(word, share)| (*word, share * (1.0 - MASS)));
            let mut all: Vec<(&str, f64)> = labels.chain(others).collect();
            all.sort_by(|(_, left), (_, right)| right.total_cmp(left));
            all.truncate(top);
            let top = |(token, chance): (&'t str, f64)| Top {
                token,
                logprob: chance.max(LEAST).ln(),
                bytes: token.as_bytes(),
            };
            tops = all.into_iter().map(top).collect();
        } else if top > 0 {
            tops.push(Top { token: text, logprob, bytes: text.as_bytes() });
        }
        AnswerToken { token: text, logprob, bytes: text.as_bytes(), top_logprobs: tops }
    }
}

/// The verdicts about items: alone the word itself, else an object or a line for each.
fn itemised(items: &[AskedItem<'_>], form: Form<'_>, drawn: &[String]) -> [String; 3] {
    let pairs = items.iter().zip(drawn);
    let all = match form {
        Form::Whole | Form::Result | Form::Score => {
            return [String::new(), drawn.first().map_or_else(String::new, String::clone), String::new()];
        }
        Form::Json => {
            let said = |(item, said): (&AskedItem<'_>, &String)| {
                let verdict =
                    json!({ "reason": format!("The response says as much: {said}."), "verdict": said });
                format!("\"{}\": {verdict}", item.label)
            };
            format!("{{{}}}", pairs.map(said).collect::<Vec<_>>().join(", "))
        }
        Form::Tag(nonce) => {
            let said = |(AskedItem { label, .. }, said): (&AskedItem<'_>, &String)| {
                format!("\n<verdict {nonce} {label}>{said}</verdict {nonce} {label}>")
            };
            format!("The response was read item by item.{}", pairs.map(said).collect::<String>())
        }
    };
    [all, String::new(), String::new()]
}

/// Leaves the quotes of a verdict outside it, so that its token is the label itself.
fn quoted(before: String, verdict: String, after: &str) -> [String; 3] {
    let inner = verdict.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
    match inner {
        Some(inner) => [format!("{before}\""), inner.to_owned(), format!("\"{after}")],
        None => [before, verdict, after.to_owned()],
    }
}

/// A sentence such as judges say. Labels are letters and digits, so it needs no escapes.
fn reason(asked: &Asked<'_>, best: &str) -> String {
    match asked {
        Asked::Score { shown, .. } => {
            format!("Response {} follows the principles to a degree of {best}.", shown.label)
        }
        Asked::Pair { shown, .. } if shown.iter().all(|one| one.label != best) => {
            "Both responses follow the principles equally well.".to_owned()
        }
        Asked::Pair { .. } => format!("Response {best} follows the principles more closely than the other."),
        Asked::Ranking { .. } => format!("Response {best} follows the principles most closely of all."),
        Asked::Share { .. } | Asked::Items { .. } => "The text was judged as a whole.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::Shown;
    use super::*;

    fn verdict() -> Verdict {
        let chances = [("K", 0.7), ("M", 0.2), ("T", 0.1)].map(|(label, chance)| (label.to_owned(), chance));
        Verdict { drawn: vec!["M".to_owned()], chances: chances.to_vec() }
    }

    fn asked() -> Asked<'static> {
        Asked::Pair { shown: ["K", "M"].map(|label| Shown { label, text: "x" }), tie: Some("T") }
    }

    #[test]
    fn a_pair_is_said_in_every_form() {
        let say = |form| Answer::new(&asked(), form, verdict()).text(None).0;
        let reason = "Response M follows the principles more closely than the other.";
        assert_eq!(say(Form::Whole), "M");
        assert_eq!(say(Form::Json), format!("{{\"reason\": \"{reason}\", \"verdict\": \"M\"}}"));
        assert_eq!(say(Form::Tag("8c1d")), format!("{reason}\n<verdict 8c1d>M</verdict 8c1d>"));
        assert_eq!(say(Form::Result), format!("{reason}\n<result>M</result>"));
    }

    #[test]
    fn a_ranking_is_said_in_every_form() {
        let asked = Asked::Ranking { shown: ["K", "M"].map(|label| Shown { label, text: "x" }).to_vec() };
        let ranked = || Verdict { drawn: vec!["M".to_owned(), "K".to_owned()], ..verdict() };
        let say = |form| Answer::new(&asked, form, ranked()).text(None).0;
        assert!(say(Form::Json).ends_with("\"verdict\": [\"M\", \"K\"]}"));
        assert!(say(Form::Tag("1")).ends_with("<verdict 1>M, K</verdict 1>"));
        assert_eq!(say(Form::Whole), "M");
    }

    #[test]
    fn the_verdict_carries_the_chances_of_all_labels() {
        for form in [Form::Whole, Form::Json, Form::Tag("8c1d")] {
            let answer = Answer::new(&asked(), form, verdict());
            let (text, _) = answer.text(None);
            let tokens = answer.tokens(&text, 5);
            assert_eq!(tokens.iter().map(|token| token.token).collect::<String>(), text);
            let token = tokens.iter().find(|token| token.token == "M").unwrap();
            assert!((token.logprob.exp() - 0.2 * MASS).abs() < 1e-9);
            assert_eq!(token.top_logprobs[0].token, "K");
            let labels = token.top_logprobs.iter().filter(|top| "KMT".contains(top.token));
            assert!((labels.map(|top| top.logprob.exp()).sum::<f64>() - MASS).abs() < 1e-9);
            assert_eq!(token.top_logprobs.len(), 5);
        }
    }

    #[test]
    fn an_answer_is_cut_where_tokens_run_out() {
        let answer = Answer::new(&asked(), Form::Tag("8c1d"), verdict());
        let (text, cut) = answer.text(Some(5));
        assert_eq!((text.as_str(), cut), ("Response M follows t", true));
        assert_eq!(answer.tokens(&text, 5).len(), 1);
        assert!(!answer.text(Some(u64::MAX)).1);
        assert_eq!(Answer::new(&asked(), Form::Whole, verdict()).text(Some(1)), ("M".to_owned(), false));
    }
}
