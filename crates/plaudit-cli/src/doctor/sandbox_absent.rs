//! What `plaudit doctor` tells about the sandbox where the command was built without it.

use super::{CheckResult, DoctorCheck};

/// One line: there is none.
pub(super) fn checks(_: bool) -> Vec<DoctorCheck> {
    let said = "none: this plaudit was built without the feature code";
    vec![DoctorCheck::new(CheckResult::Doubtful, "sandbox", said)]
}
