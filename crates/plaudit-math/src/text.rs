//! Text: Unicode spellings of mathematics as LaTeX, and the normal form in which words are compared.

use std::borrow::Cow;

/// What a character is written as in LaTeX, if it has a spelling of its own.
fn latex(c: char) -> Option<&'static str> {
    Some(match c {
        '−' | '–' | '—' | '－' | '‐' | '‑' | '‒' | '﹣' => "-",
        '＋' => "+",
        '×' | '✕' | '⨯' | '✖' => "\\times ",
        '·' | '⋅' | '∙' | '•' => "\\cdot ",
        '÷' => "\\div ",
        '∕' | '⁄' | '／' => "/",
        '＝' => "=",
        '＜' => "<",
        '＞' => ">",
        '≤' | '⩽' | '≦' => "\\le ",
        '≥' | '⩾' | '≧' => "\\ge ",
        '≠' => "\\ne ",
        '≈' | '≃' | '≅' => "\\approx ",
        '≡' => "\\equiv ",
        '∞' => "\\infty ",
        '√' => "\\sqrt ",
        '∛' => "\\sqrt[3]",
        '∜' => "\\sqrt[4]",
        '∪' => "\\cup ",
        '∩' => "\\cap ",
        '∈' => "\\in ",
        '∖' => "\\setminus ",
        '∅' | 'Ø' => "\\emptyset ",
        '±' => "\\pm ",
        '∓' => "\\mp ",
        '°' | 'º' | '˚' => "^\\circ ",
        '℃' => "^\\circ C",
        '℉' => "^\\circ F",
        '∠' => "\\angle ",
        '△' => "\\triangle ",
        '′' | '’' => "'",
        '∣' | '｜' => "|",
        '⟨' | '〈' => "\\langle ",
        '⟩' | '〉' => "\\rangle ",
        '⌊' => "\\lfloor ",
        '⌋' => "\\rfloor ",
        '⌈' => "\\lceil ",
        '⌉' => "\\rceil ",
        '∑' | 'Σ' => "\\Sigma ",
        '∫' => "\\int ",
        '→' => "\\to ",
        '⇒' => "\\Rightarrow ",
        '…' | '⋯' => "\\ldots ",
        'ℝ' => "\\mathbb{R}",
        'π' | '𝜋' => "\\pi ",
        'α' => "\\alpha ",
        'β' => "\\beta ",
        'γ' => "\\gamma ",
        'δ' => "\\delta ",
        'Δ' => "\\Delta ",
        'ε' => "\\epsilon ",
        'θ' => "\\theta ",
        'λ' => "\\lambda ",
        'μ' | 'µ' => "\\mu ",
        'ρ' => "\\rho ",
        'σ' => "\\sigma ",
        'τ' => "\\tau ",
        'φ' | 'ϕ' => "\\phi ",
        'ω' => "\\omega ",
        'Ω' => "\\Omega ",
        'ℏ' => "\\hbar ",
        '½' => "\\frac{1}{2}",
        '⅓' => "\\frac{1}{3}",
        '⅔' => "\\frac{2}{3}",
        '¼' => "\\frac{1}{4}",
        '¾' => "\\frac{3}{4}",
        '⅕' => "\\frac{1}{5}",
        '⅖' => "\\frac{2}{5}",
        '⅗' => "\\frac{3}{5}",
        '⅘' => "\\frac{4}{5}",
        '⅙' => "\\frac{1}{6}",
        '⅚' => "\\frac{5}{6}",
        '⅛' => "\\frac{1}{8}",
        '⅜' => "\\frac{3}{8}",
        '⅝' => "\\frac{5}{8}",
        '⅞' => "\\frac{7}{8}",
        '％' | '﹪' => "%",
        '，' | '、' => ",",
        '。' | '．' => ".",
        '：' => ":",
        '；' => ";",
        '（' => "(",
        '）' => ")",
        '［' | '【' => "[",
        '］' | '】' => "]",
        '｛' => "{",
        '｝' => "}",
        '“' | '”' => "\"",
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{ad}'
        | '\u{fe00}'..='\u{fe0f}' => "",
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        _ => return None,
    })
}

/// The ordinary digit or sign of a superscript character.
fn superscript(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴'..='⁹' => char::from(b'4' + (c as u32 - '⁴' as u32) as u8),
        '⁻' => '-',
        '⁺' => '+',
        'ⁿ' => 'n',
        'ˣ' => 'x',
        _ => return None,
    })
}

/// The ordinary digit of a subscript character.
fn subscript(c: char) -> Option<char> {
    match c {
        '₀'..='₉' => Some(char::from(b'0' + (c as u32 - '₀' as u32) as u8)),
        'ₙ' => Some('n'),
        _ => None,
    }
}

/// The ASCII character of a full-width letter or digit.
fn narrow(c: char) -> Option<char> {
    match c {
        '！'..='～' => char::from_u32(c as u32 - 0xfee0),
        _ => None,
    }
}

/// The text with Unicode spellings of mathematics written in LaTeX. Invisible and bidirectional controls disappear, so
/// the order of the characters is the logical one. Text of ASCII characters is given back as it is.
pub(crate) fn to_latex(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii() {
            out.push(c);
        } else if let Some(first) = superscript(c) {
            out.push_str("^{");
            out.push(first);
            while let Some(next) = chars.peek().copied().and_then(superscript) {
                out.push(next);
                chars.next();
            }
            out.push('}');
        } else if let Some(first) = subscript(c) {
            out.push_str("_{");
            out.push(first);
            while let Some(next) = chars.peek().copied().and_then(subscript) {
                out.push(next);
                chars.next();
            }
            out.push('}');
        } else if let Some(spelling) = latex(c) {
            out.push_str(spelling);
        } else if let Some(narrow) = narrow(c) {
            out.push(narrow);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The normal form of mathematics that is not evaluated: without spaces, sizes and braces around one character.
pub(crate) fn squeezed(text: &str) -> String {
    let mut s: String =
        to_latex(text).chars().filter(|c| !c.is_whitespace() && *c != '$' && *c != '~').collect();
    for size in
        ["\\left", "\\right", "\\limits", "\\displaystyle", "\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad"]
    {
        s = s.replace(size, "");
    }
    s = s
        .replace("\\dfrac", "\\frac")
        .replace("\\tfrac", "\\frac")
        .replace("\\mathrm{d}", "d")
        .replace("\\rightarrow", "\\to");
    let mut out = String::with_capacity(s.len());
    let chars: Vec<char> = s.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        match chars[at..] {
            ['{', c, '}', ..] if c != '{' && c != '}' && c != '\\' => {
                out.push(c);
                at += 3;
            }
            _ => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out.trim_end_matches(['.', ',']).to_owned()
}

/// Words that a text answer may begin with or leave out.
const ARTICLES: [&str; 3] = ["a", "an", "the"];
/// Words before a choice letter.
const CHOICE_WORDS: [&str; 5] = ["option", "choice", "answer", "选", "选项"];

/// The normal form of a text answer: lower case, without commands, brackets, articles and the final dot.
pub(crate) fn plain(text: &str) -> String {
    let text = to_latex(text);
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut flush = |word: &mut String| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let mut command = String::new();
                while let Some(letter) = chars.peek().copied().filter(char::is_ascii_alphabetic) {
                    command.push(letter);
                    chars.next();
                }
                match command.as_str() {
                    "" => {
                        let escaped = chars.next();
                        match escaped {
                            Some('%' | '$' | '&' | '#' | '_') => word.extend(escaped),
                            _ => flush(&mut word),
                        }
                    }
                    "text" | "textbf" | "textit" | "textrm" | "textnormal" | "mbox" | "mathrm" | "mathbf"
                    | "mathit" | "mathsf" | "operatorname" | "left" | "right" | "boxed" | "bf" | "rm"
                    | "it" | "displaystyle" | "big" | "Big" => {}
                    "quad" | "qquad" => flush(&mut word),
                    other => {
                        word.push('\\');
                        word.push_str(other);
                        flush(&mut word);
                    }
                }
            }
            '{' | '}' | '$' | '"' | '`' | '*' => {}
            c if c.is_whitespace() || c == '~' => flush(&mut word),
            ',' | ';' | '选' => {
                flush(&mut word);
                word.push(c);
                flush(&mut word);
            }
            c => word.extend(c.to_lowercase()),
        }
    }
    flush(&mut word);
    if let Some(last) = words.last_mut() {
        let kept = last.trim_end_matches(['.', '!', '?']).len();
        last.truncate(kept);
    }
    words.retain(|word| !word.is_empty());
    // A single word in brackets, as (C) or C), is the word.
    if let [one] = &mut words[..] {
        let bare = one.trim_start_matches('(').trim_end_matches([')', '.', ':']);
        if !bare.is_empty() {
            *one = bare.to_owned();
        }
        // Data sets have the answer to a question of yes or no as a truth.
        return match one.as_str() {
            "yes" => "true".to_owned(),
            "no" => "false".to_owned(),
            _ => std::mem::take(one),
        };
    }
    if words.len() == 2 && CHOICE_WORDS.contains(&words[0].as_str()) {
        return words[1].trim_start_matches('(').trim_end_matches(')').to_owned();
    }
    // In a list of letters "a" is a letter and no article.
    let has_long =
        words.iter().any(|word| word.chars().count() > 1 && !["and", "or", ","].contains(&word.as_str()));
    if has_long && !words.iter().any(|word| word == ",") {
        words.retain(|word| !ARTICLES.contains(&word.as_str()));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_is_written_in_latex() {
        assert_eq!(to_latex("x²−4"), "x^{2}-4");
        assert_eq!(to_latex("１２。"), "12.");
        assert_eq!(to_latex("2½"), "2\\frac{1}{2}");
        assert_eq!(to_latex("\u{202e}41\u{202c}"), "41");
        assert!(matches!(to_latex("abc"), Cow::Borrowed(_)));
    }

    #[test]
    fn plain_words() {
        assert_eq!(plain("\\text{ The Evelyn. }"), "evelyn");
        assert_eq!(plain("\\textbf{(C)}"), "c");
        assert_eq!((plain("Yes."), plain("\\text{no}")), (plain("true"), plain("False")));
        assert_eq!(plain("\\text{选A}"), "a");
        assert_eq!(plain("A, B"), "a , b");
        assert_eq!(plain("\\text{an ellipse}"), "ellipse");
    }
}
