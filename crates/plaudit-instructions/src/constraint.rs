//! The table of constraints, and a constraint with its arguments: the check.

use crate::argument::{ArgumentError, ArgumentErrorKind, Arguments, Parameter};
use crate::own::{self, CheckError, OwnTest};
use crate::text::view::View;
use crate::{if_rlvr, ifbench, ifeval};
use serde_json::Value;
use std::fmt;

/// Which question the checks answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Semantics {
    /// What the wording of the instruction demands.
    #[default]
    Corrected,
    /// What the published checkers answer, their faults included.
    Published,
}

/// The registry that a constraint comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IFEval, 25 constraints.
    IfEval,
    /// IF-RLVR (IFEvalG), 29 constraints beside those of IFEval.
    IfRlvr,
    /// IFBench, 58 constraints.
    IfBench,
    /// None: a constraint of one's own.
    Own,
}

impl Family {
    /// The name of the registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IfEval => "IFEval",
            Self::IfRlvr => "IF-RLVR",
            Self::IfBench => "IFBench",
            Self::Own => "own",
        }
    }
}

/// Whether a text follows: a constraint with its arguments and its semantics resolved.
pub(crate) type Test = Box<dyn Fn(&View<'_>) -> bool + Send + Sync>;

/// One kind of constraint: a line of a table.
#[derive(Clone, Copy)]
pub struct Constraint {
    /// The public name, such as `keywords:existence`.
    pub id: &'static str,
    /// Where it comes from.
    pub family: Family,
    /// The arguments that it reads.
    pub parameters: &'static [Parameter],
    /// What it checks, in the words of [`Semantics::Corrected`].
    pub checks: &'static str,
    /// How a policy can pass it without doing what was asked.
    pub gamed: &'static str,
    /// Where the two semantics differ, with an example. Empty where they do not.
    pub difference: &'static str,
    /// Reads the arguments. It never draws a value that is missing.
    pub(crate) build: fn(&Arguments<'_>) -> Result<Test, ArgumentError>,
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// Every public constraint, family by family.
pub fn constraints() -> impl Iterator<Item = &'static Constraint> {
    const FAMILIES: [&[&[Constraint]]; 3] = [ifeval::TABLES, if_rlvr::TABLES, ifbench::TABLES];
    FAMILIES.into_iter().flatten().copied().flatten()
}

/// The public constraint of this name.
pub fn find(id: &str) -> Option<&'static Constraint> {
    constraints().find(|constraint| constraint.id == id)
}

/// A constraint with its arguments, ready to be held against responses.
pub struct Check {
    pub(crate) constraint: &'static Constraint,
    pub(crate) test: CheckTest,
}

/// What a check asks of a text.
pub(crate) enum CheckTest {
    Public(Test),
    Own(OwnTest),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({})", self.constraint.id)
    }
}

impl Check {
    /// The kind of constraint.
    pub fn constraint(&self) -> &'static Constraint {
        self.constraint
    }

    /// Whether this text, as it stands, follows the constraint. A blank text follows nothing.
    ///
    /// # Errors
    ///
    /// A constraint of one's own that failed. A public one never does.
    pub fn verdict(&self, view: &View<'_>) -> Result<bool, CheckError> {
        match &self.test {
            _ if view.is_blank() => Ok(false),
            CheckTest::Public(test) => Ok(test(view)),
            CheckTest::Own(test) => {
                test(view.text()).map_err(|message| CheckError { id: self.constraint.id, message })
            }
        }
    }
}

/// Reads one constraint, public or registered. `kwargs` is an object or null; an argument that is null is not given.
///
/// # Errors
///
/// An unknown id, an argument that is missing, unknown, of another type or out of its range.
pub fn parse(id: &str, kwargs: &Value, semantics: Semantics) -> Result<Check, ArgumentError> {
    let Some(constraint) = find(id) else {
        return own::parse(id, kwargs)
            .unwrap_or_else(|| Err(ArgumentError::new(id, "", ArgumentErrorKind::UnknownConstraint)));
    };
    let arguments = Arguments::new(constraint, kwargs, semantics)?;
    let test = CheckTest::Public((constraint.build)(&arguments)?);
    Ok(Check { constraint, test })
}
