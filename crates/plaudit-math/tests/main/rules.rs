//! The rules of equality and of extraction, one pair a line.

use plaudit_math::{
    AnswerIn, NoValue, Options, Order, Outcome, Percent, ProofMethod, Reference, ReferenceError, Rule, Think,
    Units, verify,
};

fn compare(reference: &str, answer: &str, options: &Options) -> Outcome {
    Reference::parse(reference, options).unwrap().compare(answer).outcome
}

fn fields(table: &str) -> impl Iterator<Item = [&str; 3]> {
    table.lines().filter(|line| !line.starts_with("# ")).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        fields.try_into().unwrap()
    })
}

#[test]
fn pairs_of_answers() {
    for [reference, answer, equal] in fields(include_str!("rules.tsv")) {
        let outcome = compare(reference, answer, &Options::default());
        assert_eq!(outcome.is_right(), equal == "1", "{reference} | {answer}: {outcome:?}");
    }
}

#[test]
fn responses() {
    for [reference, response, right] in fields(include_str!("responses.tsv")) {
        let response: String = serde_json::from_str(response).unwrap();
        let verdict = verify(&response, &Reference::parse(reference, &Options::default()).unwrap());
        assert_eq!(verdict.outcome.is_right(), right == "1", "{reference} | {response}: {verdict:?}");
    }
}

#[test]
fn outcomes_are_told_apart() {
    let four = Reference::parse("4", &Options::default()).unwrap();
    let outcome = |response: &str| verify(response, &four).outcome;
    assert_eq!(outcome("\\boxed{4}"), Outcome::Right);
    assert_eq!(outcome("\\boxed{5}"), Outcome::Wrong);
    assert_eq!(outcome("\\boxed{4 2 7}"), Outcome::NotParsed);
    assert_eq!(outcome("I cannot say."), Outcome::NoAnswer);
    assert_eq!(outcome(""), Outcome::NoAnswer);
    assert_eq!(outcome("\\boxed{}"), Outcome::Unusable(NoValue::Empty));
    assert_eq!(outcome("\\boxed{4"), Outcome::Unusable(NoValue::Unbalanced));
    assert_eq!(outcome("\\boxed{\\frac{4}{0}}"), Outcome::Unusable(NoValue::Undefined));
    assert_eq!(outcome("\\boxed{\\int_0^4 dx}"), Outcome::Unusable(NoValue::Unsupported));
    assert_eq!(outcome("\\boxed{9^{9^9}}"), Outcome::Unusable(NoValue::TooLarge));
    assert_eq!(outcome("<think>\\boxed{4}"), Outcome::Unusable(NoValue::UnclosedThink));
}

#[test]
fn references_that_are_none() {
    let error = |text: &str| Reference::parse(text, &Options::default()).unwrap_err();
    assert_eq!(error("  "), ReferenceError::Empty);
    assert_eq!(error("\\frac{"), ReferenceError::Unparsable(NoValue::Unbalanced));
    assert_eq!(error("\\frac{1}{0}"), ReferenceError::Unparsable(NoValue::Undefined));
    assert_eq!(error("\\input{a}"), ReferenceError::Unparsable(NoValue::Unsupported));
}

#[test]
fn a_verdict_says_where_and_what() {
    let reference = Reference::parse("\\frac12", &Options::default()).unwrap();
    let verdict = verify("So we get $\\boxed{0.5}$.", &reference);
    assert_eq!(verdict.rule, Some(Rule::Box));
    assert_eq!(verdict.span, Some(11..22));
    assert_eq!(verdict.answer.as_deref(), Some("0.5"));
    assert_eq!(verdict.normal.as_deref(), Some("0.5"));
    assert_eq!(verdict.kind, Some("expression"));
    assert_eq!(verdict.how, Some(ProofMethod::Exact));
}

#[test]
fn options_change_the_rules() {
    let strict = Options { percent: Percent::Strict, ..Options::default() };
    assert!(!compare("50\\%", "50", &strict).is_right());
    assert!(compare("50\\%", "0.5", &strict).is_right());
    let units = Options { units: Units::Strict, ..Options::default() };
    assert!(!compare("5\\text{ cm}", "5", &units).is_right());
    let no_units = Options { units: Units::Ignore, ..Options::default() };
    assert!(compare("5\\text{ cm}", "5\\text{ m}", &no_units).is_right());
    let ordered = Options { order: Order::Strict, ..Options::default() };
    assert!(!compare("1,2", "2,1", &ordered).is_right());
    let close = Options { tolerance: Options::tolerance_from("1e-2"), ..Options::default() };
    assert!(compare("\\pi", "3.14", &close).is_right());
    assert!(compare("3.15", "3.14", &close).is_right());
    assert!(!compare("\\pi", "3.2", &close).is_right());
    assert!(!compare("\\pi", "\\frac{22}{7}", &close).is_right());
}

#[test]
fn options_change_the_place() {
    let with = |answer: AnswerIn, response: &str| {
        let options = Options { answer, ..Options::default() };
        verify(response, &Reference::parse("4", &options).unwrap()).outcome
    };
    assert_eq!(with(AnswerIn::Box, "The answer is 4."), Outcome::NoAnswer);
    assert_eq!(with(AnswerIn::Phrase, "The answer is 4. \\boxed{5}"), Outcome::Right);
    assert_eq!(with(AnswerIn::Hash, "#### 4"), Outcome::Right);
    assert_eq!(with(AnswerIn::LastNumber, "\\boxed{5} or 4"), Outcome::Right);
    let keep = Options { think: Think::Keep, ..Options::default() };
    assert!(verify("<think>\\boxed{4}", &Reference::parse("4", &keep).unwrap()).outcome.is_right());
}
