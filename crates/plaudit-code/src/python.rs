//! Python syntax check: whether a text is a module that Python's own `ast.parse` accepts, in bounded time and stack.
//!
//! The parser is ruff's. It goes on after an error, and then reads f-strings otherwise than before, so that nothing it does there can be
//! foreseen. Hence two ways. A short text is parsed as it is: it is too short to nest deeply. Of a longer one the f-strings become
//! plain strings first; then its tokens are known before it is parsed, and what nests too deeply is never parsed.

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::lexer::lex;
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use std::borrow::Cow;

/// The longest text that is parsed as it is. A byte takes at most some 210 bytes of stack, in nested parameters of lambdas.
const SHORT: usize = 4096;
/// How much text of one response is parsed as it is. A byte takes at most some 1.5 us, in nested parentheses.
const EXACT: usize = 4 * SHORT;
/// How many tokens of one response are read. A token takes at most some 250 ns.
const MAX_TOKENS: usize = 100_000;
/// The same for a test, which may hold all its cases as literals.
const MAX_TEST_TOKENS: usize = 1_000_000;
/// How many operators and keywords may nest in an expression: as many as Python's `ast` can hold.
const MAX_DEPTH: usize = 3000;
/// How many parameter lists of lambdas may nest. Each takes some 1.5 KB of stack.
const MAX_LAMBDAS: usize = 200;
/// CPython's `MAXLEVEL`: "too many nested parentheses".
const MAX_BRACKETS: usize = 200;
/// CPython's `MAXINDENT`, which counts the outermost level: "too many levels of indentation".
const MAX_INDENTS: usize = 99;

/// What Python says of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// It can be parsed.
    Valid,
    /// It cannot: the line of the first error, from 1, where it is known.
    Invalid(Option<usize>),
    /// It is larger or nested deeper than is read.
    TooComplex,
}

/// Checks the Python texts of one response, which share its limits.
#[derive(Debug)]
pub struct PythonParser {
    version: PythonVersion,
    /// How many bytes may still be parsed as they are.
    exact: usize,
    /// How many tokens may still be read.
    tokens: usize,
}

impl PythonParser {
    /// For the grammar of Python 3 with this minor version.
    pub const fn new(minor: u8) -> Self {
        Self { version: PythonVersion { major: 3, minor }, exact: EXACT, tokens: MAX_TOKENS }
    }

    /// For a test of a data set, in the newest grammar.
    pub(crate) const fn for_test() -> Self {
        Self { tokens: MAX_TEST_TOKENS, ..Self::new(14) }
    }

    /// Whether a text is a module, as `ast.parse` sees it: what only the compiler refuses, such as a `return` outside of a function,
    /// is valid.
    pub fn check(&mut self, code: &str) -> Syntax {
        self.parse(code).map_or_else(|fault| fault, |_| Syntax::Valid)
    }

    /// The module, where the text is valid.
    pub(crate) fn parse(&mut self, code: &str) -> Result<Parsed<ModModule>, Syntax> {
        let as_it_is = code.len() <= SHORT.min(self.exact);
        let text = if as_it_is { Cow::Borrowed(code) } else { plain_strings(code) };
        if as_it_is {
            self.exact -= code.len();
        } else {
            let mut lexer = lex(&text, Mode::Module);
            self.scan(std::iter::from_fn(|| Some(lexer.next_token())), false)?;
        }
        let options = ParseOptions::from(Mode::Module).with_target_version(self.version);
        let module = parse_unchecked(&text, options).try_into_module().ok_or(Syntax::Invalid(None))?;
        let errors = module.errors().iter().map(|error| error.location.start());
        let newer = module.unsupported_syntax_errors().iter().map(|error| error.range.start());
        if let Some(first) = errors.chain(newer).min() {
            let before = text.as_bytes().get(..first.to_usize()).unwrap_or(&[]);
            return Err(Syntax::Invalid(Some(1 + memchr::memchr_iter(b'\n', before).count())));
        }
        if as_it_is {
            let kinds = module.tokens().iter().map(|token| token.kind());
            self.scan(kinds.chain([TokenKind::EndOfFile]), true)?;
        }
        Ok(module)
    }

    /// Holds the tokens of a text against the limits. Every mistake that it finds is also one to Python.
    fn scan(&mut self, kinds: impl Iterator<Item = TokenKind>, interpolated: bool) -> Result<(), Syntax> {
        const WRONG: Syntax = Syntax::Invalid(None);
        // What closes each open bracket, string or list of parameters, and how deep it lies.
        let mut open: Vec<(TokenKind, usize)> = Vec::new();
        let (mut depth, mut brackets, mut lambdas, mut indents) = (0, 0, 0, 0);
        for kind in kinds {
            self.tokens = self.tokens.checked_sub(1).ok_or(Syntax::TooComplex)?;
            let closer = match kind {
                TokenKind::Lpar => Some(TokenKind::Rpar),
                TokenKind::Lsqb => Some(TokenKind::Rsqb),
                TokenKind::Lbrace => Some(TokenKind::Rbrace),
                TokenKind::FStringStart => Some(TokenKind::FStringEnd),
                TokenKind::TStringStart => Some(TokenKind::TStringEnd),
                TokenKind::Lambda => Some(TokenKind::Colon),
                _ => None,
            };
            match kind {
                TokenKind::EndOfFile => return if open.is_empty() { Ok(()) } else { Err(WRONG) },
                TokenKind::Unknown => return Err(WRONG),
                TokenKind::FStringStart | TokenKind::TStringStart if !interpolated => {
                    return Err(Syntax::TooComplex);
                }
                TokenKind::Rpar
                | TokenKind::Rsqb
                | TokenKind::Rbrace
                | TokenKind::FStringEnd
                | TokenKind::TStringEnd => {
                    let (_, outside) = open.pop().filter(|(closer, _)| *closer == kind).ok_or(WRONG)?;
                    brackets -= 1;
                    // What a call or an index is applied to lies deeper than it; strings and displays stand side by side.
                    depth = outside - usize::from(!matches!(kind, TokenKind::Rpar | TokenKind::Rsqb));
                }
                TokenKind::Colon if open.last().is_some_and(|(closer, _)| *closer == kind) => {
                    depth = open.pop().map_or(0, |(_, outside)| outside);
                    lambdas -= 1;
                }
                TokenKind::Comma => depth = open.last().map_or(0, |(_, outside)| *outside),
                TokenKind::Newline | TokenKind::Semi if open.is_empty() => depth = 0,
                TokenKind::Newline | TokenKind::Semi => return Err(WRONG),
                TokenKind::Indent => indents += 1,
                TokenKind::Dedent => indents = usize::saturating_sub(indents, 1),
                TokenKind::Name
                | TokenKind::Int
                | TokenKind::Float
                | TokenKind::Complex
                | TokenKind::String
                | TokenKind::FStringMiddle
                | TokenKind::TStringMiddle
                | TokenKind::Comment
                | TokenKind::NonLogicalNewline => {}
                _ => depth += 1,
            }
            if let Some(closer) = closer {
                open.push((closer, depth));
                *(if kind == TokenKind::Lambda { &mut lambdas } else { &mut brackets }) += 1;
            }
            if brackets > MAX_BRACKETS || indents > MAX_INDENTS {
                return Err(WRONG);
            }
            if depth > MAX_DEPTH || lambdas > MAX_LAMBDAS {
                return Err(Syntax::TooComplex);
            }
        }
        Ok(())
    }
}

/// The text with a plain string for every f-string and t-string, byte for byte as long.
fn plain_strings(code: &str) -> Cow<'_, str> {
    let bytes = code.as_bytes();
    let mut prefixes = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr3(b'\'', b'"', b'#', bytes.get(at..).unwrap_or(&[])) {
        at += found;
        let quote = bytes[at];
        if quote == b'#' {
            at += memchr::memchr2(b'\n', b'\r', &bytes[at..]).unwrap_or(bytes.len() - at);
            continue;
        }
        let word = bytes[..at].iter().rev().take(3).take_while(|byte| is_word(**byte)).count();
        let prefix = bytes[at - word..at].to_ascii_lowercase();
        if matches!(prefix.as_slice(), b"f" | b"t" | b"fr" | b"rf" | b"tr" | b"rt") {
            prefixes.push((at - word, at));
        }
        at = string_end(bytes, at, quote);
    }
    if prefixes.is_empty() {
        return Cow::Borrowed(code);
    }
    let mut plain = String::with_capacity(code.len());
    let mut copied = 0;
    for (start, end) in prefixes {
        plain.push_str(&code[copied..start]);
        // A blank in place of the letter; an `r` stays, next to the quote.
        plain.push_str(if end - start == 2 { " r" } else { " " });
        copied = end;
    }
    plain.push_str(&code[copied..]);
    Cow::Owned(plain)
}

/// Whether a byte can be part of a name.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Where the plain string ends whose opening quote stands at `start`.
fn string_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' if bytes[at..].starts_with(b"\\\r\n") => at += 3,
            b'\\' => at += 2,
            b'\n' | b'\r' if !triple => return at,
            byte if byte == quote && !triple => return at + 1,
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str) -> Syntax {
        PythonParser::new(13).check(code)
    }

    #[test]
    fn python_says_what_ast_parse_says() {
        for valid in [
            "",
            "# only a comment",
            "return 1",
            "def f(a, a): pass",
            "nonlocal x",
            "yield 1",
            "x = 1 if'a'else 2",
            "f\"{x['a']!r:>{w}} {y=}\"",
            "match x:\n    case [1, *rest] if rest:\n        pass",
            "type X = int",
        ] {
            assert_eq!(check(valid), Syntax::Valid, "{valid}");
        }
        for (invalid, line) in [
            ("x = (", 1),
            ("a\nb c", 2),
            ("print 'hello'", 1),
            ("x = 0777", 1),
            ("if x:\n    y\n  z", 3),
            ("f(a=1, 2)", 1),
            ("'\\x4'", 1),
            ("x\u{a0}= 1", 1),
            ("x = 1\0", 1),
        ] {
            assert_eq!(check(invalid), Syntax::Invalid(Some(line)), "{invalid}");
        }
    }

    #[test]
    fn newer_grammar_is_invalid_to_an_older_python() {
        for (code, since) in [
            ("type X = int", 12),
            ("f'{a['b']}'", 12),
            ("try:\n    a\nexcept A, B:\n    b", 14),
            ("t'{a}'", 14),
        ] {
            assert_eq!(PythonParser::new(since).check(code), Syntax::Valid, "{code}");
            assert!(matches!(PythonParser::new(since - 1).check(code), Syntax::Invalid(_)), "{code}");
        }
    }

    /// A text that is long enough to be scanned before it is parsed.
    fn long(code: &str) -> String {
        format!("{code}\n{}", "pass\n".repeat(SHORT / 5 + 1))
    }

    #[test]
    fn long_texts_get_the_same_answers() {
        for code in [
            "print(f'{a}', rf\"{b}\\d\", Fr'''{c}\n''', u'd', '# f\"', 'half')",
            "x = '\\xff'; y = 1 if'a'else 2  # it's f'",
            "f(lambda a, *b, c=lambda: 1, **d: a[1:2], key={1: 2})",
            "if a:\n    b\nelif c:\n    d",
        ] {
            assert_eq!((check(code), check(&long(code))), (Syntax::Valid, Syntax::Valid), "{code}");
        }
        for code in
            ["f(", "]", "(]", "x = 'a", "(;)", "lambda a", "(lambda a)", "a b", "f(a=1, 2)", "\"\"\"a"]
        {
            assert!(matches!(check(&long(code)), Syntax::Invalid(_)), "{code}");
        }
    }

    #[test]
    fn limits_are_those_of_cpython() {
        let nested =
            |open: &str, count: usize, close: &str| format!("{}1{}", open.repeat(count), close.repeat(count));
        let indented = |count: usize| {
            let lines: Vec<String> = (0..=count).map(|at| format!("{}if a:", " ".repeat(at))).collect();
            format!("{} b", lines.join("\n"))
        };
        for pad in [str::to_owned as fn(&str) -> String, |code| long(code)] {
            assert_eq!(check(&pad(&nested("(", 200, ")"))), Syntax::Valid);
            assert_eq!(check(&pad(&nested("[", 200, "]"))), Syntax::Valid);
            assert!(matches!(check(&pad(&nested("(", 201, ")"))), Syntax::Invalid(_)));
            assert!(matches!(check(&pad(&nested("{", 201, "}"))), Syntax::Invalid(_)));
            assert!(matches!(check(&pad(&nested("f(", 201, ")"))), Syntax::Invalid(_)));
            assert_eq!(check(&pad(&nested("-", 2900, ""))), Syntax::Valid);
            assert_eq!(check(&pad(&nested("-", 3100, ""))), Syntax::TooComplex);
            assert_eq!(check(&pad(&nested("lambda a=", 150, ":1"))), Syntax::Valid);
        }
        assert_eq!(check(&indented(99)), Syntax::Valid);
        assert!(matches!(check(&indented(100)), Syntax::Invalid(_)));
    }

    #[test]
    fn what_stands_side_by_side_is_no_depth() {
        for code in [
            format!("x = [{}]", "-1, (2), {3: -4}, ".repeat(4000)),
            format!("x = f'{}'", "{a} ".repeat(800)),
            "f'{a}' ".repeat(500),
            "f(a, b)\n".repeat(10_000),
        ] {
            assert_eq!(check(&code), Syntax::Valid, "{}", &code[..20]);
        }
        assert_eq!(check(&"a;".repeat(MAX_TOKENS)), Syntax::TooComplex);
    }

    #[test]
    fn the_texts_of_a_response_share_its_limits() {
        let mut parser = PythonParser::new(13);
        let block = "f(a)\n".repeat(SHORT / 5);
        assert!((0..10).all(|_| parser.check(&block) == Syntax::Valid));
        assert_eq!(parser.exact, EXACT % block.len());
        let many = "a;".repeat(MAX_TOKENS / 8);
        let said: Vec<Syntax> = (0..6).map(|_| parser.check(&many)).collect();
        assert_eq!((said[0], said[5]), (Syntax::Valid, Syntax::TooComplex));
    }

    /// What nests in one way or another, or makes the parser lose track of strings.
    const NESTING: &[&str] = &[
        "-",
        "not ",
        "(",
        "[",
        "{",
        "{**",
        "{1:",
        "lambda:",
        "lambda a=",
        "lambda *a, b=",
        "await ",
        "1**",
        "1**-",
        "a if b else ",
        "a if ",
        ".b",
        "a()",
        "a[0]",
        "1+",
        "a<not ",
        "a or not ",
        "*",
        "**",
        "(a:=",
        "(yield ",
        "[a for a in ",
        "f(a for a in ",
        "f'{",
        "f'{f\"{",
        "f'{a:{",
        "t'{",
        "f'''{'''",
        "f'{(\nif ",
        "f'{'\n}' \"' (",
        "f'{'\n}' \"' lambda a=",
        "if a:\n ",
        "for a in b:",
        "class a:",
        "def f(a:",
        "def f(a=",
        "def f()->",
        "type a[",
        "type a[b:",
        "match ",
        "match a:\n case (",
        "match a:\n case -",
        "with (",
        "with (a, ",
        "@a\n",
        "a.",
        "é.",
        "a[b:",
        "a:b:",
        "async ",
        "print ",
        "...",
        "'a' ",
        "f'{a}' ",
        "else:",
        "elif a:",
        "except* ",
        "\\\n",
        "(\nif x:\n ",
        "\u{c}",
        "\t",
        "\0",
        "return ",
        "del (",
        "from ",
        "import a.",
        "x = yield ",
        "raise ",
        "assert ",
        "$",
        "?",
        "!",
    ];

    #[test]
    fn nothing_overflows_a_small_stack() {
        let hostile = || {
            for unit in NESTING {
                for size in [SHORT - 100, 60_000] {
                    let count = size / unit.len();
                    let text = unit.repeat(count);
                    for code in [
                        format!("{text}1{}", ")".repeat(count.min(100))),
                        format!("f'{{(\n{text}"),
                        format!("f'{{'\n}}' \"' {text}"),
                        format!("match a:\n case {text}"),
                        text,
                    ] {
                        let _ = PythonParser::new(14).check(&code);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(hostile).expect("a thread");
        thread.join().expect("no panic");
    }
}
