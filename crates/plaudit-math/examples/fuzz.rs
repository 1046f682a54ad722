//! Fuzzes the verifier for a number of seconds: texts of a grammar, and vectors with mutated bytes. Prints the slowest.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap();
    let seconds: u64 = arguments.next().unwrap().parse().unwrap();
    let mut random = Random(arguments.next().map_or(0x9e37_79b9_7f4a_7c15, |seed| seed.parse().unwrap()));
    let seeds: Vec<(String, String)> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            (row["reference"].as_str().unwrap().to_owned(), row["response"].as_str().unwrap().to_owned())
        })
        .collect();
    let start = Instant::now();
    let (mut count, mut asymmetric) = (0u64, 0u64);
    let mut slowest = (Duration::ZERO, String::new());
    while start.elapsed() < Duration::from_secs(seconds) {
        let (left, right) = if random.next(2) == 0 {
            (expression(&mut random, 4), expression(&mut random, 4))
        } else {
            let (reference, response) = &seeds[random.next(seeds.len())];
            (mutated(&mut random, reference), mutated(&mut random, response))
        };
        let one = Instant::now();
        if let Ok(reference) = Reference::parse(&left, &Options::default()) {
            verify(&format!("\\boxed{{{right}}}"), &reference);
            verify(&right, &reference);
            if let Ok(other) = Reference::parse(&right, &Options::default())
                && other.text() == right
                && reference.text() == left
                && reference.judge(&right).outcome.is_right() != other.judge(&left).outcome.is_right()
            {
                asymmetric += 1;
                if asymmetric < 10 {
                    println!(
                        "asymmetric: {left} | {right} | {:?} {:?}",
                        reference.judge(&right),
                        other.judge(&left)
                    );
                }
            }
        }
        let time = one.elapsed();
        if time > slowest.0 {
            slowest = (time, format!("{left} | {right}"));
        }
        count += 1;
    }
    println!("{count} pairs, {asymmetric} asymmetric, slowest {:?}: {:.300}", slowest.0, slowest.1);
}
