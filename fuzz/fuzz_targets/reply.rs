//! Can a judge's reply, or a response that it quotes, break its reader? Any bytes are a verdict in its range or a cause,
//! and any text is harmless in a prompt.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaudit::judge::detect::injection;
use plaudit::judge::fence::{Fences, neutral};
use plaudit::judge::reply::{Reply, scalars, scrub, usage};
use plaudit::judge::{Place, Reading, Verdict, Wanted};

fuzz_target!(|body: &[u8]| {
    let _ = usage(body);
    if let Ok(numbers) = scalars(body) {
        assert!(numbers.iter().all(|number| number.is_finite()));
    }
    let _ = Reply::read(body).map_err(|reason| assert!(reason.message.chars().count() <= 200));
    let Ok(text) = std::str::from_utf8(body) else { return };
    assert!(scrub(text).chars().all(|char| !char.is_control()));
    let fences = Fences::new(&[0; 32], b"fuzz");
    assert!(!neutral(text, fences.fence(), 1000).contains(['\0', '\u{1b}', '\u{202e}']));
    let _ = injection(text);
    let reply = Reply { content: text.to_owned(), tokens: None, usage: None, model: None };
    let [first, second] = ["A", "B"].map(str::to_owned);
    let places = [
        Place::Whole { logprobs: false },
        Place::Json { field: "v".to_owned(), echo: None },
        Place::Between { open: "<v>".to_owned(), close: "</v>".to_owned() },
        Place::Brackets,
    ];
    for place in places {
        let score = Reading { wanted: Wanted::Score { min: 0.0, max: 9.0 }, place: place.clone() };
        if let Ok(Verdict::Score(score)) = score.read(&reply) {
            assert!((0.0..=9.0).contains(&score));
        }
        let labels = vec![first.clone(), second.clone()];
        let _ = Reading { wanted: Wanted::Ranking { labels }, place: place.clone() }.read(&reply);
        let pair = Wanted::Pair { labels: [first.clone(), second.clone()], tie: None };
        let _ = Reading { wanted: pair, place }.read(&reply);
    }
});
