//! Constraints of one's own: registered by id for a process, and read and checked like the public ones.

use crate::argument::{ArgumentError, ArgumentErrorKind, Arguments, Kind, Parameter};
use crate::constraint::{Check, CheckTest, Constraint, Family, Semantics, Test, find};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Whether a text follows, or why that cannot be said.
pub type OwnTest = Box<dyn Fn(&str) -> Result<bool, String> + Send + Sync>;

/// A constraint of one's own. It reads its arguments once, and its test is then held against many responses.
///
/// ```
/// use plaudit_instructions::{Mode, OwnConstraint, OwnTest, Semantics, parse, register, verdicts};
/// use serde_json::{Map, Value, json};
///
/// struct EndsWith;
///
/// impl OwnConstraint for EndsWith {
///     fn checks(&self) -> &str {
///         "The text ends with the word."
///     }
///
///     fn parameters(&self) -> Vec<&str> {
///         vec!["word"]
///     }
///
///     fn build(&self, arguments: &Map<String, Value>) -> Result<OwnTest, String> {
///         let word = arguments["word"].as_str().ok_or("word must be a text")?.to_owned();
///         Ok(Box::new(move |text| Ok(text.trim_end().ends_with(&word))))
///     }
/// }
///
/// register("own:ends_with", EndsWith)?;
/// let checks = [parse("own:ends_with", &json!({"word": "over."}), Semantics::Corrected)?];
/// assert_eq!(verdicts("It is over.", &checks, Mode::Strict), [true]);
/// # Ok::<(), plaudit_instructions::ArgumentError>(())
/// ```
pub trait OwnConstraint: Send + Sync + 'static {
    /// What it checks, in one sentence.
    fn checks(&self) -> &str;

    /// The names of its arguments, each of which must be given.
    fn parameters(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The names of the arguments that it can do without.
    fn optional_parameters(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Reads the arguments, null ones left out. An error says what is wrong with them.
    fn build(&self, arguments: &Map<String, Value>) -> Result<OwnTest, String>;
}

/// A constraint of one's own that failed: nothing is known of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The constraint.
    pub id: &'static str,
    /// What its test said.
    pub message: String,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.message)
    }
}

impl std::error::Error for CheckError {}

/// A registered constraint, with its line as those of the public tables.
#[derive(Clone)]
struct Registered {
    line: &'static Constraint,
    own: Arc<dyn OwnConstraint>,
}

static REGISTERED: RwLock<BTreeMap<&'static str, Registered>> = RwLock::new(BTreeMap::new());

/// Registers a constraint of one's own for this process. Under an id that is registered already it takes the place of the other; checks that
/// were read before keep theirs.
///
/// The names of a constraint live as long as the process, so that a program registers a limited number of them.
///
/// # Errors
///
/// An id that is blank, or that of a public constraint.
pub fn register(id: &str, own: impl OwnConstraint) -> Result<(), ArgumentError> {
    let refused =
        |reason: &str| Err(ArgumentError::new(id, "", ArgumentErrorKind::Refused(reason.to_owned())));
    if id.trim().is_empty() {
        return refused("an id is a text that is not blank");
    }
    if find(id).is_some() {
        return refused("this is the id of a public constraint");
    }
    let text = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let needed = own.parameters().into_iter().map(|name| Parameter::new(text(name), Kind::Any));
    let optional =
        own.optional_parameters().into_iter().map(|name| Parameter::optional(text(name), Kind::Any));
    let line: &'static Constraint = Box::leak(Box::new(Constraint {
        id: text(id),
        family: Family::Own,
        parameters: Box::leak(needed.chain(optional).collect::<Box<[Parameter]>>()),
        checks: text(own.checks()),
        gamed: "",
        difference: "",
        build: never,
    }));
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.insert(line.id, Registered { line, own: Arc::new(own) });
    Ok(())
}

/// The line of a registered constraint is read by [`parse`], and not by this.
fn never(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(Box::new(|_| false))
}

/// The constraints that this process has registered, by id.
pub fn registered() -> Vec<&'static Constraint> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.values().map(|one| one.line).collect()
}

/// Reads a registered constraint; nothing where none has this id.
pub(crate) fn parse(id: &str, kwargs: &Value) -> Option<Result<Check, ArgumentError>> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    // Its own code runs without the lock.
    let Registered { line, own } = registered.get(id)?.clone();
    drop(registered);
    Some(build(line, &*own, kwargs))
}

fn build(line: &'static Constraint, own: &dyn OwnConstraint, kwargs: &Value) -> Result<Check, ArgumentError> {
    let arguments = Arguments::new(line, kwargs, Semantics::Corrected)?;
    let mut given = Map::new();
    for Parameter { name, optional, .. } in line.parameters {
        match arguments.optional(name) {
            Some(value) => drop(given.insert((*name).to_owned(), value.clone())),
            None if *optional => {}
            None => return Err(ArgumentError::new(line.id, name, ArgumentErrorKind::Missing)),
        }
    }
    let refused = |reason| ArgumentError::new(line.id, "", ArgumentErrorKind::Refused(reason));
    Ok(Check { constraint: line, test: CheckTest::Own(own.build(&given).map_err(refused)?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Response, Texts, parse};
    use serde_json::json;

    struct Shorter;

    impl OwnConstraint for Shorter {
        fn checks(&self) -> &str {
            "The text has fewer letters."
        }

        fn parameters(&self) -> Vec<&str> {
            vec!["than"]
        }

        fn optional_parameters(&self) -> Vec<&str> {
            vec!["fails"]
        }

        fn build(&self, arguments: &Map<String, Value>) -> Result<OwnTest, String> {
            let than = arguments["than"].as_u64().ok_or("than must be a whole number")?;
            let fails = arguments.contains_key("fails");
            Ok(Box::new(
                move |text| {
                    if fails { Err("it failed".to_owned()) } else { Ok((text.len() as u64) < than) }
                },
            ))
        }
    }

    #[test]
    fn own_constraints_are_checked_beside_public_ones() {
        register("own:shorter", Shorter).unwrap();
        let read =
            |kwargs| parse("own:shorter", &kwargs, Semantics::Corrected).map_err(|error| error.to_string());
        let check = read(json!({"than": 4})).unwrap();
        let texts = ["abc", "abcd", " ", "a\nbcdefgh"].map(Texts::new);
        let said = |mode| texts.each_ref().map(|text| Response::new(text).verdict(&check, mode));
        assert_eq!(said(Mode::Strict), [Ok(true), Ok(false), Ok(false), Ok(false)]);
        assert_eq!(said(Mode::Loose), [Ok(true), Ok(false), Ok(false), Ok(true)]);
        assert!(registered().iter().any(|line| line.id == "own:shorter" && line.family == Family::Own));
        for (kwargs, message) in [
            (json!({}), "own:shorter: the argument \"than\" is missing"),
            (json!({"than": 4, "then": 5}), "own:shorter: there is no argument \"then\""),
            (json!({"than": "x"}), "own:shorter: than must be a whole number"),
            (json!([]), "own:shorter: the arguments must be an object or null"),
        ] {
            assert_eq!(read(kwargs).unwrap_err(), message);
        }
    }

    #[test]
    fn an_own_constraint_that_fails_is_no_verdict() {
        register("own:failing", Shorter).unwrap();
        let check = parse("own:failing", &json!({"than": 4, "fails": true}), Semantics::Corrected).unwrap();
        let text = Texts::new("abc");
        let error = Response::new(&text).verdict(&check, Mode::Strict).unwrap_err();
        assert_eq!(error.to_string(), "own:failing: it failed");
        assert!(!Response::new(&text).passes(&check, Mode::Strict));
    }

    #[test]
    fn public_ids_are_not_registered() {
        for id in ["punctuation:no_comma", "", " "] {
            assert!(register(id, Shorter).is_err(), "{id}");
        }
    }
}
