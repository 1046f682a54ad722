//! The lexer: LaTeX and plain mathematics as tokens with spans, in one pass, with brackets matched.

mod token;
mod words;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

pub(crate) use self::token::{Bracket, Kind, Literal, NONE, Rel, Token, Tokens};
use self::words::{command_kind, is_product, named_function, plain_word};
use crate::limits::{MAX_DIGITS, MAX_TOKENS, NoValue, Work};
use crate::number;
use crate::unit;
use plaudit_text::closing_brace;

/// Commands that do something and mean nothing. An answer with one of them is refused.
const FORBIDDEN: [&str; 14] = [
    "def",
    "edef",
    "gdef",
    "let",
    "input",
    "include",
    "write",
    "openout",
    "read",
    "newcommand",
    "renewcommand",
    "loop",
    "csname",
    "catcode",
];

struct Lexer<'t, 'w> {
    text: &'t str,
    bytes: &'t [u8],
    out: Tokens,
    open: Vec<u32>,
    spaced: bool,
    /// The text has a comma followed by a space, so one without a space may group digits inside brackets too.
    spaced_comma: bool,
    environments: u32,
    /// A bar after `\left` or `\right`.
    side: Option<bool>,
    work: &'w mut Work,
}

/// Splits a text into tokens.
pub(crate) fn lex(text: &str, work: &mut Work) -> Result<Tokens, NoValue> {
    let bytes = text.as_bytes();
    let spaced_comma = memchr::memchr_iter(b',', bytes).any(|at| bytes.get(at + 1) == Some(&b' '));
    let out = Tokens { list: Vec::with_capacity(32), pair: Vec::with_capacity(32), literals: Vec::new() };
    let mut lexer = Lexer {
        text,
        bytes,
        out,
        open: Vec::new(),
        spaced: false,
        spaced_comma,
        environments: 0,
        side: None,
        work,
    };
    lexer.span(0, text.len(), 0)?;
    if !lexer.open.is_empty() {
        return Err(NoValue::Unbalanced);
    }
    Ok(lexer.out)
}

impl Lexer<'_, '_> {
    fn at(&self, i: usize, end: usize) -> u8 {
        if i < end { self.bytes[i] } else { 0 }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) -> Result<(), NoValue> {
        if self.out.list.len() >= MAX_TOKENS {
            return Err(NoValue::TooLarge);
        }
        let index = self.out.list.len() as u32;
        let mut partner = NONE;
        let mut kind = kind;
        match kind {
            Kind::Open(_) => self.open.push(index),
            Kind::Close(bracket) => {
                let top = self.open.last().map(|top| (*top, self.out.list[*top as usize].kind));
                match top {
                    Some((top, Kind::Open(open))) if closes(open, bracket) => {
                        self.open.pop();
                        partner = top;
                        self.out.pair[top as usize] = index;
                    }
                    _ if bracket == Bracket::Square => {
                        kind = Kind::Open(Bracket::Reversed);
                        self.open.push(index);
                    }
                    // A closing brace too many at the end of a box is a slip of the pen.
                    _ if bracket == Bracket::Group => return Ok(()),
                    _ => return Err(NoValue::Unbalanced),
                }
            }
            _ => {}
        }
        self.out.list.push(Token { kind, start: start as u32, end: end as u32, spaced: self.spaced });
        self.out.pair.push(partner);
        self.spaced = false;
        Ok(())
    }

    /// Lexes one part of the text. `level` is above zero inside of a text command.
    fn span(&mut self, start: usize, end: usize, level: u32) -> Result<(), NoValue> {
        let mut i = start;
        while i < end {
            let c = self.bytes[i];
            let next = self.at(i + 1, end);
            i = match c {
                b' ' | b'\t' | b'\n' | b'\r' | b'~' => {
                    self.spaced = true;
                    i + 1
                }
                b'0'..=b'9' => self.number(i, end)?,
                b'.' if next.is_ascii_digit() => self.number(i, end)?,
                b'.' if next == b'.' => {
                    let mut stop = i;
                    while self.at(stop, end) == b'.' {
                        stop += 1;
                    }
                    self.push(Kind::Dots, i, stop)?;
                    stop
                }
                b'a'..=b'z' | b'A'..=b'Z' => self.word(i, end)?,
                b'\\' => self.command(i, end, level)?,
                b'$' | b'"' | b'`' => i + 1,
                b'*' if next == b'*' => self.single(Kind::Caret, i, 2)?,
                b'<' if next == b'=' => self.single(Kind::Relation(Rel::LessEqual), i, 2)?,
                b'>' if next == b'=' => self.single(Kind::Relation(Rel::GreaterEqual), i, 2)?,
                b'!' if next == b'=' => self.single(Kind::Relation(Rel::NotEqual), i, 2)?,
                b'=' if next == b'=' => self.single(Kind::Relation(Rel::Equal), i, 2)?,
                b'=' | b'-' if next == b'>' => self.single(Kind::Arrow, i, 2)?,
                c if c.is_ascii() => {
                    let kind = match c {
                        b'(' => Kind::Open(Bracket::Round),
                        b')' => Kind::Close(Bracket::Round),
                        b'[' if self.is_reversed() || self.closes_interval(i + 1, end) => {
                            Kind::Close(Bracket::Reversed)
                        }
                        b'[' => Kind::Open(Bracket::Square),
                        b']' => Kind::Close(Bracket::Square),
                        b'{' => Kind::Open(Bracket::Group),
                        b'}' => Kind::Close(Bracket::Group),
                        b'|' => match self.side.take() {
                            Some(true) => Kind::Open(Bracket::Bar),
                            Some(false) => Kind::Close(Bracket::Bar),
                            None => Kind::Bar,
                        },
                        b'+' => Kind::Plus,
                        b'-' => Kind::Minus,
                        b'*' => Kind::Times,
                        b'/' => Kind::Slash,
                        b'^' => Kind::Caret,
                        b'_' => Kind::Underscore,
                        b'!' => Kind::Bang,
                        b'\'' => Kind::Prime,
                        b'%' => Kind::Percent,
                        b',' => Kind::Comma,
                        b';' => Kind::Semicolon,
                        b':' => Kind::Colon,
                        b'=' => Kind::Relation(Rel::Equal),
                        b'<' => Kind::Relation(Rel::Less),
                        b'>' => Kind::Relation(Rel::Greater),
                        b'&' => Kind::Ampersand,
                        _ => Kind::Unknown,
                    };
                    self.single(kind, i, 1)?
                }
                _ => self.foreign(i, end)?,
            };
        }
        Ok(())
    }

    fn single(&mut self, kind: Kind, start: usize, len: usize) -> Result<usize, NoValue> {
        self.push(kind, start, start + len)?;
        Ok(start + len)
    }

    fn is_reversed(&self) -> bool {
        self.open.last().is_some_and(|top| self.out.list[*top as usize].kind == Kind::Open(Bracket::Reversed))
    }

    /// Whether `[` closes an interval, as in `[0,1[`: a bracket is open, and nothing after this one could close it.
    fn closes_interval(&self, from: usize, end: usize) -> bool {
        let open = self.open.last().map(|top| self.out.list[*top as usize].kind);
        matches!(open, Some(Kind::Open(Bracket::Square | Bracket::Round)))
            && self.out.list.last().is_some_and(|last| !matches!(last.kind, Kind::Open(_) | Kind::Comma))
            && memchr::memchr2(b']', b')', &self.bytes[from..end]).is_none()
    }

    /// Characters beyond ASCII: currency signs, and words of other scripts.
    fn foreign(&mut self, start: usize, end: usize) -> Result<usize, NoValue> {
        let rest = &self.text[start..end];
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if rest.starts_with(['€', '£', '¥', '₹']) {
            return self.single(Kind::Currency, start, first);
        }
        let len: usize =
            rest.chars().take_while(|c| !c.is_ascii() && c.is_alphabetic()).map(char::len_utf8).sum();
        if len == 0 {
            return self.single(Kind::Unknown, start, first);
        }
        match &rest[..len] {
            "和" | "且" => self.single(Kind::And, start, len),
            "或" => self.single(Kind::Or, start, len),
            _ => self.single(Kind::Word, start, len),
        }
    }

    /// Whether the token before is a value that a unit can follow.
    fn after_value(&self) -> bool {
        matches!(
            self.out.list.last().map(|token| token.kind),
            Some(Kind::Number(_) | Kind::Close(_) | Kind::Pi | Kind::Currency)
        )
    }

    /// Whether nothing that a function could be applied to follows a name: `\mathrm{min}` is then the minute.
    fn ends_value(&self, after: usize) -> bool {
        let rest = self.text[after..].trim_start_matches(['}', ' ', '~', '$']);
        rest.is_empty() || rest.starts_with([',', ';', '.', '/', ')', ']']) || rest.starts_with("\\text")
    }

    fn word(&mut self, start: usize, end: usize) -> Result<usize, NoValue> {
        let mut stop = start;
        while self.at(stop, end).is_ascii_alphabetic() {
            stop += 1;
        }
        let word = &self.text[start..stop];
        // "a.m." and "p.m." after a time.
        if matches!(word, "a" | "p" | "A" | "P")
            && self.after_value()
            && self.text[stop..end].to_ascii_lowercase().starts_with(".m")
        {
            let dotted = stop + 2 + usize::from(self.at(stop + 2, end) == b'.');
            return self.single(Kind::Word, start, dotted - start);
        }
        if word.len() == 1 {
            return self.single(Kind::Letter, start, 1);
        }
        if let Some(kind) = plain_word(word).or_else(|| operator(word, &self.text[stop..end])) {
            return self.single(kind, start, word.len());
        }
        // "sinx" and "lnx" with a single letter.
        if let Some(kind) = named_function(&word[..word.len() - 1])
            && word.ends_with(['x', 'y', 'z', 'A', 'B', 'C'])
        {
            self.push(kind, start, stop - 1)?;
            return self.single(Kind::Letter, stop - 1, 1);
        }
        let last = self.out.list.last().map(|token| token.kind);
        let alone = last.is_none() && self.text[stop..end].trim().trim_end_matches('.').is_empty();
        let follows = last == Some(Kind::Word);
        if self.after_value() && unit::is_unit_word(word)
            || follows && word == "an"
            || !is_product(word, alone || follows)
        {
            // The rest of a compound, as in "push-ups".
            while self.at(stop, end) == b'-'
                && self.at(stop + 1, end).is_ascii_alphabetic()
                && self.at(stop + 2, end).is_ascii_alphabetic()
            {
                stop += 3;
                while self.at(stop, end).is_ascii_alphabetic() {
                    stop += 1;
                }
            }
            return self.single(Kind::Word, start, stop - start);
        }
        for at in start..stop {
            self.push(Kind::Letter, at, at + 1)?;
        }
        Ok(stop)
    }

    fn command(&mut self, start: usize, end: usize, level: u32) -> Result<usize, NoValue> {
        let mut stop = start + 1;
        while self.at(stop, end).is_ascii_alphabetic() {
            stop += 1;
        }
        let name = &self.text[start + 1..stop];
        if name.is_empty() {
            return self.symbol(start, end);
        }
        if FORBIDDEN.contains(&name) {
            return Err(NoValue::Unsupported);
        }
        match name {
            "left" | "right" | "mleft" | "mright" | "bigl" | "bigr" | "Bigl" | "Bigr" | "biggl" | "biggr"
            | "lvert" | "rvert" => {
                if name.ends_with("vert") {
                    let kind =
                        if name == "lvert" { Kind::Open(Bracket::Bar) } else { Kind::Close(Bracket::Bar) };
                    return self.single(kind, start, stop - start);
                }
                let opens = name.ends_with(['t', 'l']) && !name.ends_with("right");
                while self.at(stop, end) == b' ' {
                    stop += 1;
                }
                match self.at(stop, end) {
                    // An invisible delimiter closes the one that `\left` opened.
                    b'.' => {
                        let top = self.open.last().map(|top| self.out.list[*top as usize].kind);
                        if let (false, Some(Kind::Open(open))) = (opens, top)
                            && open != Bracket::Group
                        {
                            self.push(Kind::Close(open), stop, stop + 1)?;
                        }
                        return Ok(stop + 1);
                    }
                    b'|' => self.side = Some(opens),
                    _ => {}
                }
                Ok(stop)
            }
            "big" | "Big" | "bigg" | "Bigg" | "displaystyle" | "textstyle" | "scriptstyle" | "limits"
            | "nolimits" | "rm" | "bf" | "it" | "boxed" | "fbox" | "hfill" | "middle" | "noindent"
            | "tiny" | "small" | "large" | "therefore" | "mathstrut" | "strut" => Ok(stop),
            "quad" | "qquad" | "space" | "thinspace" | "enspace" => {
                self.spaced = true;
                Ok(stop)
            }
            "hspace" | "vspace" | "phantom" | "label" | "tag" | "color" | "hphantom" => {
                let (_, after) = self.argument(stop, end)?;
                Ok(after)
            }
            "text" | "textbf" | "textit" | "textrm" | "textnormal" | "textsf" | "texttt" | "mbox"
            | "hbox" | "emph" | "textup" => {
                let (content, after) = self.argument(stop, end)?;
                self.text_command(content, level)?;
                Ok(after)
            }
            "mathrm" | "operatorname" | "mathbf" | "mathit" | "mathsf" | "mathcal" | "mathbb"
            | "boldsymbol" | "bm" | "mathfrak" | "mathscr" | "mathtt" => {
                let upright = name == "mathrm" || name == "operatorname";
                let blackboard = name == "mathbb";
                // `\operatorname*`
                if self.at(stop, end) == b'*' {
                    stop += 1;
                }
                let (content, after) = self.argument(stop, end)?;
                self.font_command(content, upright, blackboard, level)?;
                Ok(after)
            }
            "begin" | "end" => {
                let (content, mut after) = self.argument(stop, end)?;
                if name == "begin" {
                    self.environments += 1;
                    // The column layout of an array.
                    if &self.text[content.0..content.1] == "array" && self.at(after, end) == b'{' {
                        after = self.argument(after, end)?.1;
                    }
                } else {
                    self.environments = self.environments.saturating_sub(1);
                }
                self.push(if name == "begin" { Kind::Begin } else { Kind::End }, content.0, content.1)?;
                Ok(after)
            }
            _ => {
                let kind = command_kind(name);
                // A space that lost its own, as in `\quadx`.
                let space = ["qquad", "quad"].into_iter().find(|space| name.starts_with(space));
                if let (None, Some(space)) = (kind, space) {
                    self.spaced = true;
                    return Ok(start + 1 + space.len());
                }
                // The same of a sign, as in `2\cdotx`.
                let sign = name.get(..name.len() - 1).and_then(command_kind);
                if let (None, Some(sign @ (Kind::Times | Kind::PlusMinus | Kind::Pi))) = (kind, sign) {
                    self.push(sign, start, stop - 1)?;
                    return self.single(Kind::Letter, stop - 1, 1);
                }
                self.single(kind.unwrap_or(Kind::Unknown), start, stop - start)
            }
        }
    }

    /// A backslash and a character that is no letter.
    fn symbol(&mut self, start: usize, end: usize) -> Result<usize, NoValue> {
        let c = self.at(start + 1, end);
        let kind = match c {
            b'{' => Kind::Open(Bracket::Set),
            b'}' => Kind::Close(Bracket::Set),
            b'%' => Kind::Percent,
            b'$' => Kind::Currency,
            b'|' => match self.side.take() {
                Some(true) => Kind::Open(Bracket::Bar),
                Some(false) => Kind::Close(Bracket::Bar),
                None => Kind::Bar,
            },
            b'\\' if self.environments > 0 => {
                // An optional distance, as in `\\[2pt]`.
                let mut after = start + 2;
                if self.at(after, end) == b'['
                    && let Some(close) = memchr::memchr(b']', &self.bytes[after..end.min(after + 16)])
                {
                    after += close + 1;
                }
                self.push(Kind::NewRow, start, start + 2)?;
                return Ok(after);
            }
            b'_' => Kind::Underscore,
            _ => {
                self.spaced |= c != b'!';
                // A character beyond ASCII is left for the next step.
                return Ok(if c.is_ascii() { (start + 2).min(end) } else { start + 1 });
            }
        };
        self.single(kind, start, 2)
    }

    /// The span of a braced argument, or of the next character, and where it ends.
    fn argument(&self, from: usize, end: usize) -> Result<((usize, usize), usize), NoValue> {
        let mut i = from;
        while self.at(i, end) == b' ' {
            i += 1;
        }
        if self.at(i, end) != b'{' {
            let len = self.text[i..end].chars().next().map_or(0, char::len_utf8);
            return Ok(((i, i + len), i + len));
        }
        let close = closing_brace(self.bytes, i, end).ok_or(NoValue::Unbalanced)?;
        Ok(((i + 1, close), close + 1))
    }

    fn text_command(&mut self, content: (usize, usize), level: u32) -> Result<(), NoValue> {
        let inner = &self.text[content.0..content.1];
        let space = |c: char| c.is_whitespace() || c == '~';
        let trimmed = inner.trim_matches(space);
        self.spaced |= inner.starts_with([' ', '~']);
        if trimmed.is_empty() {
            self.spaced = true;
            return Ok(());
        }
        let bare = trimmed.trim_matches([',', ' ', '.']).to_ascii_lowercase();
        let kind = match bare.as_str() {
            "and" | "和" | "且" => Some(Kind::And),
            "or" | "或" => Some(Kind::Or),
            "percent" => Some(Kind::Percent),
            "mod" | "modulo" => Some(Kind::Mod),
            "infinity" => Some(Kind::Infinity),
            "" => Some(Kind::Comma),
            word => operator(word, self.text[content.1..].trim_start_matches('}')),
        };
        if let Some(kind) = kind {
            if kind == Kind::Comma && !trimmed.contains(',') {
                return Ok(());
            }
            return self.push(kind, content.0, content.1);
        }
        let numeric = |c: char| c.is_ascii_digit() || " .,:+-/%()".contains(c);
        let has_digit = trimmed.bytes().any(|c| c.is_ascii_digit());
        if level == 0 && has_digit && trimmed.chars().all(numeric) {
            return self.span(content.0, content.1, level + 1);
        }
        let offset = content.0 + (inner.len() - inner.trim_start_matches(space).len());
        // A function that is set as text.
        let applied = self.text[content.1..].trim_start_matches(['}', ' ']).starts_with(['(', '{', '\\']);
        if let Some(kind) = named_function(trimmed).filter(|_| applied && !self.after_value()) {
            return self.push(kind, offset, offset + trimmed.len());
        }
        self.push(Kind::Text, offset, offset + trimmed.len())
    }

    fn font_command(
        &mut self,
        content: (usize, usize),
        upright: bool,
        blackboard: bool,
        level: u32,
    ) -> Result<(), NoValue> {
        let inner = &self.text[content.0..content.1];
        let trimmed = inner.trim().trim_start_matches("\\ ").trim_start_matches('~');
        let offset = content.0 + inner.find(trimmed).map_or(0, |at| at);
        let (start, end) = (offset, offset + trimmed.len());
        if trimmed.is_empty() {
            return Ok(());
        }
        if blackboard {
            return self.push(if trimmed == "R" { Kind::Reals } else { Kind::Word }, start, end);
        }
        let unit = upright && self.after_value() && unit::is_unit_word(trimmed) && self.ends_value(content.1);
        if let Some(kind) = plain_word(trimmed).or_else(|| named_function(trimmed)).filter(|_| !unit) {
            return self.push(kind, start, end);
        }
        let one = trimmed.chars().count() == 1;
        if one && (!upright || matches!(trimmed, "e" | "i" | "d")) && trimmed.chars().all(char::is_alphabetic)
        {
            return self.push(Kind::Letter, start, end);
        }
        if trimmed.starts_with(|c: char| c.is_alphabetic()) {
            return self.push(Kind::Upright, start, end);
        }
        if level > 8 {
            return Err(NoValue::Depth);
        }
        self.span(content.0, content.1, level + 1)
    }

    /// A number with its groups of thousands, its decimals, the part that repeats and its exponent.
    fn number(&mut self, start: usize, end: usize) -> Result<usize, NoValue> {
        let mut digits = String::new();
        let mut i = start;
        while self.at(i, end).is_ascii_digit() {
            i += 1;
        }
        digits.push_str(&self.text[start..i]);
        let mut plain = true;
        if !digits.is_empty() && digits.len() <= 3 && !digits.starts_with('0') {
            while let Some(after) = self.group_separator(i, end) {
                digits.push_str(&self.text[after..after + 3]);
                i = after + 3;
                plain = false;
            }
        }
        let mut places = None;
        let mut repeat = String::new();
        if self.at(i, end) == b'.' {
            let mut stop = i + 1;
            while self.at(stop, end).is_ascii_digit() {
                stop += 1;
            }
            let fraction = &self.text[i + 1..stop];
            let after = self.repeating(stop, end, &mut repeat);
            if !fraction.is_empty() || after.is_some() {
                digits.push_str(fraction);
                places = Some(fraction.len());
                plain = false;
                i = after.map_or(stop, |after| after);
            } else if self.text[stop..end].trim().is_empty() || b" /*+-^)}".contains(&self.at(stop, end)) {
                // A dot that ends a sentence, or a number as in `1./3`.
                i = stop;
            }
        }
        if digits.len() + repeat.len() > MAX_DIGITS {
            return Err(NoValue::TooLarge);
        }
        self.work.spend((digits.len() as u64 / 16).pow(2) / 64 + 1)?;
        let significant = digits.trim_start_matches('0').len() as u32;
        let mut value = RBig::from(parse_digits(&digits));
        if let Some(places) = places.filter(|places| *places > 0) {
            value = number::div(&value, &number::power_of_ten(places as i64, self.work)?, self.work)?;
        }
        if !repeat.is_empty() {
            // The repeating digits over as many nines, behind the other decimals.
            let nines =
                number::add(&number::power_of_ten(repeat.len() as i64, self.work)?, &-RBig::ONE, self.work)?;
            let scale = number::power_of_ten(places.map_or(0, |places| places as i64), self.work)?;
            let tail = number::div(&RBig::from(parse_digits(&repeat)), &nines, self.work)?;
            value = number::add(&value, &number::div(&tail, &scale, self.work)?, self.work)?;
            places = None;
        } else if let Some((exponent, after)) = self.exponent(i, end) {
            value = number::mul(&value, &number::power_of_ten(exponent, self.work)?, self.work)?;
            places = None;
            plain = false;
            i = after;
        }
        let literal = Literal { value, places: places.map(|places| places as u32), significant, plain };
        self.out.literals.push(literal);
        self.push(Kind::Number(self.out.literals.len() as u32 - 1), start, i)?;
        Ok(i)
    }

    /// Where the next three digits begin, if a separator of thousands stands here.
    fn group_separator(&self, i: usize, end: usize) -> Option<usize> {
        let rest = &self.text[i..end];
        let bracketed =
            self.open.iter().any(|open| self.out.list[*open as usize].kind != Kind::Open(Bracket::Group));
        let separators: [(&str, bool); 9] = [
            ("\\, ", true),
            ("{,}", true),
            (",\\!\\!", true),
            (",\\! ", true),
            (",\\!", true),
            ("\\,", true),
            ("{\\,}", true),
            (",", !bracketed || self.spaced_comma),
            (" ", !bracketed),
        ];
        for (separator, allowed) in separators {
            if allowed && rest.starts_with(separator) {
                let after = i + separator.len();
                let three = (after..after + 3).all(|at| self.at(at, end).is_ascii_digit());
                if three && !self.at(after + 3, end).is_ascii_digit() {
                    return Some(after);
                }
            }
        }
        None
    }

    /// The digits that repeat: under a line or dots, in brackets, or before three dots.
    fn repeating(&self, from: usize, end: usize, repeat: &mut String) -> Option<usize> {
        let rest = &self.text[from..end];
        for line in ["\\overline", "\\bar", "\\dot", "\\overset{.}"] {
            if let Some(after) = rest.strip_prefix(line) {
                let at = end - after.len();
                let (content, after) = self.argument(at, end).ok()?;
                let digits = &self.text[content.0..content.1];
                if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
                    return None;
                }
                repeat.push_str(digits);
                if line != "\\dot" {
                    return Some(after);
                }
                // Two dots bracket the digits that repeat.
                let mut stop = after;
                while self.at(stop, end).is_ascii_digit() {
                    stop += 1;
                }
                if self.text[stop..end].starts_with("\\dot") {
                    repeat.push_str(&self.text[after..stop]);
                    let (content, after) = self.argument(stop + 4, end).ok()?;
                    let last = &self.text[content.0..content.1];
                    if last.bytes().all(|c| c.is_ascii_digit()) {
                        repeat.push_str(last);
                        return Some(after);
                    }
                    repeat.clear();
                    return None;
                }
                return Some(after);
            }
        }
        // Brackets at the end: `0.1(6)`.
        if let Some(inner) = rest.strip_prefix('(').and_then(|rest| rest.trim_end().strip_suffix(')'))
            && !inner.is_empty()
            && inner.bytes().all(|c| c.is_ascii_digit())
        {
            repeat.push_str(inner);
            return Some(end);
        }
        let dots = ["...", "\\ldots", "\\dots", "\\cdots"].into_iter().find(|dots| rest.starts_with(dots))?;
        // Three equal digits, or three equal pairs or triples, before the dots.
        let digits = &self.bytes[..from];
        for period in 1..=6usize {
            let count = if period == 1 { 3 } else { 2 };
            if digits.len() < period * count {
                return None;
            }
            let tail = &digits[digits.len() - period..];
            let same = (1..=count)
                .all(|n| &digits[digits.len() - period * n..digits.len() - period * (n - 1)] == tail);
            if same && tail.iter().all(u8::is_ascii_digit) {
                repeat.push_str(std::str::from_utf8(tail).ok()?);
                return Some(from + dots.len());
            }
        }
        None
    }

    /// The exponent of `1.5e3`, which stands right after the digits.
    fn exponent(&self, i: usize, end: usize) -> Option<(i64, usize)> {
        if !matches!(self.at(i, end), b'e' | b'E') {
            return None;
        }
        let signed = matches!(self.at(i + 1, end), b'+' | b'-');
        let first = i + 1 + usize::from(signed);
        let mut stop = first;
        while self.at(stop, end).is_ascii_digit() {
            stop += 1;
        }
        if stop == first || stop - first > 6 || self.at(stop, end).is_ascii_alphabetic() {
            return None;
        }
        let size: i64 = self.text[first..stop].parse().ok()?;
        Some((if self.at(i + 1, end) == b'-' { -size } else { size }, stop))
    }
}

/// An operator in words before a number: "negative 42", "6 times 7".
fn operator(word: &str, after: &str) -> Option<Kind> {
    let kind = match word {
        "minus" | "negative" => Kind::Minus,
        "plus" => Kind::Plus,
        "times" => Kind::Times,
        _ => return None,
    };
    let next = after.trim_start_matches([' ', '$']);
    next.starts_with(|c: char| c.is_ascii_digit() || c == '\\' || c == '.').then_some(kind)
}

fn parse_digits(digits: &str) -> IBig {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return IBig::ZERO;
    }
    UBig::from_str_radix(digits, 10).map_or(IBig::ZERO, IBig::from)
}

/// Whether two delimiters go together. Half-open intervals mix round and square ones.
fn closes(open: Bracket, close: Bracket) -> bool {
    use Bracket::{Reversed, Round, Square};
    match (open, close) {
        (Round | Square | Reversed, Round | Square | Reversed) => true,
        (open, close) => open == close,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Function;

    fn numbers(text: &str) -> Vec<String> {
        let tokens = lex(text, &mut Work::new()).unwrap();
        tokens.literals.iter().map(|literal| literal.value.to_string()).collect()
    }

    #[test]
    fn thousands_group_outside_of_brackets() {
        assert_eq!(numbers("1,234,567"), ["1234567"]);
        assert_eq!(numbers("1{,}000"), ["1000"]);
        assert_eq!(numbers("1\\,000.5"), ["2001/2"]);
        assert_eq!(numbers("12, 345"), ["12", "345"]);
        assert_eq!(numbers("(1,234)"), ["1", "234"]);
        assert_eq!(numbers("\\{1,234, 5\\}"), ["1234", "5"]);
        assert_eq!(numbers("0,123"), ["0", "123"]);
        assert_eq!(numbers("1,2345"), ["1", "2345"]);
    }

    #[test]
    fn decimals_repeat_and_scale() {
        assert_eq!(numbers("0.1\\overline{6}"), ["1/6"]);
        assert_eq!(numbers("0.\\dot{1}4285\\dot{7}"), ["1/7"]);
        assert_eq!(numbers("2.5e-3"), ["1/400"]);
        assert_eq!(numbers("2e"), ["2"]);
    }

    #[test]
    fn brackets_pair_across_kinds() {
        let tokens = lex("]0,1]", &mut Work::new()).unwrap();
        assert_eq!(tokens.pair[0], 4);
        assert!(matches!(lex("\\frac{1}{2", &mut Work::new()), Err(NoValue::Unbalanced)));
        assert!(lex("\\frac{1}{2}}", &mut Work::new()).is_ok());
    }

    #[test]
    fn bounds_are_checked() {
        assert!(matches!(lex(&"1".repeat(20_001), &mut Work::new()), Err(NoValue::TooLarge)));
        assert!(matches!(lex(&"x+".repeat(9_000), &mut Work::new()), Err(NoValue::TooLarge)));
        assert!(matches!(lex("\\input{a}", &mut Work::new()), Err(NoValue::Unsupported)));
    }

    #[test]
    fn words_and_products() {
        let kinds = |text: &str| {
            let tokens = lex(text, &mut Work::new()).unwrap();
            tokens.list.iter().map(|token| token.kind).collect::<Vec<Kind>>()
        };
        assert_eq!(kinds("abc"), [Kind::Letter; 3]);
        assert_eq!(kinds("odd"), [Kind::Word]);
        assert_eq!(kinds("sinx"), [Kind::Function(Function::Sin), Kind::Letter]);
        assert_eq!(kinds("\\text{ or }"), [Kind::Or]);
        assert_eq!(kinds("\\mathrm{e}"), [Kind::Letter]);
    }
}
