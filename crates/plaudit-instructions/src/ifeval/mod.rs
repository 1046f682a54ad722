//! The 25 constraints of IFEval.

pub(crate) mod keywords;
pub(crate) mod language;
pub(crate) mod length;
mod content;
mod format;
mod combination;
mod startend;
mod case;

use crate::constraint::Constraint;

/// One table a file.
pub(crate) const TABLES: &[&[Constraint]] = &[
    keywords::TABLE,
    language::TABLE,
    length::TABLE,
    content::TABLE,
    format::TABLE,
    combination::TABLE,
    startend::TABLE,
    case::TABLE,
];

#[cfg(test)]
mod tests {
    use crate::{Mode, Semantics, parse, verdicts};
    use serde_json::{Value, json};

    fn follows(id: &str, kwargs: Value, response: &str, semantics: Semantics) -> bool {
        verdicts(response, &[parse(id, &kwargs, semantics).unwrap()], Mode::Strict)[0]
    }

    #[test]
    fn short_english_may_be_cased() {
        let capital = |text| follows("change_case:english_capital", json!({}), text, Semantics::Corrected);
        for good in [
            "AMBER LANTERN",
            "1. VELVET HARBOR\n2. PAPER COMET\n3. QUIET ORBIT",
            "ROSE",
            "ANNA BERG, TOM HILL",
        ] {
            assert!(capital(good), "{good}");
        }
        for bad in ["BONJOUR TOUT LE MONDE", "GUTEN TAG", "ПРИВЕТ МИР", "Amber LANTERN", "HOLA AMIGOS"]
        {
            assert!(!capital(bad), "{bad}");
        }
        let small = |text| follows("change_case:english_lowercase", json!({}), text, Semantics::Corrected);
        assert!(small("misty copper mornings,\nherons drift over hollow reeds"));
        assert!(!small("merci beaucoup et bonne nuit"));
    }

    #[test]
    fn a_heading_may_stand_behind_a_quotation_mark() {
        let kwargs = json!({"section_spliter": "PART", "num_sections": 2});
        let parts =
            |text| follows("detectable_format:multiple_sections", kwargs.clone(), text, Semantics::Corrected);
        assert!(parts("\"PART 1: rain\n\nPART 2: sun\""));
        assert!(!parts("\"PART 1: rain\n\nPART 2: sun"));
        assert!(!parts("He said \"PART 1\", then\n\"PART 2\""));
    }

    #[test]
    fn a_sign_has_one_drawn_letter() {
        let kwargs = json!({"letter": "%", "let_frequency": 1, "let_relation": "at least"});
        let letters: Vec<String> = ('a'..='z').map(|letter| letter.to_string()).collect();
        let drawn: Vec<&String> = letters
            .iter()
            .filter(|text| follows("keywords:letter_frequency", kwargs.clone(), text, Semantics::Published))
            .collect();
        assert_eq!(drawn.len(), 1);
        assert!(follows("keywords:letter_frequency", kwargs, "50 %", Semantics::Corrected));
        let word = json!({"letter": "ab", "let_frequency": 1, "let_relation": "at least"});
        assert!(parse("keywords:letter_frequency", &word, Semantics::Published).is_err());
    }
}
