//! Can a response break a rule? Every rule of the registry says something finite and within its range of any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaudit::outcome::Outcome;
use plaudit::reason::Code;
use plaudit::rule::{RULES, Rule, Sample};
use plaudit::rule::reference_view::ReferenceView;
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Map, json};
use std::cell::OnceCell;

thread_local! {
    static RULES: OnceCell<Vec<Rule>> = const { OnceCell::new() };
}

fuzz_target!(|input: (&str, &str, u16)| {
    let (response, reference, tokens) = input;
    let extra = Map::new();
    RULES.with(|rules| {
        let load = || RULES.iter().filter_map(|kind| (kind.build)(json!({}), &mut ResourceCache::default()).ok()).collect();
        for rule in rules.get_or_init(load) {
            let (text, reference) = (Text::new(response), ReferenceView::from(reference));
            let sample = Sample {
                text: &text,
                reference: Some(&reference),
                prompt: None,
                tokens: Some(u64::from(tokens)),
                extra: &extra,
            };
            let outcomes = match rule {
                Rule::Each(rule) => vec![rule.score(&sample)],
                Rule::Group(rule) => rule.score(&[sample, sample]),
            };
            let range = rule.properties().range;
            for outcome in outcomes {
                let reference = [Code::ReferenceUnparsable, Code::EmptyReference];
                let fault = matches!(&outcome, Outcome::Invalid(reason) if !reference.contains(&reason.code));
                assert!(!fault, "{outcome:?}");
                if let Some(value) = outcome.value() {
                    assert!(value >= range.min - 1e-9 && value <= range.max + 1e-9, "{value} outside {range:?}");
                }
            }
        }
    });
});
