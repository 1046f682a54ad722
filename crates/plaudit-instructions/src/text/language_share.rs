//! The share of a text's words that are in one language: by script where a script decides, else by the n-grams of
//! langdetect's profiles over a window of words.
//!
//! What is no language is left out first: code, formulas, addresses, tags and names. Words that cannot be told are
//! counted apart. Nothing is drawn at random.

use super::langdetect::{self, Languages};
use super::scripts::{Script, script};
use plaudit_text::is_space;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The words of a text, and how many of them are in the language that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanguageShare {
    /// Words that were looked at. Two characters of a script without spaces count as one word.
    pub words: usize,
    /// Words in the language.
    pub in_target: usize,
    /// Words that may be in it or not: too short a window, or a near relative of the language.
    pub unknown: usize,
}

impl LanguageShare {
    /// The share of the words in the language among those that can be told; nothing where there are none.
    pub fn share(self) -> Option<f64> {
        let told = self.words - self.unknown;
        (told > 0).then(|| self.in_target as f64 / told as f64)
    }
}

/// A window is a piece of a line, of at most this many words.
const WINDOW: usize = 30;
/// Of a long text this many windows are looked at, evenly spread.
const WINDOWS: usize = 2000;
/// A window with fewer letters than this is only believed when it is certain.
const FEW_LETTERS: usize = 20;
/// A window with fewer letters than this is not said to be in another language: n-grams take "let us go" for Dutch.
const ENOUGH_LETTERS: usize = 30;
/// The same where a certain mistake is better than no verdict.
const FEW_LETTERS_OF_ANOTHER: usize = 1;

/// How many words of a text are in a language, named as in langdetect (`en`, `zh-cn`); `zh` is either Chinese.
///
/// All words of a text are unknown for a language without a profile.
///
/// A short window counts as another language where the n-grams are certain, which they are too often: for a verdict on the
/// text as a whole, not for a number.
pub fn language_share(text: &str, target: &str) -> LanguageShare {
    share_of(text, target, FEW_LETTERS_OF_ANOTHER)
}

/// The same, where short windows are unknown unless they are in the language, and short lines are told together.
pub fn certain_language_share(text: &str, target: &str) -> LanguageShare {
    share_of(text, target, ENOUGH_LETTERS)
}

fn share_of(text: &str, target: &str, enough: usize) -> LanguageShare {
    let text = without_code(text);
    let windows: Vec<Vec<Word<'_>>> = windows(&text, target);
    let step = windows.len().div_ceil(WINDOWS).max(1);
    let mut share = LanguageShare::default();
    // Short lines that cannot be told one by one are told together.
    let mut short: Vec<(Script, Vec<&Word<'_>>)> = Vec::new();
    for window in windows.iter().step_by(step) {
        share.words += weight(window);
        // Each script of a window is judged by itself: an English word in a Chinese sentence is English.
        let mut scripts: Vec<Script> = window.iter().map(|word| word.script).collect();
        scripts.sort_unstable();
        scripts.dedup();
        for written in scripts {
            let words: Vec<&Word<'_>> = window.iter().filter(|word| word.script == written).collect();
            let count = weight(words.iter().copied());
            match judge(&words, written, window, target, enough) {
                Some(true) => share.in_target += count,
                Some(false) => {}
                None if letters(&words) < ENOUGH_LETTERS && home(target) == Some(written) => {
                    share.unknown += count;
                    match short.iter_mut().find(|(script, _)| *script == written) {
                        Some((_, all)) => all.extend(words),
                        None => short.push((written, words)),
                    }
                }
                None => share.unknown += count,
            }
        }
    }
    for (written, words) in short.iter().filter(|(written, _)| sharing(*written).len() > 1) {
        for window in words.chunks(WINDOW).filter(|window| letters(window) >= ENOUGH_LETTERS) {
            let told = by_ngrams(window, *written, target, enough);
            let count = if told.is_some() { weight(window.iter().copied()) } else { 0 };
            share.unknown -= count;
            share.in_target += if told == Some(true) { count } else { 0 };
        }
    }
    share
}

fn weight<'w, 't: 'w>(words: impl IntoIterator<Item = &'w Word<'t>>) -> usize {
    words.into_iter().map(Word::weight).sum()
}

fn letters(words: &[&Word<'_>]) -> usize {
    words.iter().map(|word| word.text.chars().count()).sum()
}

struct Word<'t> {
    text: &'t str,
    script: Script,
}

impl Word<'_> {
    fn weight(&self) -> usize {
        match self.script {
            Script::Han | Script::Kana | Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar => {
                self.text.chars().count().div_ceil(2)
            }
            _ => 1,
        }
    }
}

/// Whether words of one script are in the language, or nothing where that cannot be told.
fn judge(
    words: &[&Word<'_>],
    written: Script,
    window: &[Word<'_>],
    target: &str,
    enough: usize,
) -> Option<bool> {
    let target = if target == "zh" { "zh-cn" } else { target };
    let home = home(target)?;
    match written {
        // Kana makes a window Japanese; Han alone is Chinese, unless it is too short to tell.
        Script::Han if home == Script::Han => {
            let kana = window.iter().any(|word| word.script == Script::Kana);
            let chars: usize = words.iter().map(|word| word.text.chars().count()).sum();
            match (target, kana) {
                ("ja", true) => Some(true),
                ("ja", false) => {
                    if chars < 6 {
                        None
                    } else {
                        Some(false)
                    }
                }
                (_, true) => Some(false),
                (_, false) => Some(true),
            }
        }
        Script::Kana => Some(target == "ja"),
        // Korean writes some words in Han.
        Script::Han if target == "ko" && window.iter().any(|word| word.script == Script::Hangul) => None,
        _ if written != home => Some(false),
        _ => match sharing(written) {
            [_] => Some(true),
            _ => by_ngrams(words, written, target, enough),
        },
    }
}

/// A word in small letters where it is all in capitals, which the profiles know badly.
fn small<'t>(word: &Word<'t>) -> Cow<'t, str> {
    match word.text.chars().any(char::is_lowercase) {
        true => Cow::Borrowed(word.text),
        false => Cow::Owned(word.text.to_lowercase()),
    }
}

fn by_ngrams(words: &[&Word<'_>], written: Script, target: &str, enough: usize) -> Option<bool> {
    let letters = letters(words);
    let text = words.iter().map(|word| small(word)).collect::<Vec<_>>().join(" ");
    let (_, languages) = SHARING.iter().find(|(script, _)| *script == written)?;
    let found = langdetect::among(&text, languages)?;
    let of = |name: &str| {
        found.iter().find(|(found, _)| *found == name).map_or(0.0, |&(_, probability)| probability)
    };
    let likelihood = of(target);
    let related = || relatives(target).iter().map(|name| of(name)).sum::<f64>() >= 0.5;
    if likelihood >= if letters < FEW_LETTERS { 0.9 } else { 0.5 } {
        Some(true)
    } else if letters >= enough && likelihood <= if letters < FEW_LETTERS { 0.01 } else { 0.1 } && !related()
    {
        Some(false)
    } else {
        None
    }
}

/// Languages that a short text cannot be told apart from.
fn relatives(target: &str) -> &'static [&'static str] {
    match target {
        "da" | "no" => &["da", "no"],
        "cs" | "sk" => &["cs", "sk"],
        "hr" | "sl" => &["hr", "sl"],
        "bg" | "mk" => &["bg", "mk"],
        "hi" | "mr" | "ne" => &["hi", "mr", "ne"],
        _ => &[],
    }
}

/// The script of a language with a profile.
fn home(target: &str) -> Option<Script> {
    let scripts = [
        Script::Latin,
        Script::Cyrillic,
        Script::Arabic,
        Script::Devanagari,
        Script::Han,
        Script::Greek,
        Script::Hebrew,
        Script::Bengali,
        Script::Gurmukhi,
        Script::Gujarati,
        Script::Tamil,
        Script::Telugu,
        Script::Kannada,
        Script::Malayalam,
        Script::Thai,
        Script::Hangul,
    ];
    scripts.into_iter().find(|&script| sharing(script).contains(&target))
}

/// The scripts that several languages with a profile are written in.
static SHARING: LazyLock<[(Script, Languages); 4]> = LazyLock::new(|| {
    [Script::Latin, Script::Cyrillic, Script::Arabic, Script::Devanagari]
        .map(|script| (script, Languages::new(sharing(script))))
});

/// The languages with a profile that are written in a script.
fn sharing(script: Script) -> &'static [&'static str] {
    match script {
        Script::Latin => &[
            "af", "ca", "cs", "cy", "da", "de", "en", "es", "et", "fi", "fr", "hr", "hu", "id", "it", "lt",
            "lv", "nl", "no", "pl", "pt", "ro", "sk", "sl", "so", "sq", "sv", "sw", "tl", "tr", "vi",
        ],
        Script::Cyrillic => &["bg", "mk", "ru", "uk"],
        Script::Arabic => &["ar", "fa", "ur"],
        Script::Devanagari => &["hi", "mr", "ne"],
        Script::Han => &["ja", "zh-cn", "zh-tw"],
        Script::Greek => &["el"],
        Script::Hebrew => &["he"],
        Script::Bengali => &["bn"],
        Script::Gurmukhi => &["pa"],
        Script::Gujarati => &["gu"],
        Script::Tamil => &["ta"],
        Script::Telugu => &["te"],
        Script::Kannada => &["kn"],
        Script::Malayalam => &["ml"],
        Script::Thai => &["th"],
        Script::Hangul => &["ko"],
        _ => &[],
    }
}

/// The words of each window.
fn windows<'t>(text: &'t str, target: &str) -> Vec<Vec<Word<'t>>> {
    let mut windows: Vec<Vec<Word<'t>>> = Vec::new();
    for line in text.split('\n') {
        let first = windows.len();
        let mut window: Vec<(Word<'t>, bool)> = Vec::new();
        let mut starts = true;
        let mut rest = line;
        while let Some(at) = rest.find(|c| script(c).is_some()) {
            starts |= rest[..at].contains(ENDS);
            rest = &rest[at..];
            let (word, after) = cut(rest);
            window.push((word, starts));
            starts = false;
            rest = after;
            let ended = rest.trim_start_matches(['"', '”', ')', '\'']).starts_with(ENDS);
            if window.len() >= WINDOW || (ended && window.len() > WINDOW / 2) {
                windows.push(without_names(std::mem::take(&mut window), target));
            }
        }
        // A short end of a line belongs to what is before it: by itself it could not be told.
        let end = without_names(window, target);
        match windows[first..].last_mut() {
            Some(before) if end.len() < WINDOW / 2 => before.extend(end),
            _ => windows.push(end),
        }
    }
    windows.retain(|window| !window.is_empty());
    windows
}

const ENDS: [char; 9] = ['.', '!', '?', '。', '！', '？', ':', '؟', '।'];

/// The letters of one script that the text starts with, with marks, apostrophes and joiners between them.
fn cut(text: &str) -> (Word<'_>, &str) {
    let first = text.chars().next().and_then(script).map_or(Script::Latin, |script| script);
    let inner = |c: char| matches!(c, '\'' | '’' | '\u{200c}' | '\u{200d}' | '\u{300}'..='\u{36f}');
    let end = text.find(|c| script(c) != Some(first) && !inner(c)).map_or(text.len(), |end| end);
    let word = text[..end].trim_end_matches(inner);
    (Word { text: word, script: first }, &text[end..])
}

/// Words with a capital that start no sentence are names, as far as the language does not write its nouns so, and not
/// all words are written so. A single letter says nothing.
fn without_names<'t>(window: Vec<(Word<'t>, bool)>, target: &str) -> Vec<Word<'t>> {
    let capital = |word: &Word<'_>| word.text.starts_with(char::is_uppercase);
    let inside = window.iter().filter(|(_, starts)| !starts).count();
    let capitals = window.iter().filter(|(word, starts)| !starts && capital(word)).count();
    let names = target != "de" && 2 * capitals <= inside;
    let kept = |word: &Word<'_>, starts: bool| {
        let single = matches!(word.script, Script::Latin | Script::Cyrillic | Script::Greek)
            && word.text.chars().nth(1).is_none();
        !single && (starts || !names || !capital(word))
    };
    window.into_iter().filter(|(word, starts)| kept(word, *starts)).map(|(word, _)| word).collect()
}

/// The text with a space for each fenced block, code span, formula, command of LaTeX, tag and address. One pass; what is opened and
/// not closed is text.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // A closing mark that is not found once is not looked for again.
    let mut missing = Vec::new();
    while let Some(at) = rest.find(['`', '$', '\\', '<', ':', '@']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let taken = opened(from, &mut missing).or_else(|| command(from)).or_else(|| address(&mut out, from));
        let taken = taken.map_or(0, |taken| taken.min(from.len()));
        if taken > 0 {
            out.push(' ');
            rest = &from[taken..];
        } else {
            let first = from.chars().next().map_or(1, char::len_utf8);
            out.push_str(&from[..first]);
            rest = &from[first..];
        }
    }
    out.push_str(rest);
    out
}

/// The length of a command of LaTeX that starts here; of `\\begin` and `\\end` with the name of what they enclose.
fn command(text: &str) -> Option<usize> {
    let name = text.strip_prefix('\\')?;
    let length = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = name.split_at(length);
    let enclosed = || {
        let inner = rest.strip_prefix('{')?;
        let length = inner.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'*').count();
        inner[length..].starts_with('}').then_some(length + 2)
    };
    let argument = if matches!(name, "begin" | "end") { enclosed().unwrap_or(0) } else { 0 };
    (length > 0).then_some(1 + length + argument)
}

/// The length of a span that starts here, with its marks.
fn opened(text: &str, missing: &mut Vec<&'static str>) -> Option<usize> {
    let pairs =
        [("```", "```"), ("`", "`"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("<", ">")];
    let (open, close) = *pairs.iter().find(|(open, _)| text.starts_with(open))?;
    if missing.contains(&close) {
        return None;
    }
    let body = &text[open.len()..];
    let Some(length) = body.find(close) else {
        missing.push(close);
        return None;
    };
    let inside = &body[..length];
    let plausible = match open {
        "`" | "$" => !inside.contains('\n') && !inside.starts_with(is_space),
        "<" => inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && !inside.contains('\n'),
        _ => true,
    };
    plausible.then_some(open.len() + length + close.len())
}

/// The length of the rest of a web address (`://…`) or a mail address (`@…`). Its start, which is in `out`, is taken back.
fn address(out: &mut String, text: &str) -> Option<usize> {
    if !text.starts_with("://") && !text.starts_with('@') {
        return None;
    }
    let start = out.rfind(is_space).map_or(0, |at| at + 1);
    let kept = out.char_indices().rev().take_while(|&(at, _)| at >= start);
    let start = kept.take_while(|(_, c)| c.is_ascii_graphic()).last().map(|(at, _)| at)?;
    out.truncate(start);
    // Letters of other scripts than Latin go on with the sentence.
    let inside = |c: char| c.is_ascii_graphic() || c.is_alphabetic() && c < '\u{250}';
    Some(text.find(|c: char| !inside(c)).map_or(text.len(), |end| end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [(&str, &str); 14] = [
        (
            "en",
            "The lantern hums softly in the cellar and nobody hears it. We should look for it tomorrow morning.",
        ),
        (
            "de",
            "Die Laterne summt leise im Keller, und niemand hört sie. Morgen früh sollten wir danach suchen.",
        ),
        ("fr", "Ce matin nous sommes allés au bord de la rivière et nous avons regardé les petits bateaux."),
        ("es", "Esta mañana fuimos a la orilla del río y miramos los barcos pequeños durante mucho tiempo."),
        ("it", "Questa mattina siamo andati sulla riva del fiume e abbiamo guardato le piccole barche."),
        ("tr", "Bu sabah nehrin kıyısına gittik ve uzun süre küçük teknelere baktık, sonra yağmur başladı."),
        ("vi", "Sáng nay chúng tôi đã đi đến bờ sông và ngắm những con thuyền nhỏ rất lâu."),
        ("ru", "Сегодня утром мы пошли к реке и долго смотрели на лодки. Потом начался дождь."),
        ("uk", "Сьогодні вранці ми пішли до річки і довго дивилися на човни. Потім почався дощ."),
        ("ar", "ذهبنا اليوم إلى النهر ورأينا قوارب صغيرة على الماء. كان الهواء باردا جدا هذا الصباح."),
        ("ja", "きのうは雨でしたが、今日は晴れています。庭の花がとてもきれいです。"),
        ("zh-cn", "今天的天气很好，我们去河边散步。水面上有几只小船，孩子们在岸上唱歌。"),
        ("ko", "오늘 아침 우리는 강가에 가서 작은 배들을 오랫동안 바라보았습니다."),
        ("th", "เช้านี้เราไปที่แม่น้ำและดูเรือลำเล็กเป็นเวลานาน"),
    ];

    #[test]
    fn each_language_is_itself_and_no_other() {
        for (language, text) in TEXTS {
            for (target, _) in TEXTS {
                let share = language_share(text, target);
                assert!(share.words > 5, "{language} {share:?}");
                let expected = f64::from(u8::from(language == target));
                assert_eq!(share.share(), Some(expected), "{language} as {target}: {share:?}");
                assert!(share.unknown * 5 <= share.words, "{language} as {target}: {share:?}");
            }
        }
    }

    #[test]
    fn mixed_texts() {
        let half = format!("{}\n{}", TEXTS[0].1, TEXTS[7].1);
        let share = language_share(&half, "en").share().unwrap();
        assert!((0.4..0.7).contains(&share), "{share}");
        let chinese = "我们用 transformer 模型来做实验，然后比较 baseline 的结果。";
        let share = language_share(chinese, "zh").share().unwrap();
        assert!((0.7..0.95).contains(&share), "{share}");
        let lines = format!("{}\n{}\n{}", TEXTS[0].1, TEXTS[1].1, TEXTS[2].1);
        let share = language_share(&lines, "de").share().unwrap();
        assert!((0.2..0.5).contains(&share), "{share}");
    }

    #[test]
    fn code_formulas_addresses_and_names_do_not_count() {
        let plain = language_share(TEXTS[7].1, "ru");
        let dressed = format!(
            "{}\n```python\nfor item in range(3):\n    print(item)\n```\nсм. https://example.org/some/page или \
             `print(x)` и $\\alpha + beta$, <b>да</b> ann@mail.example.org",
            TEXTS[7].1
        );
        let share = language_share(&dressed, "ru");
        assert_eq!(share.share(), Some(1.0), "{share:?}");
        assert!(share.words >= plain.words);
        let names =
            "Yesterday we met Guillaume Beauchamp and Françoise Lefèvre near the old harbor in winter.";
        assert_eq!(language_share(names, "en"), LanguageShare { words: 10, in_target: 10, unknown: 0 });
    }

    #[test]
    fn nothing_to_tell() {
        for text in ["", " \n", "12345", "🎉", "$x$", "```\ncode\n```", "x"] {
            assert_eq!(language_share(text, "en"), LanguageShare::default(), "{text:?}");
            assert_eq!(language_share(text, "en").share(), None);
        }
        let unknown = language_share(TEXTS[0].1, "tlh");
        assert_eq!(unknown.words, unknown.unknown);
        let short = language_share("ok", "en");
        assert_eq!(short.in_target, 0);
    }

    #[test]
    fn short_texts_are_in_no_other_language() {
        for text in [
            "let us go",
            "DO NOT ENTER",
            "It depends.",
            "a lantern",
            "mitochondria produce energy",
            "Answer: B",
        ] {
            let share = certain_language_share(text, "en");
            assert!(share.share().is_none_or(|share| share == 1.0), "{text}: {share:?}");
        }
        // Many short lines are told together.
        let german = "Das ist gut\nWir gehen nach Hause\nDer Hund schläft\nIch weiß es nicht\nVielen Dank\n";
        assert_eq!(certain_language_share(german, "en").share(), Some(0.0));
        assert_eq!(certain_language_share(german, "de").share(), Some(1.0));
    }

    #[test]
    fn commands_of_latex_are_no_words() {
        assert_eq!(language_share("\\boxed{\\frac{1}{2}}", "en"), LanguageShare::default());
        let chinese = "\\begin{align*} x &= 1 \\\\ y &= 2 \\end{align*} 所以答案是三。";
        assert_eq!(language_share(chinese, "zh").share(), Some(1.0));
        assert_eq!(language_share("https://example.com/über/straße", "en"), LanguageShare::default());
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        for piece in [
            "`", "$", "<", "\\(", "@", "a@", "://", "a", "é ", "```", "\n", "a. ", "<a", "中a", "\\a",
            "\\begin{", "ab\n",
        ] {
            let text = piece.repeat(200_000 / piece.len());
            let started = std::time::Instant::now();
            language_share(&text, "en");
            assert!(started.elapsed().as_secs() < 3, "{piece:?} {:?}", started.elapsed());
        }
    }
}
