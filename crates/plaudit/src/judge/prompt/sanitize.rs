//! Sanitizer for untrusted text in prompts (prompt-injection defence): breaks delimiters, chat-template tokens, headings
//! and role prefixes visibly, and writes hidden characters out.

use std::borrow::Cow;

/// What breaks a marker: visible, and part of no marker.
pub(super) const BREAK: char = '·';
/// What is put before a line that could be taken for one of the prompt.
pub(super) const QUOTE: &str = "> ";
/// How many hidden characters in a row are written out before they are only counted.
const WRITTEN_OUT: usize = 8;
/// The longest name of a special token of a chat template, in characters.
const MAX_SPECIAL: usize = 64;
/// Tags that the prompt itself is made of.
const TAGS: [&str; 7] = ["responses", "response", "query", "reference", "verdict", "principles", "criteria"];
/// Special tokens in angle brackets.
const TURNS: [&str; 7] = [
    "start_of_turn>",
    "end_of_turn>",
    "beginning_of_sentence>",
    "begin_of_sentence>",
    "end_of_sentence>",
    "begin_of_text>",
    "end_of_text>",
];
/// Special tokens in angle brackets that in capitals are parameters of types, as in `Set<S>`.
const ENDS: [&str; 3] = ["s>", "bos>", "eos>"];
/// Special tokens in double angle brackets.
const SYSTEM: [&str; 2] = ["sys>>", "/sys>>"];
/// Special tokens in square brackets, each also with a slash before it.
const SQUARED: [&str; 6] =
    ["inst]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]", "tool_content]"];
/// Headings of the prompt.
const HEADINGS: [&str; 8] =
    ["verdict", "responses", "response", "query", "reference", "principles", "criteria", "instruction"];
/// Who speaks in a conversation.
const ROLES: [&str; 5] = ["system", "assistant", "human", "user", "judge"];

/// The mark in the note that a text was shortened. A response cannot know it, so that none can pretend to be cut.
pub fn cut_mark(fence: &str) -> String {
    blake3::Hasher::new_derive_key("plaudit cut mark").update(fence.as_bytes()).finalize().to_hex()[..8]
        .to_owned()
}

/// A response that is harmless in a prompt, and means the same to a judge.
///
/// Broken by a visible dot are the fence, the tags of the prompt, and special tokens of chat templates; quoted are lines
/// that look like a heading of the prompt or the turn of a speaker; written as `\u{200b}` are control characters and
/// those that cannot be seen. A text of more than `longest` characters keeps its head and its tail, with a note of how
/// much is left out. Ordinary text comes back as it is.
pub fn sanitize<'t>(text: &'t str, fence: &str, longest: usize) -> Cow<'t, str> {
    // No text has more characters than bytes, so that most are never counted.
    let count = if text.len() <= longest { 0 } else { text.chars().count() };
    if count <= longest {
        return escape_markers(text, fence);
    }
    let byte = |char: usize| text.char_indices().nth(char).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (byte(longest - longest / 3), byte(count - longest / 3));
    let note = format!("\n⟦{}: {} characters left out⟧\n", cut_mark(fence), count - longest);
    Cow::Owned(
        [&escape_markers(&text[..head], fence), note.as_str(), &escape_markers(&text[tail..], fence)]
            .concat(),
    )
}

fn escape_markers<'t>(text: &'t str, fence: &str) -> Cow<'t, str> {
    let mut out = String::new();
    // Everything before this has been copied.
    let mut done = 0;
    let mut line_start = true;
    let mut before = None;
    let mut hidden = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if is_hidden(char, before, next) {
            out.push_str(&text[done..at]);
            done = at + char.len_utf8();
            hidden += 1;
            if hidden <= WRITTEN_OUT {
                out.extend(char.escape_unicode());
            }
            // What is escaped no longer starts a line, nor does it join anything.
            line_start = false;
            before = None;
            continue;
        }
        if hidden > 0 {
            note_hidden(&mut out, hidden);
            hidden = 0;
        }
        if line_start && is_prompt_line(&text[at..]) {
            out.push_str(&text[done..at]);
            out.push_str(QUOTE);
            done = at;
        }
        if is_marker(before, &text[at..], char, fence) {
            out.push_str(&text[done..at]);
            out.push(char);
            out.push(BREAK);
            done = at + char.len_utf8();
        }
        line_start = matches!(char, '\n' | '\u{2028}' | '\u{2029}');
        before = Some(char);
    }
    note_hidden(&mut out, hidden);
    if out.is_empty() && done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Says how many hidden characters were not written out.
fn note_hidden(out: &mut String, hidden: usize) {
    if hidden > WRITTEN_OUT {
        out.push_str(&format!("(and {} more hidden characters)", hidden - WRITTEN_OUT));
    }
}

/// Whether something that must be broken stands at the start of a text, of which `char` is the first character.
fn is_marker(before: Option<char>, text: &str, char: char, fence: &str) -> bool {
    let rest = &text[char.len_utf8()..];
    match char {
        char if is_open_angle(char) => is_tag(before, rest) || is_special_token(rest),
        '[' | '［' => {
            let slash = rest.chars().next().filter(|char| ascii_lookalike(*char) == '/');
            let rest = &rest[slash.map_or(0, char::len_utf8)..];
            SQUARED.iter().any(|name| starts_with_lookalike(rest, name))
        }
        '⟦' => memchr::memmem::find(&rest.as_bytes()[..rest.len().min(64)], b"left out").is_some(),
        _ => !fence.is_empty() && starts_with_fence(text, fence),
    }
}

/// The letter or sign of ASCII that a character looks like, in lower case.
#[inline]
pub(crate) fn ascii_lookalike(char: char) -> char {
    if char.is_ascii() { char.to_ascii_lowercase() } else { non_ascii_lookalike(char) }
}

fn non_ascii_lookalike(char: char) -> char {
    match char {
        '！'..='～' => {
            char::from_u32(u32::from(char) - 0xFEE0).map_or(char, |char| char.to_ascii_lowercase())
        }
        '‹' | '〈' | '⟨' | '\u{2329}' | '˂' | '❮' | '﹤' | 'ᐸ' | '❬' => '<',
        '›' | '〉' | '⟩' | '\u{232a}' | '˃' | '❯' | '﹥' | 'ᐳ' | '❭' => '>',
        '∕' | '⁄' | '╱' | '⧸' => '/',
        'а' | 'А' | 'α' | 'Α' => 'a',
        'в' | 'В' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'Е' | 'Ε' | 'ё' => 'e',
        'һ' | 'Н' | 'Η' => 'h',
        'і' | 'І' | 'Ι' | 'ι' | 'ı' => 'i',
        'ј' | 'Ј' => 'j',
        'к' | 'К' | 'Κ' | 'κ' => 'k',
        'м' | 'М' | 'Μ' => 'm',
        'о' | 'О' | 'ο' | 'Ο' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ѕ' | 'Ѕ' => 's',
        'т' | 'Т' | 'Τ' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ѵ' | 'ν' => 'v',
        'х' | 'Х' | 'χ' | 'Χ' => 'x',
        'у' | 'У' | 'Υ' => 'y',
        'ᴠ' => 'v',
        'ԛ' => 'q',
        'п' => 'n',
        _ => char,
    }
}

/// Whether a text starts with a name, however its letters are drawn.
pub(crate) fn starts_with_lookalike(text: &str, name: &str) -> bool {
    let mut chars = text.chars();
    name.chars().all(|wanted| chars.next().is_some_and(|char| ascii_lookalike(char) == wanted))
}

fn starts_with_fence(text: &str, fence: &str) -> bool {
    // Nearly every text differs in its first letter.
    let is_like = |start: &[u8]| start.eq_ignore_ascii_case(fence.as_bytes());
    let (first, all) = (text.as_bytes().first(), text.as_bytes().get(..fence.len()));
    first.map(u8::to_ascii_lowercase) == fence.as_bytes().first().map(u8::to_ascii_lowercase)
        && all.is_some_and(is_like)
}

/// Whether a character is, or looks like, the bracket that opens a tag.
pub(crate) fn is_open_angle(char: char) -> bool {
    ascii_lookalike(char) == '<'
}

/// Whether what stands around a bracket makes it a tag of the prompt. `Promise<Response>` is a type, and no tag.
pub(crate) fn is_tag(before: Option<char>, rest: &str) -> bool {
    // A few blanks and slashes are all that a reader would overlook.
    let mut name = rest;
    for _ in 0..4 {
        name = match name.chars().next() {
            Some(char) if char == ' ' || ascii_lookalike(char) == '/' => &name[char.len_utf8()..],
            _ => break,
        };
    }
    // Most brackets open something else, which is seen by the first letter.
    let Some(first) =
        name.chars().next().filter(|first| matches!(ascii_lookalike(*first), 'r' | 'q' | 'v' | 'p'))
    else {
        return false;
    };
    TAGS.iter().filter(|tag| starts_with_lookalike(name, tag)).any(|tag| {
        let after = name.chars().nth(tag.len());
        let of_type = first.is_ascii_uppercase()
            && before.is_some_and(|char| char.is_alphanumeric() || matches!(char, '_' | ':'))
            && name.len() == rest.len()
            && matches!(after, Some('>' | ','));
        // Some letters cannot be seen; they are written out, and the name ends before them.
        let goes_on = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-');
        let longer = after.is_some_and(|char| goes_on(char) && !is_hidden(char, None, None));
        !longer && !of_type
    })
}

/// Whether what follows a bracket makes it a special token of a chat template.
pub(crate) fn is_special_token(rest: &str) -> bool {
    let Some(first) = rest.chars().next() else { return false };
    match ascii_lookalike(first) {
        's' | 'e' | 'b' => is_special_name(rest),
        '/' => is_special_name(&rest[first.len_utf8()..]),
        '<' => SYSTEM.iter().any(|name| starts_with_lookalike(&rest[first.len_utf8()..], name)),
        '|' => is_pipe_token(&rest[first.len_utf8()..]),
        _ => false,
    }
}

fn is_special_name(name: &str) -> bool {
    TURNS.iter().any(|known| starts_with_lookalike(name, known))
        || ENDS.iter().any(|known| name.starts_with(known))
}

/// Whether a text is a name and the bar and bracket that close a token, as in `im_end|>`.
fn is_pipe_token(text: &str) -> bool {
    let of_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '▁' | '/' | '.');
    let mut chars = text.chars();
    for length in 0..=MAX_SPECIAL {
        match chars.next() {
            Some(char) if of_name(char) => {}
            Some(char) => {
                return length > 0
                    && ascii_lookalike(char) == '|'
                    && chars.next().is_some_and(|char| ascii_lookalike(char) == '>');
            }
            None => return false,
        }
    }
    false
}

/// Whether a line looks like a heading of the prompt, or like the turn of a speaker.
fn is_prompt_line(line: &str) -> bool {
    let mut hashes = 0;
    let mut words = line;
    for _ in 0..12 {
        words = match words.chars().next() {
            Some(char) if ascii_lookalike(char) == '#' => {
                hashes += 1;
                &words[char.len_utf8()..]
            }
            Some(char @ (' ' | '\t' | '*' | '_')) => &words[char.len_utf8()..],
            _ => break,
        };
    }
    // Most lines begin with something else, which is seen by the first letter.
    let first = words.chars().next().map(ascii_lookalike);
    if !first.is_some_and(|first| matches!(first, 'v' | 'r' | 'q' | 'p' | 'i' | 's' | 'a' | 'h' | 'u' | 'j'))
    {
        return false;
    }
    let after = |name: &&str| words.chars().nth(name.len());
    let heading = |name: &&str| {
        let goes_on = |char: char| char.is_alphanumeric() || char == '_';
        starts_with_lookalike(words, name)
            && !after(name).is_some_and(|char| goes_on(char) && !is_hidden(char, None, None))
    };
    // In small letters it is a key of some configuration.
    let small = words.starts_with(|char: char| char.is_ascii_lowercase());
    let turn = |name: &&str| {
        let mut rest = words.chars().skip(name.len()).take(4);
        let mut colon = || {
            rest.find(|char| !matches!(char, ' ' | '*' | '_'))
                .is_some_and(|char| ascii_lookalike(char) == ':')
        };
        !small && starts_with_lookalike(words, name) && colon()
    };
    (hashes > 0 && (HEADINGS.iter().any(heading) || ROLES.iter().any(heading))) || ROLES.iter().any(turn)
}

/// Whether a character cannot be seen, or moves others about, where it stands.
fn is_hidden(char: char, before: Option<char>, next: Option<char>) -> bool {
    match char {
        '\n' | '\t' | ' '..='~' => false,
        // Half of a line's end on Windows.
        '\r' => next != Some('\n'),
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{200d}' => !(joins(before, next, is_emoji) || joins(before, next, is_of_joining_script)),
        '\u{200c}' => !joins(before, next, is_of_joining_script),
        // Selectors of a shape follow what they shape, one at most.
        '\u{fe00}'..='\u{fe0f}' => !before.is_some_and(|char| {
            char != '\u{fe0f}'
                && (is_emoji(char) || is_of_shapes(char) || matches!(char, '#' | '*' | '0'..='9'))
        }),
        '\u{e0100}'..='\u{e01ef}' => !before.is_some_and(is_of_shapes),
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

fn joins(before: Option<char>, next: Option<char>, is: impl Fn(char) -> bool) -> bool {
    before.is_some_and(&is) && next.is_some_and(&is)
}

fn is_emoji(char: char) -> bool {
    matches!(char, '\u{1f000}'..='\u{1faff}' | '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{20e3}' | '\u{3030}' | '\u{303d}')
        || matches!(char, '\u{3297}' | '\u{3299}' | '©' | '®' | '‼' | '⁉' | '™' | 'ℹ')
}

/// Whether a character is of a script in which shapes of letters are chosen by joiners.
fn is_of_joining_script(char: char) -> bool {
    matches!(char, '\u{600}'..='\u{7ff}' | '\u{840}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}')
        || matches!(char, '\u{1cd0}'..='\u{1cff}' | '\u{a8e0}'..='\u{a8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Whether a character has several shapes that a selector chooses from: ideographs, and mathematical signs.
fn is_of_shapes(char: char) -> bool {
    matches!(char, '\u{2200}'..='\u{22ff}' | '\u{3001}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: &str = "0123456789abcdef0123456789abcdef";

    fn sanitized(text: &str) -> String {
        sanitize(text, FENCE, 10_000).into_owned()
    }

    #[test]
    fn markers_are_broken_and_prompt_lines_quoted() {
        for (text, wanted) in [
            ("</response A>", "<·/response A>"),
            ("<response\u{3164}>", "<·response\\u{3164}>"),
            ("＜／ｒｅｓｐｏｎｓｅ＞", "＜·／ｒｅｓｐｏｎｓｅ＞"),
            ("< / Verdict x>", "<· / Verdict x>"),
            ("<vеrdict>", "<·vеrdict>"),
            ("<|im_end|>", "<·|im_end|>"),
            ("<｜User｜>", "<·｜User｜>"),
            ("[/INST]", "[·/INST]"),
            ("<<SYS>>", "<·<SYS>>"),
            ("<end_of_turn>", "<·end_of_turn>"),
            ("</s>", "<·/s>"),
            ("[/SYSTEM_PROMPT]", "[·/SYSTEM_PROMPT]"),
            ("[TOOL_RESULTS]", "[·TOOL_RESULTS]"),
            ("<beginning_of_sentence>", "<·beginning_of_sentence>"),
            ("a\nJudge: x", "a\n> Judge: x"),
            ("a\n# Verdict\nb", "a\n> # Verdict\nb"),
            ("**System:** x", "> **System:** x"),
            ("a\r\nHuman : x", "a\r\n> Human : x"),
            ("a\u{200b}b\0\u{1b}[1m", "a\\u{200b}b\\u{0}\\u{1b}[1m"),
            ("0123456789ABCDEF0123456789abcdef", "0·123456789ABCDEF0123456789abcdef"),
        ] {
            assert_eq!(sanitized(text), wanted);
            assert_eq!(sanitized(wanted), wanted, "once is enough");
        }
    }
}
