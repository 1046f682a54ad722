//! Patterns of Python's `re` that stand in arguments: a keyword is a regular expression in the published checkers.
//!
//! A keyword without special characters is searched for as it is. Anything else is translated to the `regex` crate, which
//! takes linear time. Look-around, back-references and other things that it does not have are refused.

use super::view::View;
use plaudit_text::{fold, is_boundary};
use regex::{Regex, RegexBuilder};

/// How much a compiled pattern may take.
const SIZE_LIMIT: usize = 1 << 20;

/// A pattern that is searched for without regard to case.
pub struct Pattern {
    kind: NodeKind,
}

enum NodeKind {
    /// In folded case. `bounded`: a word boundary is demanded at both ends.
    Literal {
        folded: String,
        bounded: bool,
    },
    Regex(Regex),
}

impl Pattern {
    /// A pattern that ignores case, as `re.IGNORECASE` does.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where Python refuses it as well; or what is not supported.
    pub fn ignoring_case(source: &str) -> Result<Self, String> {
        Self::new(source, false)
    }

    /// The same between two word boundaries: `\bSOURCE\b`.
    ///
    /// # Errors
    ///
    /// As [`Pattern::ignoring_case`].
    pub fn bounded(source: &str) -> Result<Self, String> {
        Self::new(source, true)
    }

    fn new(source: &str, bounded: bool) -> Result<Self, String> {
        let kind = if is_literal(source) {
            NodeKind::Literal { folded: fold(source), bounded }
        } else if bounded {
            NodeKind::Regex(compile(&format!(r"\b{source}\b"), true)?.0)
        } else {
            NodeKind::Regex(compile(source, true)?.0)
        };
        Ok(Self { kind })
    }

    /// `re.search`.
    pub fn is_match(&self, view: &View<'_>) -> bool {
        match &self.kind {
            NodeKind::Literal { folded, bounded: false } => {
                memchr::memmem::find(view.folded().as_bytes(), folded.as_bytes()).is_some()
            }
            NodeKind::Literal { folded, bounded: true } => {
                bounded_matches(view.folded(), folded).next().is_some()
            }
            NodeKind::Regex(regex) => regex.is_match(view.text()),
        }
    }

    /// The number of matches of `re.findall`.
    pub fn count(&self, view: &View<'_>) -> usize {
        match &self.kind {
            NodeKind::Literal { folded, .. } if folded.is_empty() => view.text().chars().count() + 1,
            NodeKind::Literal { folded, bounded: false } => {
                memchr::memmem::find_iter(view.folded().as_bytes(), folded.as_bytes()).count()
            }
            NodeKind::Literal { folded, bounded: true } => bounded_matches(view.folded(), folded).count(),
            NodeKind::Regex(regex) => find_all(regex, view.text()).count(),
        }
    }
}

/// The places of a word between word boundaries.
fn bounded_matches<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + memchr::memmem::find(text.as_bytes().get(from..)?, word.as_bytes())?;
            let end = at + word.len();
            let first = text[at..].chars().next();
            let bounded = is_boundary(text[..at].chars().next_back(), first)
                && is_boundary(text[..end].chars().next_back(), text[end..].chars().next());
            from = match bounded {
                true if end > at => end,
                _ => at + first.map_or(1, char::len_utf8),
            };
            if bounded {
                return Some(at);
            }
        }
    })
}

/// The matches of `re.findall`, which may be empty directly after another.
pub fn find_all<'t>(regex: &'t Regex, text: &'t str) -> impl Iterator<Item = &'t str> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from > text.len() {
            return None;
        }
        let found = regex.find_at(text, from)?;
        from = if found.is_empty() {
            found.end() + text[found.end()..].chars().next().map_or(1, char::len_utf8)
        } else {
            found.end()
        };
        Some(found.as_str())
    })
}

/// Whether a pattern matches itself and nothing else.
pub fn is_literal(source: &str) -> bool {
    !source.bytes().any(|byte| b".^$*+?{}[]\\|()".contains(&byte))
}

/// A pattern that heeds case, in multi-line mode where that is asked for, and the number of its groups.
///
/// # Errors
///
/// As [`Pattern::ignoring_case`].
pub fn compile(source: &str, ignore_case: bool) -> Result<(Regex, usize), String> {
    translate_and_compile(source, ignore_case, false)
}

/// As [`compile`], heeding case, with `^` and `$` at every line.
///
/// # Errors
///
/// As [`Pattern::ignoring_case`].
pub fn compile_multi_line(source: &str) -> Result<(Regex, usize), String> {
    translate_and_compile(source, false, true)
}

fn translate_and_compile(
    source: &str,
    ignore_case: bool,
    multi_line: bool,
) -> Result<(Regex, usize), String> {
    let mut translation = Translation { rest: source, made: String::new(), groups: 0, depth: 0, multi_line };
    translation.alternatives()?;
    if !translation.rest.is_empty() {
        return Err("is no regular expression: a bracket is not opened".to_owned());
    }
    let regex = RegexBuilder::new(&translation.made)
        .case_insensitive(ignore_case)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build()
        .map_err(|_| "is a regular expression that is not supported".to_owned())?;
    Ok((regex, translation.groups))
}

/// Reads Python's syntax and writes that of the `regex` crate.
struct Translation<'a> {
    rest: &'a str,
    made: String,
    groups: usize,
    depth: usize,
    multi_line: bool,
}

/// What was read last, as a quantifier sees it.
enum Atom {
    /// Nothing, or something that takes no quantifier.
    Nothing,
    /// One character.
    Char(char),
    /// Anything else.
    Other,
}

const MAX_NESTED: usize = 50;

impl Translation<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn literal(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.made.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
    }

    /// Up to a closing bracket or the end.
    fn alternatives(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_NESTED {
            return Err("is a regular expression that is nested too deeply".to_owned());
        }
        let mut last = Atom::Nothing;
        while let Some(c) = self.peek() {
            match c {
                ')' => break,
                '|' => {
                    self.next();
                    self.made.push('|');
                    last = Atom::Nothing;
                }
                '*' | '+' | '?' => {
                    self.next();
                    self.made.push(c);
                    last = self.quantified(&last)?;
                }
                '{' => match self.bounds()? {
                    Some(bounds) => {
                        self.made.push_str(&bounds);
                        last = self.quantified(&last)?;
                    }
                    None => {
                        self.next();
                        self.literal('{');
                        last = Atom::Char('{');
                    }
                },
                _ => last = self.atom()?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// After a quantifier: whether it may stand there, and whether it is lazy or possessive.
    fn quantified(&mut self, last: &Atom) -> Result<Atom, String> {
        let single = match last {
            Atom::Nothing => return Err("is no regular expression: nothing to repeat".to_owned()),
            Atom::Char(c) => Some(*c),
            Atom::Other => None,
        };
        if self.take("?") {
            self.made.push('?');
        } else if self.take("+") {
            // Possessive. It gives nothing back, which cannot be told where giving back would not help.
            let end = self.rest.is_empty() || self.rest == r"\b";
            let other = self.peek().is_some_and(|next| {
                is_literal(&next.to_string())
                    && single.is_none_or(|c| fold(&c.to_string()) != fold(&next.to_string()))
            });
            if !(self.depth == 1 && (self.rest.is_empty() || (single.is_some() && (end || other)))) {
                return Err(
                    "is a regular expression that is not supported: a possessive quantifier".to_owned()
                );
            }
        }
        match self.peek() {
            Some('*' | '+' | '?') => Err("is no regular expression: multiple repeat".to_owned()),
            Some('{') if self.looks_like_bounds() => {
                Err("is no regular expression: multiple repeat".to_owned())
            }
            _ => Ok(Atom::Nothing),
        }
    }

    fn looks_like_bounds(&self) -> bool {
        let Some((inside, _)) = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return false;
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        match inside.split_once(',') {
            Some((least, most)) => digits(least) && digits(most),
            None => !inside.is_empty() && digits(inside),
        }
    }

    /// `{2}`, `{2,}`, `{,2}` and `{2,3}`; anything else is a bracket that stands for itself.
    fn bounds(&mut self) -> Result<Option<String>, String> {
        if !self.looks_like_bounds() {
            return Ok(None);
        }
        let Some((inside, rest)) = self.rest[1..].split_once('}') else { return Ok(None) };
        self.rest = rest;
        let (least, most) = inside.split_once(',').map_or((inside, inside), |pair| pair);
        let least = if least.is_empty() { "0" } else { least };
        let made = if most.is_empty() {
            format!("{{{least},}}")
        } else {
            let number = |text: &str| text.parse::<u32>().ok();
            if number(least).zip(number(most)).is_none_or(|(least, most)| least > most) {
                return Err("is no regular expression: bad repeat bounds".to_owned());
            }
            format!("{{{least},{most}}}")
        };
        Ok(Some(made))
    }

    fn atom(&mut self) -> Result<Atom, String> {
        match self.next() {
            Some('.') => {
                self.made.push('.');
                Ok(Atom::Other)
            }
            Some('^') => {
                self.made.push_str(if self.multi_line { "(?m:^)" } else { r"\A" });
                Ok(Atom::Nothing)
            }
            Some('$') => {
                self.made.push_str(if self.multi_line { "(?m:$)" } else { r"(?:\n?\z)" });
                Ok(Atom::Nothing)
            }
            Some('(') => self.group(),
            Some('[') => self.class(),
            Some('\\') => self.escape(),
            Some(c) => {
                self.literal(c);
                Ok(Atom::Char(c))
            }
            None => Ok(Atom::Nothing),
        }
    }

    fn group(&mut self) -> Result<Atom, String> {
        if self.take("?:") {
            self.made.push_str("(?:");
        } else if self.take("?P<") {
            let Some((name, rest)) = self.rest.split_once('>') else {
                return Err("is no regular expression: a name is not closed".to_owned());
            };
            self.rest = rest;
            self.groups += 1;
            self.made.push_str(&format!("(?P<{name}>"));
        } else if self.take("?#") {
            let Some((_, rest)) = self.rest.split_once(')') else {
                return Err("is no regular expression: a comment is not closed".to_owned());
            };
            self.rest = rest;
            return Ok(Atom::Nothing);
        } else if self.take("?") {
            return Err("is a regular expression that is not supported: (?".to_owned());
        } else {
            self.groups += 1;
            self.made.push('(');
        }
        self.alternatives()?;
        if !self.take(")") {
            return Err("is no regular expression: a bracket is not closed".to_owned());
        }
        self.made.push(')');
        Ok(Atom::Other)
    }

    /// A set of characters, in which the `regex` crate has more that is special.
    fn class(&mut self) -> Result<Atom, String> {
        self.made.push('[');
        if self.take("^") {
            self.made.push('^');
        }
        let mut first = true;
        loop {
            let unclosed = || "is no regular expression: a set is not closed".to_owned();
            let c = self.next().ok_or_else(unclosed)?;
            if c == ']' && !first {
                break;
            }
            first = false;
            let low = match c {
                '\\' => self.class_escape()?,
                c => Some(c),
            };
            let Some(low) = low else { continue };
            self.literal_in_class(low);
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                let high = match self.next().ok_or_else(unclosed)? {
                    '\\' => self.class_escape()?,
                    c => Some(c),
                };
                match high {
                    Some(high) if low <= high => {
                        self.made.push('-');
                        self.literal_in_class(high);
                    }
                    _ => return Err("is no regular expression: bad character range".to_owned()),
                }
            }
        }
        self.made.push(']');
        Ok(Atom::Other)
    }

    fn literal_in_class(&mut self, c: char) {
        if c.is_ascii_punctuation() {
            self.made.push('\\');
        }
        self.made.push(c);
    }

    /// One character, or nothing where a whole set was written.
    fn class_escape(&mut self) -> Result<Option<char>, String> {
        match self.peek() {
            Some('b') => {
                self.next();
                Ok(Some('\u{8}'))
            }
            Some('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
                let c = self.next();
                self.set(c);
                Ok(None)
            }
            _ => self.escaped_char().map(Some),
        }
    }

    /// `\d`, `\w` and `\s` as Python has them.
    fn set(&mut self, c: Option<char>) {
        self.made.push_str(match c {
            Some('d') => r"\p{Nd}",
            Some('D') => r"\P{Nd}",
            Some('w') => r"[\p{L}\p{N}_]",
            Some('W') => r"[^\p{L}\p{N}_]",
            Some('s') => r"[\s\x1c-\x1f]",
            _ => r"[^\s\x1c-\x1f]",
        });
    }

    fn escape(&mut self) -> Result<Atom, String> {
        match self.peek() {
            Some('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
                let c = self.next();
                self.set(c);
                Ok(Atom::Other)
            }
            Some(c @ ('b' | 'B' | 'A' | 'Z')) => {
                self.next();
                self.made.push('\\');
                self.made.push(if c == 'Z' { 'z' } else { c });
                Ok(Atom::Nothing)
            }
            Some('1'..='9') => {
                Err("is a regular expression that is not supported: a back-reference".to_owned())
            }
            _ => {
                let c = self.escaped_char()?;
                self.literal(c);
                Ok(Atom::Char(c))
            }
        }
    }

    /// An escape that stands for one character.
    fn escaped_char(&mut self) -> Result<char, String> {
        let bad = || "is no regular expression: bad escape".to_owned();
        Ok(match self.next().ok_or_else(bad)? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'a' => '\u{7}',
            c @ ('x' | 'u' | 'U') => {
                let length = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits = self.rest.get(..length).ok_or_else(bad)?;
                let code = u32::from_str_radix(digits, 16).map_err(|_| bad())?;
                self.rest = &self.rest[length..];
                char::from_u32(code).ok_or_else(bad)?
            }
            '0' => {
                let length =
                    self.rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let (digits, rest) = self.rest.split_at(length);
                self.rest = rest;
                let code =
                    if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 8).map_err(|_| bad())? };
                char::from_u32(code).ok_or_else(bad)?
            }
            c if c.is_ascii_alphanumeric() => return Err(bad()),
            c => c,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(source: &str, text: &str) -> Option<usize> {
        Pattern::ignoring_case(source).ok().map(|pattern| pattern.count(&View::new(text)))
    }

    #[test]
    fn literals_ignore_case() {
        assert_eq!(count("harbor", "A Harbor, a HARBORS"), Some(2));
        assert_eq!(count("straße", "STRASSE STRAẞE"), Some(1));
        assert_eq!(count("k", "\u{212a}ik"), Some(2));
        assert_eq!(count("", "ab"), Some(3));
    }

    #[test]
    fn python_syntax() {
        assert_eq!(count("C++", "I write C"), Some(1));
        assert_eq!(count("a.c", "abc a\nc"), Some(1));
        assert_eq!(count("what?", "wha what"), Some(2));
        assert_eq!(count("x*", "xa"), Some(3));
        assert_eq!(count("$5", "$5"), Some(0));
        assert_eq!(count("a{,2}b", "aab"), Some(1));
        assert_eq!(count("{x}", "{x}"), Some(1));
        assert_eq!(count("[]a]", "]b"), Some(1));
        assert_eq!(count(r"\w+", "e\u{301}t"), Some(2));
        assert_eq!(count("hello.", "hello.\nhello!"), Some(2));
    }

    #[test]
    fn refused_as_python_does() {
        for source in ["(x", "*", "a**", "x)", "[", "a{3,2}", "\\", "\\q", "a+++", "+1"] {
            assert_eq!(count(source, "x"), None, "{source}");
        }
    }

    #[test]
    fn boundaries() {
        let bounded = |source: &str, text: &str| Pattern::bounded(source).unwrap().is_match(&View::new(text));
        assert!(
            bounded("harbor", "the Harbor-side")
                && !bounded("harbor", "harbors")
                && !bounded("散步", "我们散步吧")
        );
        assert!(bounded("C++", "I like C++ a lot.") && !bounded(".net", "Use .net here."));
        assert!(bounded("", "a"));
    }
}
