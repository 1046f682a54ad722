//! Reader of multiple-choice answers: which option a response commits to, by letter or by text.
//!
//! An answer is read where a mode looks for it (the last box, the last `Answer:` line, ...), and counts only where it names
//! one option: a letter alone, a letter with a mark and its option's text, the text itself, or the only letter that a short
//! sentence affirms. What is denied ("not A", "A is wrong") does not count, and two letters are no answer.

use super::choice::ChoiceMode;
use super::choice_denial::{
    DENYING, EXCLUDING, REFUSING, denies, is_affirmed, is_called_wrong, is_corrected, spelled_denials,
};
use super::choice_mention::{Mention, is_separator, mentions};
use super::choice_options::{
    ChoiceOptions, first, is_mark, is_one_of, matches, normal, plain, single, stands_alone,
};
use super::choice_place::{LABELS, behind_box, choice_of_mine, joined_box, labels_of, last_box, tagged};
use plaudit_math::mark::{is_blank, is_joint};
use plaudit_math::{Options, Reference};
use plaudit_text::{is_space, strip};

/// The longest box that is read, in bytes. Nothing longer is an answer, and the work stays bounded.
const MAX_LENGTH: usize = 1 << 12;
/// How much of a line is read, in bytes.
const LINE: usize = 1 << 10;
/// The longest answer that is compared as mathematics, in bytes.
const FORMULA: usize = 1 << 8;

/// What a response says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    /// One option.
    Letter(char),
    /// More than one, or a letter beside the text of another one.
    Ambiguous,
    /// A letter that no option has.
    Outside,
    /// Nothing that could be read.
    Nothing,
}

impl Chosen {
    /// The letter, where it is one.
    fn letter(self) -> Option<char> {
        match self {
            Self::Letter(letter) => Some(letter),
            Self::Ambiguous | Self::Outside | Self::Nothing => None,
        }
    }
}

/// The answer of a response whose thought is cut off.
pub(super) fn read(text: &str, mode: ChoiceMode, options: &ChoiceOptions, seed: u64) -> Chosen {
    let reader = ChoiceReader { options, seed, texts: mode != ChoiceMode::StrictSingleLetterBoxed };
    match mode {
        ChoiceMode::StrictSingleLetterBoxed | ChoiceMode::LenientBoxed => {
            last_box(text).flatten().map_or(Chosen::Nothing, |inner| reader.boxed(text, inner))
        }
        ChoiceMode::LenientAnswerColon | ChoiceMode::LenientAnswerColonMd => reader.lines(text, false),
        ChoiceMode::Auto => match (last_box(text), tagged(text)) {
            (Some(inner), _) if !inner.is_some_and(is_filling) => {
                inner.map_or(Chosen::Nothing, |inner| match reader.boxed(text, inner) {
                    // A step of the way in a box; the letter is stated behind it.
                    Chosen::Nothing if !denies(inner) => reader.lines(behind_box(text, inner), true),
                    found => found,
                })
            }
            (_, Some(inner)) => reader.payload(inner),
            (_, None) => match reader.lines(text, true) {
                Chosen::Nothing => reader.whole(text),
                found => found,
            },
        },
    }
}

/// Whether a box holds the blank of the task, such as a question mark, and no answer.
fn is_filling(inner: &str) -> bool {
    !inner.trim().is_empty() && is_blank(inner)
}

/// What a pattern captured.
pub(super) fn captured(captured: &str, options: &ChoiceOptions, seed: u64) -> Chosen {
    ChoiceReader { options, seed, texts: true }.payload(captured)
}

/// The letter that a reference names: alone, with brackets or a mark, or by its option's text.
pub(super) fn reference(reference: &str, options: &ChoiceOptions) -> Option<char> {
    let reader = ChoiceReader { options, seed: 0, texts: true };
    let reference = last_box(reference).flatten().unwrap_or(reference);
    let announced = || match reader.lines(reference, true) {
        Chosen::Nothing => {
            let bare = ["Option ", "option ", "Choice ", "选项"]
                .iter()
                .find_map(|word| reference.strip_prefix(word));
            bare.map_or(Chosen::Nothing, |bare| reader.exact(&plain(bare)))
        }
        found => found,
    };
    let found = match reader.exact(&plain(reference)) {
        Chosen::Letter(letter) => Chosen::Letter(letter),
        _ => announced(),
    };
    match found {
        Chosen::Letter(letter) => Some(letter),
        _ => indexed(reference, options),
    }
}

/// The option at a place that is a number, from 0 on, as MMLU has its answers.
fn indexed(reference: &str, options: &ChoiceOptions) -> Option<char> {
    let place = reference.parse::<usize>().ok().filter(|_| !options.are_numbered() && reference.len() < 3)?;
    options.0.get(place).map(|option| option.letter)
}

struct ChoiceReader<'o> {
    options: &'o ChoiceOptions,
    /// The secret of the points at which formulas are compared.
    seed: u64,
    /// Whether the text of an option is an answer.
    texts: bool,
}

impl ChoiceReader<'_> {
    /// The last line with a label that says something.
    fn lines(&self, text: &str, phrases: bool) -> Chosen {
        // The last line that is not blank, of those below the one that is looked at.
        let (mut below, mut labels) = ("", 0);
        for line in text.rsplit('\n') {
            // Too short for any mark; a megabyte may have as many lines.
            let labels_here = (line.len() > 2).then(|| labels_of(line, phrases, below.is_empty()));
            for at in labels_here.into_iter().flatten() {
                let rest = &line[at..];
                let payload = first(if rest.trim_matches(is_mark).is_empty() { below } else { rest }, LINE);
                let found = self.payload(payload);
                labels += 1;
                if found != Chosen::Nothing || denies(payload) || labels == LABELS {
                    return found;
                }
            }
            if !line.trim_matches(is_mark).is_empty() {
                below = line;
            }
        }
        Chosen::Nothing
    }

    /// What the last box says, unless it is joined to one that says something else: `\boxed{A} or \boxed{B}`.
    fn boxed(&self, text: &str, inner: &str) -> Chosen {
        let found = self.payload(inner);
        let joined = || joined_box(text).map(|inner| self.payload(inner));
        match (found, found.letter().and_then(|_| joined())) {
            (Chosen::Letter(letter), Some(Chosen::Letter(other))) if letter != other => Chosen::Ambiguous,
            _ => found,
        }
    }

    /// A response that is nothing but an answer, or whose last line is.
    fn whole(&self, text: &str) -> Chosen {
        let text = strip(text);
        match text.rsplit_once('\n') {
            None => self.payload(text),
            Some((_, last)) if last.len() <= LINE => {
                let last = spelled_denials(last);
                match self.exact(&plain(choice_of_mine(&last).unwrap_or(&last))) {
                    Chosen::Nothing => self.of_lines(text),
                    found => found,
                }
            }
            Some(_) => Chosen::Nothing,
        }
    }

    /// A letter, a mark and its option's own text, which has several lines.
    fn of_lines(&self, text: &str) -> Chosen {
        let mut chars = text.trim_start_matches(is_mark).chars();
        let name =
            chars.next().and_then(|char| self.options.name(char)).filter(|name| self.options.has(*name));
        let mark = chars.next().filter(|mark| matches!(mark, '.' | ')' | ':'));
        match name {
            Some(letter)
                if mark.is_some()
                    && text.len() <= MAX_LENGTH
                    && self.options.equal(&normal(chars.as_str())).any(|option| option == letter) =>
            {
                Chosen::Letter(letter)
            }
            _ => Chosen::Nothing,
        }
    }

    /// What one box, line or capture says.
    fn payload(&self, payload: &str) -> Chosen {
        if payload.len() > MAX_LENGTH {
            return Chosen::Nothing;
        }
        let written = payload;
        let payload = spelled_denials(without_copula(without_tag(payload)));
        let payload = plain(&payload);
        match self.exact(&payload) {
            Chosen::Nothing => {}
            found => return found,
        }
        match self.mentioned(payload.trim_matches(is_mark)) {
            Chosen::Nothing if self.texts => {}
            found => return found,
        }
        match self.contained(&payload) {
            Chosen::Nothing => self.mathematical(written),
            found => found,
        }
    }

    /// The only option whose text is the payload in mathematics.
    fn mathematical(&self, payload: &str) -> Chosen {
        let payload = strip(payload).trim_end_matches(['.', '。']);
        let is_formula =
            |text: &str| text.contains(|char: char| char == '\\' || char == '$' || char.is_ascii_digit());
        if payload.len() > FORMULA || !is_formula(payload) {
            return Chosen::Nothing;
        }
        let options = Options { seed: self.seed, ..Options::default() };
        let equal = |text: &str| {
            Reference::parse(text, &options).is_ok_and(|option| option.compare(payload).outcome.is_right())
        };
        let formulas = self.options.0.iter().filter(|option| is_formula(&option.written));
        let mut found = formulas.filter(|option| equal(&option.written)).map(|option| option.letter);
        match (found.next(), found.next()) {
            (Some(letter), None) => Chosen::Letter(letter),
            (Some(_), Some(_)) => Chosen::Ambiguous,
            (None, _) => Chosen::Nothing,
        }
    }

    /// A letter alone, a letter with a mark and a text, or the text of an option.
    fn exact(&self, payload: &str) -> Chosen {
        let named = single(payload.trim_matches(is_mark)).and_then(|char| self.options.name(char));
        // A letter names its option, in brackets or not, though it be the text of another one.
        if let Some(letter) = named.filter(|letter| letter.is_ascii_alphabetic() && self.options.has(*letter))
        {
            return Chosen::Letter(letter);
        }
        // The text of an option may begin or end with a mark, and may be a single letter.
        for text in
            [strip(payload), strip(payload).trim_end_matches(['.', '。']), payload.trim_matches(is_mark)]
        {
            let mut equal = self.options.same(&normal(text)).collect::<Vec<_>>();
            // Texts that differ in their case alone, as those of genes.
            if equal.len() > 1 && equal.iter().any(|letter| self.options.is_written(*letter, text)) {
                equal.retain(|letter| self.options.is_written(*letter, text));
            }
            let mut equal = equal.into_iter();
            match (
                single(text).and_then(|char| self.options.name(char)).filter(|name| self.options.has(*name)),
                equal.next(),
                equal.next(),
            ) {
                (Some(name), None, _) => return Chosen::Letter(name),
                (Some(name), Some(other), _) if name == other => return Chosen::Letter(name),
                (None, Some(_), _) if !self.texts => return Chosen::Nothing,
                (None, Some(letter), None) => return Chosen::Letter(letter),
                (_, Some(_), _) => return Chosen::Ambiguous,
                (None, None, _) => {}
            }
        }
        if named.is_some() {
            return Chosen::Outside;
        }
        self.labelled(payload.trim_start_matches(is_mark))
    }

    /// A letter and a mark before the rest: `B) glass`, `B: glass`, `B. Glass`, `B - glass`.
    fn labelled(&self, text: &str) -> Chosen {
        let mut chars = text.chars();
        let name = chars.next().and_then(|char| self.options.name(char));
        let Some(letter) = name.filter(|letter| self.options.has(*letter)) else {
            return Chosen::Nothing;
        };
        let after = chars.as_str();
        let rest = after.trim_start_matches(is_space);
        let mut marked = rest.chars();
        let mark = marked.next();
        // Its own text, whatever letters stand in it.
        let behind = [after, marked.as_str()].map(|text| normal(text.trim_matches(is_mark)));
        let is_own =
            |text: &str| behind.iter().any(|behind| !text.is_empty() && behind == text.trim_matches(is_mark));
        if mark.is_some() && (is_own(self.options.text(letter)) || is_own(self.options.bare(letter))) {
            return Chosen::Letter(letter);
        }
        let rest = marked.as_str();
        let own = || matches(&normal(rest.trim_matches(is_mark)), self.options.text(letter));
        let is_label = match mark {
            Some(':' | ')' | ']' | '）' | '、') => true,
            // "B. coli" is no B, and "B-12" neither.
            Some('.') => {
                let sentence = rest.starts_with(is_space)
                    && rest.trim_start_matches(is_space).starts_with(|next: char| next.is_uppercase());
                rest.trim_matches(is_mark).is_empty() || sentence || own()
            }
            Some('-' | '–' | '—') => (after.starts_with(is_space) && rest.starts_with(is_space)) || own(),
            Some('=' | '→') => own(),
            _ => false,
        };
        if !is_label {
            return Chosen::Nothing;
        }
        let is_corrected = || {
            is_corrected(rest)
                && mentions(rest, self.options).iter().any(|other| other.letter != letter && !other.denied)
        };
        let is_list = self.lists_another(rest, letter) || lists_all(rest, letter);
        if is_list || self.is_text_of_another(rest, letter) || is_corrected() {
            Chosen::Ambiguous
        } else if matches!(mark, Some(')' | ']' | '）')) && is_called_wrong(rest) && !own() {
            // "(B) isn't right" affirms nothing.
            Chosen::Nothing
        } else {
            Chosen::Letter(letter)
        }
    }

    /// Whether a text is that of other options alone.
    fn is_text_of_another(&self, text: &str, letter: char) -> bool {
        let text = text.trim_matches(is_mark);
        let joined = ["=", "→", "- ", "– ", "— "].into_iter().find_map(|mark| text.strip_prefix(mark));
        let text = normal(joined.unwrap_or(text).trim_matches(is_mark));
        let mut equal = self.options.same(&text).peekable();
        equal.peek().is_some() && equal.all(|option| option != letter)
    }

    /// Whether a list goes on after an option: ", (B)", ", B) glass rod", "copper wire and B".
    fn lists_another(&self, rest: &str, letter: char) -> bool {
        let text = normal(rest.trim_start_matches(is_mark));
        let own = self.options.text(letter).trim_start_matches(is_mark);
        let behind = text.strip_prefix(own).filter(|_| !own.is_empty()).unwrap_or(&text);
        let separated =
            behind.trim_start_matches(|char: char| is_mark(char) || "/|&+–—、和与或及".contains(char));
        let (word, next) = separated.split_once(' ').unwrap_or((separated, ""));
        let next =
            if is_one_of(word, "or and") || (!word.is_empty() && is_joint(word)) { next } else { separated };
        let end = next.find([',', ';', '/', '|', '&', '、', '和', '与', '或', '及']).unwrap_or(next.len());
        let piece = next[..end].trim_matches(is_mark);
        let mut chars = piece.chars();
        let name =
            chars.next().and_then(|char| self.options.name(char)).filter(|name| self.options.has(*name));
        name.is_some_and(|name| name != letter)
            && (chars.as_str().is_empty() || chars.as_str().starts_with([')', ']', ':', '.']))
    }

    /// The letter that a sentence affirms: the one that it begins with, or the only one.
    fn mentioned(&self, text: &str) -> Chosen {
        let mentions = mentions(text, self.options);
        for pair in mentions.windows(2) {
            let [left, right] = pair else { continue };
            let listed = is_separator(&text[left.span.1..right.span.0]);
            if left.letter != right.letter && listed && !left.denied && !right.denied {
                return Chosen::Ambiguous;
            }
        }
        // All options again, each behind its letter.
        let ascending =
            mentions.windows(2).all(|pair| matches!(pair, [one, next] if one.letter < next.letter));
        let labels = |mention: &Mention| text[mention.span.1..].starts_with(['.', ')', ':', '、', '．']);
        if mentions.len() > 2 && ascending && mentions.iter().all(labels) {
            return Chosen::Ambiguous;
        }
        let mut affirmed = mentions.iter().filter(|mention| !mention.denied);
        let Some(first) = affirmed.next() else { return Chosen::Nothing };
        if lists_all(&text[first.span.1..], first.letter) {
            return Chosen::Ambiguous;
        }
        let alone = mentions.len() == 1;
        if alone && self.texts {
            let around = [&text[..first.span.0], &text[first.span.1..]].concat();
            if self.is_text_of_another(&around, first.letter) {
                return Chosen::Ambiguous;
            }
        }
        match first.span.0 == 0 || affirmed.all(|other| other.letter == first.letter) {
            true => Chosen::Letter(first.letter),
            false => Chosen::Ambiguous,
        }
    }

    /// The only option whose text a payload affirms.
    fn contained(&self, payload: &str) -> Chosen {
        let text = normal(payload);
        let mut found: Vec<(usize, usize, char)> = Vec::new();
        for option in self.options.0.iter().filter(|option| !option.text.is_empty()) {
            let places =
                [&option.text, &option.bare].into_iter().filter(|own| !own.is_empty()).find_map(|own| {
                    let at = memchr::memmem::find_iter(text.as_bytes(), own.as_bytes())
                        .find(|at| stands_alone(&text, *at, own))?;
                    Some((at, at + own.len(), option.letter))
                });
            found.extend(places);
        }
        // A text inside the longer text of another option is that one's.
        let inside = |a: &(usize, usize, char), b: &(usize, usize, char)| {
            b.0 <= a.0 && a.1 <= b.1 && b.1 - b.0 > a.1 - a.0
        };
        let mut longest: Vec<_> = found.iter().filter(|a| !found.iter().any(|b| inside(a, b))).collect();
        longest.sort_unstable();
        let listed = longest.windows(2).any(|pair| match pair {
            [(_, end, _), (from, ..)] => text.get(*end..*from).is_some_and(is_separator),
            _ => false,
        });
        let denied = text.split(is_space).any(|word| is_one_of(word, EXCLUDING));
        if listed && !denied {
            return Chosen::Ambiguous;
        }
        longest.retain(|(from, to, _)| is_affirmed(&text[..*from], &text[*to..]));
        match longest[..] {
            [] => Chosen::Nothing,
            // A letter beside the text of another option; a small "a" is an article.
            [(from, to, letter)] => {
                let around = [&text[..*from], &text[*to..]].concat();
                let beside = single(around.trim_matches(is_mark)).filter(|char| *char != 'a');
                let beside =
                    beside.and_then(|char| self.options.name(char)).filter(|name| self.options.has(*name));
                if beside.is_some_and(|other| other != *letter) {
                    Chosen::Ambiguous
                } else {
                    Chosen::Letter(*letter)
                }
            }
            _ => Chosen::Ambiguous,
        }
    }
}

/// A payload without the tag that ends the text: `<eoa>`, `<|im_end|>`.
fn without_tag(payload: &str) -> &str {
    let kept = payload.trim_end_matches(is_space);
    let tag = kept.strip_suffix('>').and_then(|inner| inner.rsplit_once('<'));
    let ends = |name: &str| name.starts_with(['|', '/']) || ["eoa", "eoe", "eos", "eot"].contains(&name);
    match tag {
        Some((before, name)) if ends(name) && !strip(before).is_empty() => before,
        _ => payload,
    }
}

/// Words that some languages put behind what something is: "Cです", "C입니다", "C'dir".
const COPULAS: [&str; 13] = [
    "です",
    "である",
    "だ",
    "となります",
    "になります",
    "입니다",
    "번입니다",
    "이다",
    "번",
    "है",
    "'dir",
    "'dır",
    "选项",
];

/// A letter without the word for "is" behind it.
fn without_copula(payload: &str) -> &str {
    let kept = payload.trim_end_matches(is_mark);
    let bare = COPULAS.iter().filter_map(|word| kept.strip_suffix(word));
    bare.map(|bare| bare.trim_end_matches(is_mark))
        .find(|bare| single(bare.trim_matches(is_mark)).is_some_and(|letter| letter.is_ascii_uppercase()))
        .unwrap_or(payload)
}

/// Whether two more options stand behind an option, each with its letter and a mark, and none of them is denied: the question again.
fn lists_all(rest: &str, letter: char) -> bool {
    let mut wanted = letter;
    let mut found = 0;
    let mut word_begins = false;
    let mut chars = rest.chars().peekable();
    while let Some(char) = chars.next() {
        if word_begins
            && u32::from(char) == u32::from(wanted) + 1
            && chars.peek().is_some_and(|mark| ".):、．".contains(*mark))
        {
            (wanted, found) = (char, found + 1);
        }
        word_begins = is_space(char) || "(,;，；".contains(char);
    }
    let denied = |word: &str| is_one_of(word, DENYING) || is_one_of(word, REFUSING);
    found > 1 && !rest.split(|char: char| is_space(char) || ",.;:!?".contains(char)).any(denied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options() -> ChoiceOptions {
        let of = |letter, text: &str| super::super::choice_options::ChoiceOption {
            letter,
            text: text.to_owned(),
            bare: String::new(),
            written: text.to_owned(),
        };
        ChoiceOptions(vec![
            of('A', "copper wire"),
            of('B', "glass rod"),
            of('C', "wool thread"),
            of('D', "vitamin b"),
        ])
    }

    #[test]
    fn payloads_name_one_option_or_none() {
        let options = options();
        let reader = ChoiceReader { options: &options, seed: 0, texts: true };
        for (payload, letter) in [
            ("B", "B"),
            (" (b) ", "B"),
            ("**B**.", "B"),
            ("\\textbf{\\text{B}}", "B"),
            ("\\(B\\)", "B"),
            ("B glass rod", "B"),
            ("B (glass rod)", "B"),
            ("B. Glass does not conduct", "B"),
            ("B) because it does not conduct", "B"),
            ("B, because A conducts", "B"),
            ("Option B", "B"),
            ("the glass rod (B)", "B"),
            ("The glass rod.", "B"),
            ("A is wrong, so B", "B"),
            ("not A but B", "B"),
            ("B, not A", "B"),
            ("A good choice is B", "B"),
            ("A because it conducts", "A"),
            ("选B。", "B"),
            ("Vitamin B", "D"),
            ("B. coli", ""),
            ("B-12", ""),
            ("B cells", ""),
            ("1B", ""),
            ("not A", ""),
            ("not (A)", ""),
            ("**not** A", ""),
            ("isn’t A", ""),
            ("It isn't B", ""),
            ("¬A", ""),
            ("¬ B", ""),
            ("!B", ""),
            ("~B", ""),
            ("$\\neg B$", ""),
            ("\\lnot{B}", ""),
            ("x ≠ B", ""),
            ("\\neq B", ""),
            ("~~B~~", ""),
            ("~~glass rod~~", ""),
            ("\\cancel{B}", ""),
            ("\\overline{B}", ""),
            ("I would not choose B", ""),
            ("Don't pick (B).", ""),
            ("I would not pick A but choose B", "B"),
            ("\\sout{B}", ""),
            ("~~A~~ B", "B"),
            ("\\cancel{A} B", "B"),
            ("!A, B", "B"),
            ("I don't think it's B", ""),
            ("I don't believe that's (B).", ""),
            ("I don't think it's A, it's B", "B"),
            ("(B) isn't right.", ""),
            ("B) is not the answer", ""),
            ("(B) isn't a metal", "B"),
            ("(B) is not conductive", "B"),
            ("<del>B</del>", ""),
            ("<s>A</s> B", "B"),
            ("B? No.", ""),
            ("B? No doubt.", "B"),
            ("A? No, B", "B"),
            ("Is it A? No, it is B.", "B"),
            ("A, no, B", "B"),
            ("A ... wait, B", "B"),
            ("A. No, B", "?"),
            ("A) Actually, B", "?"),
            ("B?", "B"),
            ("So B? Yes.", "B"),
            ("No, B", "B"),
            ("option~B", "B"),
            ("B!", "B"),
            ("B, no other insulates", "B"),
            ("neither A nor B", ""),
            ("not A or B", ""),
            ("anything but the glass rod", ""),
            ("anything but B", ""),
            ("A or B", "?"),
            ("A, B", "?"),
            ("both A and B", "?"),
            ("A B", "?"),
            ("B) wool thread", "?"),
            ("B, wool thread", "?"),
            ("B wool thread", "?"),
            ("wool thread (B)", "?"),
            ("(A), (B)", "?"),
            ("A、B", "?"),
            ("A) copper wire, B) glass rod", "?"),
            ("A) because B and C do not conduct", "A"),
            ("B (A and C conduct)", "B"),
            ("\\text{glass}~\\text{rod}", "B"),
            ("\\text{option b}", "B"),
            ("not glass rod but wool thread", "C"),
            ("glass rod, not wool thread", "B"),
            ("the glass rod rather than the wool thread", "B"),
            ("the glass rod, because it does not conduct", "B"),
            ("the glass rod is not right", ""),
            ("neither glass rod nor wool thread", ""),
            ("I do not think that it is the glass rod", ""),
            ("N/A", ""),
            ("glass rod, wool thread", "?"),
            ("glass rod or wool thread", "?"),
            ("I think \\textbf{B}", "B"),
            ("E", "!"),
        ] {
            let found = match reader.payload(payload) {
                Chosen::Letter(letter) => letter.to_string(),
                Chosen::Ambiguous => "?".to_owned(),
                Chosen::Outside => "!".to_owned(),
                Chosen::Nothing => String::new(),
            };
            assert_eq!(found, letter, "{payload}");
        }
        assert_eq!(json!(normal("A  b")), json!("a b"));
    }

    fn found(options: &serde_json::Value, payload: &str) -> Chosen {
        let options = ChoiceOptions::read(options).unwrap();
        ChoiceReader { options: &options, seed: 0, texts: true }.payload(payload)
    }

    #[test]
    fn a_number_is_no_part_of_another() {
        let options = json!(["3", "30", "-0.5", "0.5"]);
        for (payload, letter) in [
            ("3", 'A'),
            ("x = 30", 'B'),
            ("30\\text{ m}", 'B'),
            ("-0.5", 'C'),
            ("x=0.5", 'D'),
            ("30^\\circ", 'B'),
        ] {
            assert_eq!(found(&options, payload), Chosen::Letter(letter), "{payload}");
        }
        for payload in
            ["3.5", "-3", "0.3", "1,300", "x^3", "\\sqrt{3}", "\\frac{3}{7}", "3/7", "3 + x", "-30", "1.30"]
        {
            assert_eq!(found(&options, payload), Chosen::Nothing, "{payload}");
        }
    }

    #[test]
    fn digits_may_name_options() {
        let options = json!({"1": "red", "2": "blue", "3": "green"});
        for payload in ["2", "(2)", "2. blue", "2) blue", "blue", "Option 2", "it is 2, not 1"] {
            assert_eq!(found(&options, payload), Chosen::Letter('2'), "{payload}");
        }
        assert_eq!(found(&options, "1 or 2"), Chosen::Ambiguous);
        assert_eq!(found(&options, "4"), Chosen::Outside);
        for payload in ["2.5", "12", "-2"] {
            assert_eq!(found(&options, payload), Chosen::Nothing, "{payload}");
        }
    }

    #[test]
    fn texts_of_options_may_be_formulas() {
        let options = json!(["\\frac{1}{2}", "$x^2$", "\\( \\pi \\)", "No"]);
        for (payload, letter) in
            [("\\frac{1}{2}", 'A'), ("x^2", 'B'), ("\\pi", 'C'), ("No, it does not", 'D')]
        {
            assert_eq!(found(&options, payload), Chosen::Letter(letter), "{payload}");
        }
    }

    #[test]
    fn letters_in_texts_are_no_letters_of_options() {
        let bracketed = json!(["x", "y", "(a)", "z"]);
        for payload in ["(A)", "A", "(a)"] {
            assert_eq!(found(&bracketed, payload), Chosen::Letter('A'), "{payload}");
        }
        let texts = json!({"A": "L", "B": "R", "C": "1/C", "D": "C"});
        let roman =
            json!({"A": "(i) only", "B": "(A) and (C) both.", "E": "(i) and (iii) only", "I": "none"});
        let genes = json!(["BB × BB", "Bb × Bb", "bb × bb"]);
        let sign = json!(["i", "- i", "$-3-4 \\mathrm{i}$", "$\\{1,2\\}$", "at $C_{1}$ and $A_{2}$"]);
        let quoted = json!(["the Earth’s day", "the Moon’s day"]);
        for (options, payload, letter) in [
            (&texts, "(C).", 'C'),
            (&texts, "C", 'C'),
            (&roman, "(E) (i) and (iii) only.", 'E'),
            (&roman, "(B) (A) and (C) both.", 'B'),
            (&genes, "Bb × Bb", 'B'),
            (&sign, "(B) - i.", 'B'),
            (&sign, "-3-4i", 'C'),
            (&sign, "$\\{2, 1\\}$.", 'D'),
            (&sign, "at $C_{1}$ and $A_{2}$.", 'E'),
            (&quoted, "The Moon's day.", 'B'),
        ] {
            assert_eq!(found(options, payload), Chosen::Letter(letter), "{payload}");
        }
        assert_eq!(found(&sign, "-3+4i"), Chosen::Nothing);
    }

    #[test]
    fn marks_are_those_of_mathematics() {
        let options = options();
        for (text, chosen) in [
            ("First.\nSo our selection is option C. #### C", Chosen::Letter('C')),
            ("First.\n#### C", Chosen::Letter('C')),
            ("First.\n#### C\nDone.", Chosen::Letter('C')),
            ("So it is.\nOption C is right.", Chosen::Letter('C')),
            ("So it is.\nMy final choice is C.", Chosen::Letter('C')),
            ("因此。\n所以选C", Chosen::Letter('C')),
            ("因此。\n故选：C", Chosen::Letter('C')),
            ("因此。\n应选 C", Chosen::Letter('C')),
            ("The blank is \\boxed{?}.\n#### C", Chosen::Letter('C')),
            ("The answer is (C). (Note: This answer is a guess.)", Chosen::Letter('C')),
            ("【答案】A、B、C", Chosen::Ambiguous),
            ("Answer: A和B", Chosen::Ambiguous),
            ("故选：A、B", Chosen::Ambiguous),
            ("So option A and option B are right.\n#### A, B", Chosen::Ambiguous),
            ("Let us see.\nOption D: vitamins help.", Chosen::Nothing),
            ("#### Option D\nIt helps.", Chosen::Nothing),
        ] {
            assert_eq!(read(text, ChoiceMode::Auto, &options, 0), chosen, "{text}");
        }
    }

    #[test]
    fn the_last_commitment_counts() {
        let options = options();
        for (text, mode, found) in [
            ("Answer: A\nNo.\nAnswer: B", ChoiceMode::LenientAnswerColon, Chosen::Letter('B')),
            ("Answer: B\nThe answer: see above", ChoiceMode::LenientAnswerColon, Chosen::Letter('B')),
            ("Answer: B\nAnswer: neither", ChoiceMode::LenientAnswerColon, Chosen::Nothing),
            ("**Answer**:\n\n**B**\n", ChoiceMode::LenientAnswerColonMd, Chosen::Letter('B')),
            ("The answer is B", ChoiceMode::LenientAnswerColon, Chosen::Nothing),
            ("The answer is B", ChoiceMode::Auto, Chosen::Letter('B')),
            ("The answer is not B", ChoiceMode::Auto, Chosen::Nothing),
            ("答案是B。", ChoiceMode::Auto, Chosen::Letter('B')),
            ("so\n\nB", ChoiceMode::Auto, Chosen::Letter('B')),
            ("so\nThe answer is: **B**\nBye.", ChoiceMode::Auto, Chosen::Letter('B')),
            ("so\nThe correct option is (B).\nBye.", ChoiceMode::Auto, Chosen::Letter('B')),
            ("so\n\n### Final Answer\n\n**B**\n\nBye.", ChoiceMode::Auto, Chosen::Letter('B')),
            ("```json\n{\"answer\": \"B\"}\n```", ChoiceMode::Auto, Chosen::Letter('B')),
            ("so it is B\nbut A conducts", ChoiceMode::Auto, Chosen::Nothing),
            ("<answer>glass rod</answer>", ChoiceMode::Auto, Chosen::Letter('B')),
            ("\\boxed{A} or \\boxed{B}", ChoiceMode::Auto, Chosen::Ambiguous),
            ("\\boxed{A}, \\boxed{B}", ChoiceMode::LenientBoxed, Chosen::Ambiguous),
            ("$x = \\boxed{\\frac{5}{6}}$. The answer is (B).", ChoiceMode::Auto, Chosen::Letter('B')),
            ("$x = \\boxed{5}$. The answer is (B) or (C).", ChoiceMode::Auto, Chosen::Ambiguous),
            ("\\boxed{A}. The answer is (B).", ChoiceMode::Auto, Chosen::Letter('A')),
            ("\\boxed{not B}. The answer is (B).", ChoiceMode::Auto, Chosen::Nothing),
            ("The answer is (B). \\boxed{7}", ChoiceMode::Auto, Chosen::Nothing),
            ("$x = \\boxed{7}$. The answer is (B).", ChoiceMode::LenientBoxed, Chosen::Nothing),
            ("\\boxed{A}和\\boxed{B}", ChoiceMode::Auto, Chosen::Ambiguous),
            ("\\boxed{A} \\text{ and } \\boxed{B}", ChoiceMode::Auto, Chosen::Ambiguous),
            ("Neither option A nor option B is right.", ChoiceMode::Auto, Chosen::Nothing),
            ("\\boxed{A}\\boxed{B}", ChoiceMode::Auto, Chosen::Ambiguous),
            ("\\boxed{B}, \\boxed{B}", ChoiceMode::Auto, Chosen::Letter('B')),
            ("\\boxed{A}. No, \\boxed{B}", ChoiceMode::Auto, Chosen::Letter('B')),
            ("\\boxed{A}\n\\boxed{B}", ChoiceMode::Auto, Chosen::Letter('B')),
            ("Option A or option B is right", ChoiceMode::Auto, Chosen::Ambiguous),
            ("so\nI choose B.", ChoiceMode::Auto, Chosen::Letter('B')),
            ("so\nI would not choose B.", ChoiceMode::Auto, Chosen::Nothing),
            ("so\nI choose A or B.", ChoiceMode::Auto, Chosen::Nothing),
            ("\\boxed{B} and \\boxed{", ChoiceMode::Auto, Chosen::Nothing),
            ("\\boxed{B} and \\boxed{ }", ChoiceMode::LenientBoxed, Chosen::Nothing),
            ("\\boxed{glass rod}", ChoiceMode::StrictSingleLetterBoxed, Chosen::Nothing),
            ("\\boxed{vitamin B}", ChoiceMode::StrictSingleLetterBoxed, Chosen::Nothing),
        ] {
            assert_eq!(read(text, mode, &options, 0), found, "{text}");
        }
    }
}
