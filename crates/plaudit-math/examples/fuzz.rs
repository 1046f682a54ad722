//! Fuzzes the verifier on a stack of 256 KiB: texts of a grammar, vectors with mutated bytes. Prints what is asymmetric
//! and what is slow.
//!
//! `fuzz VECTORS SECONDS [SEED [grammar | bytes]]`
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::time::{Duration, Instant};

use plaudit_math::{Options, Reference, verify};

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

const LEAVES: &[&str] = &[
    "1",
    "2",
    "0",
    "10",
    "0.5",
    "x",
    "y",
    "n",
    "\\pi",
    "e",
    "i",
    "1,000",
    "999999",
    "\\infty",
    "AB",
    "f(x)",
    "x_1",
    "½",
    "\\text{cm}",
    "\\text{yes}",
    "50\\%",
    "30^\\circ",
    "10^{20}",
    "\\emptyset",
    "0.\\overline{3}",
    "12345678901234567890",
];
const FORMS: &[&str] = &[
    "\\frac{@}{@}",
    "\\sqrt{@}",
    "\\sqrt[3]{@}",
    "@+@",
    "@-@",
    "@\\cdot @",
    "@@",
    "(@)",
    "@^{@}",
    "\\sin @",
    "\\ln(@)",
    "\\log_{@}(@)",
    "|@|",
    "@!",
    "\\binom{@}{@}",
    "@=@",
    "@<@",
    "@,@",
    "\\{@,@\\}",
    "(@,@)",
    "[@,@)",
    "@\\cup@",
    "\\begin{pmatrix}@&@\\\\@&@\\end{pmatrix}",
    "@\\pm@",
    "@:@",
    "x=@",
    "\\lfloor@\\rfloor",
    "e^{@}",
    "\\tan(@)",
    "@\\text{ or }@",
    "\\arctan(@)",
    "\\gcd(@,@)",
    "\\{x\\mid x>@\\}",
    "@\\setminus@",
    "\\sum_{k=1}^{@}@",
    "2^{2^{@}}",
    "-@",
    "\\left(@\\right)^{@}",
    "\\lceil@\\rceil",
    "\\operatorname{lcm}(@,@)",
    "\\operatorname{sgn}(@)",
    "\\max(@,@)",
    "(-1)^{@}",
    "$@$",
    "\\text{@}",
    "@\\text{ cm}",
    "@_{2}",
    "\\overline{@}",
    "@\\pmod{7}",
    "\\operatorname{Re}(@)",
    "\\operatorname{Im}(@)",
];

fn expression(random: &mut Random, depth: u32) -> String {
    if depth == 0 || random.next(4) == 0 {
        return LEAVES[random.next(LEAVES.len())].to_owned();
    }
    let mut out = String::new();
    for part in FORMS[random.next(FORMS.len())].split_inclusive('@') {
        match part.strip_suffix('@') {
            Some(text) => {
                out.push_str(text);
                out.push_str(&expression(random, depth - 1));
            }
            None => out.push_str(part),
        }
    }
    out
}

fn mutated(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes.truncate(2_000);
    for _ in 0..=random.next(8) {
        if bytes.is_empty() {
            break;
        }
        let at = random.next(bytes.len());
        match random.next(4) {
            0 => bytes[at] = random.next(256) as u8,
            1 => {
                bytes.remove(at);
            }
            2 => {
                let piece = bytes[at..bytes.len().min(at + 1 + random.next(12))].to_vec();
                let to = random.next(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => bytes.insert(at, b"\\{}$^_0,.|()[]&<"[random.next(16)]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is fuzzed: texts of the grammar, vectors with mutated bytes, or both in turn.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Grammar,
    Bytes,
    Both,
}

/// Compares a pair both ways, and says so when the verdicts differ.
fn compare(left: &str, right: &str) -> Option<String> {
    let reference = Reference::parse(left, &Options::default()).ok()?;
    verify(&format!("\\boxed{{{right}}}"), &reference);
    verify(right, &reference);
    let other = Reference::parse(right, &Options::default()).ok()?;
    // A sentence is reduced to its formula when it is a reference, and an answer is not.
    if other.text() != right || reference.text() != left {
        return None;
    }
    let (there, back) = (reference.compare(right), other.compare(left));
    (there.outcome.is_right() != back.outcome.is_right()).then(|| format!("{there:?} {back:?}"))
}

/// The shortest of ten times of the dearest single verification of a pair, as the machine may be busy.
fn single(left: &str, right: &str) -> Duration {
    let mut longest = Duration::ZERO;
    for (reference, answer) in [(left, right), (right, left)] {
        let mut shortest = Duration::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            let parsed = Reference::parse(reference, &Options::default());
            let read = start.elapsed();
            let start = Instant::now();
            if let Ok(reference) = parsed {
                reference.compare(answer);
            }
            shortest = shortest.min(read.max(start.elapsed()));
        }
        longest = longest.max(shortest);
    }
    longest
}

/// A pair that takes longer, in its four verifications, is measured again, each verification alone.
const SLOW: Duration = Duration::from_millis(1);

fn fuzz(seeds: &[(String, String)], seconds: u64, mut random: Random, mode: Mode) {
    let start = Instant::now();
    let (mut count, mut asymmetric) = (0u64, 0u64);
    let mut slow: Vec<(Duration, String)> = Vec::new();
    while start.elapsed() < Duration::from_secs(seconds) {
        let grammar = match mode {
            Mode::Grammar => true,
            Mode::Bytes => false,
            Mode::Both => random.next(2) == 0,
        };
        let (left, right) = if grammar {
            (expression(&mut random, 4), expression(&mut random, 4))
        } else {
            let (reference, response) = &seeds[random.next(seeds.len())];
            (mutated(&mut random, reference), mutated(&mut random, response))
        };
        let one = Instant::now();
        if let Some(verdicts) = compare(&left, &right) {
            asymmetric += 1;
            if asymmetric < 10 {
                println!("asymmetric: {left} | {right} | {verdicts}");
            }
        }
        if one.elapsed() > SLOW {
            slow.push((single(&left, &right), format!("{left} | {right}")));
        }
        count += 1;
    }
    slow.sort_by_key(|slow| std::cmp::Reverse(slow.0));
    for (time, text) in slow.iter().take(5) {
        println!("{time:?}: {text:.300}");
    }
    let above = |limit: u64| slow.iter().filter(|(time, _)| *time > Duration::from_millis(limit)).count();
    println!(
        "{count} pairs, {asymmetric} asymmetric; single verifications above 1 ms: {}, above 2 ms: {}, above 5 ms: {}",
        above(1),
        above(2),
        above(5)
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap();
    let seconds: u64 = arguments.next().unwrap().parse().unwrap();
    let random = Random(arguments.next().map_or(0x9e37_79b9_7f4a_7c15, |seed| seed.parse().unwrap()));
    let mode = match arguments.next().as_deref() {
        Some("grammar") => Mode::Grammar,
        Some("bytes") => Mode::Bytes,
        None => Mode::Both,
        Some(other) => panic!("{other} is neither grammar nor bytes"),
    };
    let seeds: Vec<(String, String)> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            (row["reference"].as_str().unwrap().to_owned(), row["response"].as_str().unwrap().to_owned())
        })
        .collect();
    // A stack that overflows ends the process.
    let worker = std::thread::Builder::new().stack_size(256 * 1024);
    worker.spawn(move || fuzz(&seeds, seconds, random, mode)).unwrap().join().unwrap();
}
