//! The hidden quality of a response, which the simulated judge decides by.

use super::random::SeededRandom;
use memchr::memmem;

/// What a mark of quality begins with; `[[quality:1.5]]` is a whole one.
pub(crate) const MARK: &str = "[[quality:";

/// The longest number that is read in a mark.
const MAX_LENGTH: usize = 64;

/// Beyond this, more quality makes no difference, and sums stay finite.
const LIMIT: f64 = 1e9;

/// The number in the last mark of the text that holds one; without such a mark, a standard normal number that is fixed
/// by the text.
pub(crate) fn quality(text: &str) -> f64 {
    let marks = memmem::rfind_iter(text.as_bytes(), MARK.as_bytes());
    let mut numbers = marks.filter_map(|at| number(&text[at + MARK.len()..]));
    numbers.next().unwrap_or_else(|| SeededRandom::new(0).about(fingerprint(text)).normal())
}

/// The number of a mark, given what stands after its beginning.
fn number(rest: &str) -> Option<f64> {
    let near = &rest.as_bytes()[..rest.len().min(MAX_LENGTH)];
    let end = memmem::find(near, b"]]")?;
    let number: f64 = rest.get(..end)?.trim().parse().ok()?;
    number.is_finite().then(|| number.clamp(-LIMIT, LIMIT))
}

/// A hash of the text that does not see white space at the ends of lines, nor blank lines.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty());
    lines.fold(SeededRandom::new(1), |chance, line| chance.about_text(line.as_bytes())).key()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_good_mark_counts() {
        assert_eq!(quality("a [[quality:1.25]] b [[quality:-2e0]] c"), -2.0);
        assert_eq!(
            quality("[[quality: 3 ]][[quality:nan]][[quality:inf]][[quality:]][[quality:é]][[quality:"),
            3.0
        );
        assert_eq!(quality("[[quality:1e300]]"), LIMIT);
    }

    #[test]
    fn a_text_without_a_mark_has_a_fixed_quality() {
        assert_eq!(quality("the same\n"), quality("  the same\r\n\n"));
        assert_ne!(quality("the same"), quality("another"));
        let all: Vec<f64> = (0..4000).map(|at| quality(&format!("response {at}"))).collect();
        let mean = all.iter().sum::<f64>() / 4000.0;
        let spread = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.06 && (spread - 1.0).abs() < 0.1, "{mean} {spread}");
    }

    #[test]
    fn many_broken_marks_take_linear_time() {
        let text = MARK.repeat((1 << 20) / MARK.len());
        let began = std::time::Instant::now();
        assert!(quality(&text).is_finite());
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
}
