//! Places where a response states its choice: the last box, the last tags, and the labels of a line, such as `Answer:`.

use super::choice_options::{NEAR, first, is_mark, is_one_of, last, last_word, single};
use plaudit_math::mark::{Announces, HASH, Marks, chosen_letter, is_joint};
use plaudit_text::{braced, is_space};

/// How many lines with a label are read, from the last one on.
pub(super) const LABELS: usize = 16;
/// Bytes between two boxes that belong together.
const JOINED: usize = 64;

/// What stands in the last `\boxed{...}` or `\fbox{...}`. Inside: nothing where it is never closed.
pub(super) fn last_box(text: &str) -> Option<Option<&str>> {
    let bytes = text.as_bytes();
    let find = |name: &str| memchr::memmem::rfind(bytes, name.as_bytes()).map(|at| at + name.len());
    let rest = &text[find("\\boxed").max(find("\\fbox"))?..];
    let gap = |char| is_space(char) || char == '~';
    let whole = Some(rest.trim_start_matches(gap)).filter(|rest| rest.starts_with('{'));
    Some(whole.and_then(|rest| braced(rest, 0)).map(|whole| &whole[1..whole.len() - 1]))
}

/// What stands behind the last box, of which this is the inside.
pub(super) fn behind_box<'t>(text: &'t str, inner: &str) -> &'t str {
    let find = |name: &str| memchr::memmem::rfind(text.as_bytes(), name.as_bytes());
    let from = find("\\boxed").max(find("\\fbox")).unwrap_or(0);
    text[from..].split_once('{').and_then(|(_, rest)| rest.get(inner.len()..)).unwrap_or("")
}

/// What stands in the box before the last one, where no more than "or" and its like stands between them.
pub(super) fn joined_box(text: &str) -> Option<&str> {
    let find = |name: &str| memchr::memmem::rfind(text.as_bytes(), name.as_bytes());
    let before = &text[..find("\\boxed").max(find("\\fbox"))?];
    let inner = last_box(before).flatten()?;
    let gap = behind_box(before, inner).strip_prefix('}').filter(|gap| gap.len() <= JOINED)?;
    let commands = ["\\text", "\\mbox", "\\qquad", "\\quad", "\\,"];
    let words = commands.iter().fold(gap.to_owned(), |gap, command| gap.replace(command, ""));
    (!gap.contains(['.', '!', '?', ':', '\n', '。']) && is_joint(&words)).then_some(inner)
}

/// What stands between the last `<answer>` and `</answer>`.
pub(super) fn tagged(text: &str) -> Option<&str> {
    let end = memchr::memmem::rfind(text.as_bytes(), b"</answer>")?;
    let start = memchr::memmem::rfind(&text.as_bytes()[..end], b"<answer>")?;
    Some(&text[start + "<answer>".len()..end])
}

/// Where answers of a line begin, from its end: after `answer:`, or with `phrases` also after "the answer is", at the letter of
/// an option that is chosen, and after `####`. Below the last line a letter alone must follow that: else it is a heading.
pub(super) fn labels_of(line: &str, phrases: bool, is_last: bool) -> impl Iterator<Item = usize> + '_ {
    // A heading: the answer stands below it.
    let heading = line.trim_matches(|char: char| is_mark(char) || char == '#');
    let heading = phrases
        && ["answer", "final answer", "correct answer"]
            .iter()
            .any(|known| heading.eq_ignore_ascii_case(known));
    let hash = memchr::memmem::rfind(line.as_bytes(), HASH.as_bytes()).map(|at| at + HASH.len());
    let hash = hash.filter(|at| {
        let rest = line[*at..].trim_matches(is_mark);
        phrases && if is_last { !rest.is_empty() } else { single(rest).is_some() }
    });
    let marked = Marks::new(line, 0).take(LABELS).filter_map(move |mark| {
        let label = || {
            let verb = || behind_verb(line, mark.end).or_else(|| mark.behind_foreign(line));
            behind_colon(line, mark.end).or_else(|| verb().filter(|_| phrases))
        };
        match mark.announces {
            Announces::Answer => label(),
            Announces::Option if phrases => chosen_letter(line, mark.end).or_else(|| {
                let before =
                    last(&line[..mark.end], NEAR).rsplit_once(is_space).map_or("", |(before, _)| before);
                let word = last_word(before)?.trim_matches(is_mark);
                is_one_of(word, "correct right best").then(label).flatten()
            }),
            Announces::Option => None,
        }
    });
    let whole = if heading { Some(line.len()) } else { hash };
    whole.into_iter().chain(marked.filter(move |_| !heading))
}

/// What a line chooses in the first person: `C` of "So I would choose option C".
pub(super) fn choice_of_mine(line: &str) -> Option<&str> {
    let mut rest = line.trim_start_matches(is_mark);
    let mut step = |words: &str| {
        let word = rest.split(is_space).next().unwrap_or("");
        let found = is_one_of(word.trim_matches(is_mark), words);
        if found {
            rest = rest[word.len()..].trim_start_matches(is_space);
        }
        found
    };
    step("so thus therefore hence");
    let mine = step("i we i'd i'll");
    step("would will must therefore thus");
    let chooses = step("choose pick select chose");
    step("option answer choice");
    (mine && chooses).then_some(rest)
}

/// How many bytes of marks stand between a word and what belongs to it.
fn marks(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches(|char: char| is_space(char) || "*_`\"'】]".contains(char)).len()
}

/// Where a line goes on behind the colon that follows a word.
fn behind_colon(line: &str, end: usize) -> Option<usize> {
    let start = end + marks(&line[end..]);
    let colon = line[start..].chars().next().filter(|char| matches!(char, ':' | '：'))?;
    Some(start + colon.len_utf8())
}

/// Where a line goes on behind the verb that follows a word.
fn behind_verb(line: &str, end: usize) -> Option<usize> {
    if line[..end].ends_with("案") {
        let rest = line[end..].strip_prefix(['是', '为']).unwrap_or(&line[end..]);
        return Some(line.len() - rest.len());
    }
    let start = end + marks(&line[end..]);
    let rest = &line[start..];
    let verbs = ["is", "would be", "must be", "should be"].into_iter();
    let is = |verb: &&str| first(rest, verb.len()).eq_ignore_ascii_case(verb);
    let after = start + verbs.into_iter().find(is).filter(|_| start > end)?.len();
    let ends =
        !line[after..].starts_with(|next: char| next.is_ascii_alphanumeric() || matches!(next, '\'' | '’'));
    ends.then_some(after)
}
