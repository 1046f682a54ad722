//! Properties that hold for every answer: no panic on any text, symmetry, seeds that change nothing, a small stack.

use std::path::Path;

use plaudit_math::{Options, Outcome, Reference, verify};
use serde_json::Value;

fn rows() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/math_verify.jsonl");
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verdicts(rows: &[Value], seed: u64) -> Vec<Option<Outcome>> {
    rows.iter()
        .map(|row| {
            let reference =
                Reference::parse(row["reference"].as_str().unwrap(), &Options { seed, ..Options::default() });
            reference.ok().map(|reference| verify(row["response"].as_str().unwrap(), &reference).outcome)
        })
        .collect()
}

#[test]
fn five_seeds_give_the_same_verdicts() {
    let rows = rows();
    let first = verdicts(&rows, 0);
    for seed in [1, 42, 0x5eed, 0xdead_beef_cafe, u64::MAX] {
        let other = verdicts(&rows, seed);
        for ((row, left), right) in rows.iter().zip(&first).zip(&other) {
            assert_eq!(left, right, "{} under seed {seed}", row["id"]);
        }
    }
}

#[test]
fn threads_give_the_same_verdicts() {
    let rows = rows();
    let first = verdicts(&rows, 7);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| verdicts(&rows, 7))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
    });
}

#[test]
fn equality_is_symmetric() {
    let mut compared = 0;
    for row in rows() {
        let Ok(reference) = Reference::parse(row["reference"].as_str().unwrap(), &Options::default()) else {
            continue;
        };
        let verdict = verify(row["response"].as_str().unwrap(), &reference);
        let Some(answer) = verdict.answer.filter(|answer| answer.chars().count() < 200) else { continue };
        let Ok(turned) = Reference::parse(&answer, &Options::default()) else { continue };
        // A sentence is reduced to its formula when it is a reference, and an answer is not.
        if turned.text() != answer.trim() {
            continue;
        }
        compared += 1;
        let (there, back) = (reference.compare(&answer).outcome, turned.compare(reference.text()).outcome);
        assert_eq!(there.is_right(), back.is_right(), "{} | {} | {answer}", row["id"], reference.text());
    }
    println!("{compared} pairs compared both ways");
    assert!(compared > 1500);
}

#[test]
fn step_functions_of_letters_agree_by_their_laws_only() {
    let right = |reference: &str, response: &str| {
        let all: Vec<bool> = (0..20)
            .map(|seed| {
                let reference = Reference::parse(reference, &Options { seed, ..Options::default() }).unwrap();
                verify(&format!("\\boxed{{{response}}}"), &reference).outcome.is_right()
            })
            .collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{reference} {response}: {all:?}");
        all[0]
    };
    for (reference, response) in [
        ("1", r"\lfloor\sqrt[3]{2^{2^{\tan(y)}}}\rfloor"),
        ("0", r"\sqrt[3]{\binom{x}{n}}"),
        (r"0.\overline{3}", r"0.\overline{3}-(\sqrt{\binom{2}{n}})"),
        ("1", r"\gcd(2,f(x))"),
        ("7", r"7+\lfloor\frac{1}{n+1}\rfloor"),
        ("n", r"n-\lfloor\frac{1}{n+1}\rfloor"),
        ("n", r"n-\lfloor\frac{1}{n^2+2}\rfloor"),
        ("n", r"n+\lceil\frac{1}{n^2+2}\rceil-1"),
        ("x", r"x+\lfloor\frac{1}{2+\sin x}\rfloor"),
        ("n", r"n+\binom{1}{n}"),
        ("n", r"n+\gcd(n,997)-1"),
        ("n", r"n+\operatorname{sgn}(n+1000)-1"),
        ("(-1)^n", r"(-1)^n+\binom{1}{n}"),
        ("(-1)^n", r"(-1)^n+\lfloor\frac{n}{1000}\rfloor"),
        ("(-1)^n", r"(-1)^n+\lfloor\frac{n+1}{4}\rfloor-\lfloor\frac{n}{4}\rfloor"),
        ("1", "(-1)^{n!}"),
        ("e", r"\max(\sin |y|!,e)"),
        ("f(x)+5", "|f(x)+5|"),
        (r"\sin(f(x))", r"\sin\max(f(x),\sin 10)"),
        ("1000", r"\max(\lfloor\sin y\rfloor,1000)"),
        ("1", "(-1)^{ab}"),
        (r"\lceil x\rceil", r"\lfloor x\rfloor+1"),
        (r"\lfloor\frac{n^2}{4}\rfloor", r"\frac{2n^2+1+(-1)^n}{8}"),
        // What bends far away is not straight.
        ("n", "n-|n+1000|+(n+1000)"),
        ("n", r"\sqrt{(n-10^6)^2}+10^6"),
        ("7", r"6+\frac{|n+1000000|}{n+1000000}"),
        // A branch that few points take is a branch.
        ("x", r"\min(x,\max(t^2,1000))"),
        (r"\sqrt{3}", r"\max(\sqrt{3},\operatorname{Re}(2^n))"),
        (r"\max(\frac{0.5}{x}-t,t)", r"\left|\max(\frac{0.5}{x}-t,t)\right|"),
        ("2^t+5", "|2^t+5-10^{-9}x|"),
        ("3", r"3+0^{\ln(\frac{\pi}{x})}"),
        (r"|\sin z|", r"|\sin z|+0^{z-\pi}"),
    ] {
        assert!(!right(reference, response) && !right(response, reference), "{reference} {response}");
    }
    for (reference, response) in [
        (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
        (r"\binom{n}{2}2^n", r"n(n-1)2^{n-1}"),
        (r"\binom{2n}{n}2^{n+1}", r"2^n\frac{2(2n)!}{(n!)^2}"),
        (r"\binom{n}{k}2^{n+1}", r"2^n\cdot 2\binom{n}{n-k}"),
        (r"\binom{n}{n-1}2^n", r"2n2^{n-1}"),
        (r"n!e^{2n}", r"n\cdot(n-1)!(e^n)^2"),
        (r"(-1)^n n!", r"-(-1)^{n+1}n\cdot(n-1)!"),
        (r"\operatorname{lcm}(m,n)", r"\frac{mn}{\gcd(n,m)}"),
        (r"2^{\gcd(m,n)}-1", r"2\cdot 2^{\gcd(n,m)-1}-1"),
        (r"\lfloor x+1\rfloor", r"\lfloor x\rfloor+1"),
        (r"\lceil x\rceil", r"-\lfloor-x\rfloor"),
        (r"\sin^2x+\cos^2x+\lfloor x\rfloor", r"1+\lfloor x\rfloor"),
        (r"2^{n+\lfloor n/2\rfloor}", r"2^n\cdot2^{\lfloor\frac{n}{2}\rfloor}"),
        (r"\lfloor\frac{n+1}{2}\rfloor", r"\frac{2n+1-(-1)^n}{4}"),
        (r"\lfloor\frac{n^2}{4}\rfloor", r"\frac{2n^2-1+(-1)^n}{8}"),
        ("(-1)^n a b^n", "a(-b)^n"),
        ("1", "(-1)^{2n}"),
        (r"\lfloor\pi\rfloor x+\sin x", r"3x+\sin x"),
        ("3", r"\lfloor\pi\rfloor"),
        (r"\sqrt{a^2-2ab+b^2}", "|a-b|"),
        (r"2^n\max(n!,1)", r"2\max(1,n!)2^{n-1}"),
        (r"\max(x,y)", r"\frac{x+y+|x-y|}{2}"),
        (r"\min(x,y)+\max(x,y)", "x+y"),
        ("|2x-2|", "2|1-x|"),
        ("|x^2+1|", "x^2+1"),
        (r"\ln|x^2+1|", r"\ln(x^2+1)"),
        (r"2\ln|x|", r"\ln x^2"),
        (r"|\sin x|", r"\sqrt{1-\cos^2x}"),
        (r"|xy|", r"|x|\cdot|y|"),
        (r"||x|-1|", r"\sqrt{(|x|-1)^2}"),
        (r"\operatorname{Re}(|z|)", "|z|"),
        (r"\max(x,\max(y,t))", r"\max(\max(x,t),y)"),
        ("|x-50|", r"\sqrt{x^2-100x+2500}"),
    ] {
        assert!(right(reference, response) && right(response, reference), "{reference} {response}");
    }
}

/// A function of letters that bends, steps or takes a part of a complex number.
fn bent_expression(random: &mut Random, levels: usize) -> String {
    const ATOMS: [&str; 9] = ["x", "y", "n", "t", "2", "3", "1000", "0.5", r"\pi"];
    if levels == 0 || random.next(6) == 0 {
        return ATOMS[random.next(ATOMS.len())].to_owned();
    }
    let mut part = || bent_expression(random, levels - 1);
    let (a, b) = (part(), part());
    match random.next(12) {
        0 => format!("({a}+{b})"),
        1 => format!("({a}-{b})"),
        2 => format!("({a})({b})"),
        3 => format!(r"\frac{{{a}}}{{{b}}}"),
        4 => format!("({a})^2"),
        5 => format!(r"\max({a},{b})"),
        6 => format!(r"\min({a},{b})"),
        7 => format!(r"\operatorname{{sgn}}({a})"),
        8 => format!(r"\operatorname{{Re}}({a})"),
        9 => format!(r"\operatorname{{Im}}({a})"),
        10 => format!(r"\left|{a}\right|"),
        _ => format!("0^{{{a}}}"),
    }
}

#[test]
fn verdicts_on_bent_functions_do_not_depend_on_points() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut equal = 0;
    for round in 0..1_500 {
        let a = bent_expression(&mut random, 3);
        let g = bent_expression(&mut random, 2);
        let b = match round % 8 {
            0 => format!(r"\max({a},{g})"),
            1 => format!(r"\min({a},{g})"),
            2 => format!("{a}+0^{{{g}}}"),
            3 => format!(r"\operatorname{{Re}}({a})"),
            4 => format!(r"\left|{a}\right|"),
            5 => format!(r"({a})\operatorname{{sgn}}({g})"),
            6 => format!(r"{a}+\operatorname{{Im}}({g})"),
            _ => format!(r"\max({g},{a})+\min({a},{g})-({g})"),
        };
        let verdicts: Vec<Option<bool>> = (0..4)
            .flat_map(|seed| {
                let options = Options { seed, ..Options::default() };
                let right = |reference: &str, answer: &str| {
                    let reference = Reference::parse(reference, &options).ok()?;
                    Some(reference.compare(answer).outcome.is_right())
                };
                [right(&a, &b), right(&b, &a)]
            })
            .collect();
        if verdicts.contains(&None) {
            continue;
        }
        assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{a} | {b}: {verdicts:?}");
        equal += u32::from(verdicts[0] == Some(true));
    }
    println!("{equal} pairs are equal");
    assert!(equal > 100);
}

#[test]
fn every_reference_equals_itself_in_a_box() {
    for row in rows() {
        let text = row["reference"].as_str().unwrap();
        let Ok(reference) = Reference::parse(text, &Options::default()) else { continue };
        let response = format!("So \\boxed{{{}}}.", reference.text());
        let outcome = verify(&response, &reference).outcome;
        assert!(outcome.is_right(), "{} {text}: {outcome:?}", row["id"]);
    }
}

/// A small generator of pseudo-random numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "\\frac",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\\{",
    "\\}",
    "1",
    "2",
    "10",
    "0",
    "0.5",
    "x",
    "y",
    "n",
    "+",
    "-",
    "*",
    "/",
    "^",
    "_",
    "=",
    "<",
    "\\le",
    "\\sqrt",
    "\\sin",
    "\\ln",
    "\\log",
    "\\pi",
    "e",
    "i",
    "\\pm",
    "\\cup",
    "\\infty",
    ",",
    ";",
    "|",
    "!",
    "%",
    "\\%",
    "^\\circ",
    "\\text{",
    "\\boxed{",
    "$",
    "\\binom",
    "\\over",
    "\\begin{pmatrix}",
    "&",
    "\\\\",
    "\\end{pmatrix}",
    "\\overline{",
    "\\sum_{k=1}^",
    "\\left",
    "\\right",
    " ",
    ".",
    "and",
    "or",
    "½",
    "²",
    "−",
    "元",
    "\\lfloor",
    "\\rfloor",
    "\\in",
    "\\mid",
    ":",
    "\\ne",
    "\\cdot",
    "\\mathrm{",
    "'",
    "1,000",
    "\\dot{3}",
    "\\to",
    "\\choose",
    "\\angle",
    "answer is ",
    "####",
    "<answer>",
    "</think>",
    "<think>",
    "\u{202e}",
    "\\vec",
    "\\langle",
    "\\rangle",
    "\\max",
    "9999999999",
    "ABC",
    "\\bmod ",
    " mod ",
    " million ",
    " and a half ",
    " squared",
    " minus ",
    " isn't ",
    "not ",
    "wrong ",
    "is ",
    "It is ",
    "。",
    "答案不是",
    ". ",
    "\n",
    "\\text{ dozen}",
    "\\operatorname{sgn}",
    "\\operatorname{Re}",
    "\\min",
];

fn grammar_text(random: &mut Random) -> String {
    let count = 1 + random.next(24);
    (0..count).map(|_| PIECES[random.next(PIECES.len())]).collect()
}

#[test]
fn any_text_of_the_grammar_is_safe() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let references: Vec<Reference> =
        ["4", "\\frac{x+1}{\\sqrt{2}}", "(1,2)\\cup[3,4]", "\\text{yes}", "x^2+y^2=1", "\\sin x"]
            .iter()
            .map(|text| Reference::parse(text, &Options::default()).unwrap())
            .collect();
    for round in 0..30_000 {
        let text = grammar_text(&mut random);
        let reference = &references[round % references.len()];
        let verdict = verify(&text, reference);
        if let Some(span) = verdict.span {
            assert!(text.get(span).is_some(), "{text}");
        }
        let _ = reference.compare(&text);
        if let Ok(own) = Reference::parse(&text, &Options::default()) {
            let _ = verify(&format!("\\boxed{{{text}}}"), &own);
        }
    }
}

#[test]
fn any_bytes_are_safe() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let reference = Reference::parse("\\frac{1}{2}", &Options::default()).unwrap();
    let seeds: Vec<String> = rows().iter().map(|row| row["response"].as_str().unwrap().to_owned()).collect();
    for _ in 0..20_000 {
        let mut bytes = seeds[random.next(seeds.len())].clone().into_bytes();
        bytes.truncate(400);
        for _ in 0..=random.next(6) {
            if bytes.is_empty() {
                break;
            }
            let at = random.next(bytes.len());
            match random.next(3) {
                0 => bytes[at] = random.next(256) as u8,
                1 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, b"\\{}$^_0,.|"[random.next(10)]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let _ = verify(&text, &reference);
        let _ = Reference::parse(&text, &Options::default());
    }
}

#[test]
fn a_stack_of_256_kib_is_enough() {
    let deep = |open: &str, close: &str, count: usize| {
        format!("\\boxed{{{}1{}}}", open.repeat(count), close.repeat(count))
    };
    let mut texts = Vec::new();
    for count in [60, 64, 70, 1_000, 20_000] {
        for (open, close) in [
            ("\\frac{1}{", "}"),
            ("\\sqrt{", "}"),
            ("(", ")"),
            ("{", "}"),
            ("(1,", ")"),
            ("\\{", "\\}"),
            ("[2,", "]"),
            ("|", "|"),
            ("2^{", "}"),
            ("\\sin(", ")"),
            ("\\sin ", ""),
            ("-", ""),
            ("x_{", "}"),
            ("\\begin{pmatrix}", "\\end{pmatrix}"),
            ("\\text{", "}"),
            ("\\mathrm{+", "}"),
            ("\\sum_{k=1}^{2}", ""),
            ("\\overline{1+", "}"),
            ("(0,1)\\cup", "(0,1)"),
            ("x=", ""),
            ("1:", ""),
            ("\\boxed{", "}"),
            ("f(", ")"),
            ("(x=", ")"),
        ] {
            texts.push(deep(open, close, count));
        }
    }
    let worker = std::thread::Builder::new().stack_size(256 * 1024);
    let thread = worker.spawn(move || {
        let reference = Reference::parse("\\frac{x}{2}", &Options::default()).unwrap();
        for text in &texts {
            let _ = verify(text, &reference);
            if let Ok(own) = Reference::parse(text, &Options::default()) {
                let _ = verify(text, &own);
            }
        }
    });
    thread.unwrap().join().unwrap();
}
