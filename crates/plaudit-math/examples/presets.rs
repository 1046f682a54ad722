//! Compares the presets with the peers' answers in the vectors, for work on the verifier.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
use plaudit_math::{Preset, PresetReference};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    for name in ["verl.math_reward", "verl.math_dapo", "verl.math_dapo_strict_box", "verl.gsm8k", "verl.gsm8k_flexible", "trl.accuracy", "open_r1.accuracy", "verl.math_verify", "verl.prime_math", "verl.geo3k"] {
        let preset = Preset::from_name(name).unwrap();
        let (mut same, mut all, mut skips) = (0, 0, 0);
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let peer = &row["peers"][name];
            let reference = PresetReference::new(preset, row["reference"].as_str().unwrap(), 0);
            let score = reference.score(row["response"].as_str().unwrap());
            all += 1;
            let own = score.score.map(|s| if s > 0.5 { 1.0 } else { 0.0 });
            let agrees = match peer.as_f64() {
                Some(peer) => own == Some(peer),
                None => peer.as_str() != Some("skip") || own.is_none(),
            };
            if (peer.as_str() == Some("skip")) != own.is_none() { skips += 1; }
            if agrees { same += 1 } else if preset.is_exact() {
                println!("{name} {} {:?} {:?} | {} | {}", row["id"], own, peer, row["reference"], row["response"].as_str().unwrap().chars().rev().take(100).collect::<String>().chars().rev().collect::<String>());
            }
        }
        println!("{name}: {same} of {all}, skips differ {skips}");
    }
}
