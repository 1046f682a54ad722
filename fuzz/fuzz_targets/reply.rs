//! Can a judge's reply, or a response that it quotes, break its reader? Any bytes are a verdict in its range or a cause,
//! and any text is harmless in a prompt.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaudit::judge::prompt::delimiters::Delimiters;
use plaudit::judge::prompt::injection::injection;
use plaudit::judge::prompt::sanitize::sanitize;
use plaudit::judge::answer::reply::{Reply, scalars, scrub, usage};
use plaudit::judge::{AnswerLocation, AnswerParser, ExpectedAnswer, Verdict};

fuzz_target!(|body: &[u8]| {
    let _ = usage(body);
    if let Ok(numbers) = scalars(body) {
        assert!(numbers.iter().all(|number| number.is_finite()));
    }
    let _ = Reply::read(body).map_err(|reason| assert!(reason.message.chars().count() <= 200));
    let Ok(text) = std::str::from_utf8(body) else { return };
    assert!(scrub(text).chars().all(|char| !char.is_control()));
    let fences = Delimiters::new(&[0; 32], b"fuzz");
    assert!(!sanitize(text, fences.fence(), 1000).contains(['\0', '\u{1b}', '\u{202e}']));
    let _ = injection(text);
    let reply = Reply { content: text.to_owned(), tokens: None, usage: None, model: None };
    let [first, second] = ["A", "B"].map(str::to_owned);
    let places = [
        AnswerLocation::Whole { logprobs: false },
        AnswerLocation::Json { field: "v".to_owned(), echo: None },
        AnswerLocation::Between { open: "<v>".to_owned(), close: "</v>".to_owned() },
        AnswerLocation::Brackets,
    ];
    for place in places {
        let score = AnswerParser { expected: ExpectedAnswer::Score { min: 0.0, max: 9.0 }, location: place.clone() };
        if let Ok(Verdict::Score(score)) = score.read(&reply) {
            assert!((0.0..=9.0).contains(&score));
        }
        let labels = vec![first.clone(), second.clone()];
        let _ = AnswerParser { expected: ExpectedAnswer::Ranking { labels }, location: place.clone() }.read(&reply);
        let pair = ExpectedAnswer::Pair { labels: [first.clone(), second.clone()], tie: None };
        let _ = AnswerParser { expected: pair, location: place }.read(&reply);
    }
});
