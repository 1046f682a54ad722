//! `privacy_leakage`: a penalty for personal data (email, phone, ID card, credit card, IP address).

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::pii::PiiCounts;
use crate::text::scope::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty for every e-mail address, phone number, identity card, payment card and public IP address.
///
/// ## What it scores
/// The number of leaks times `penalty_per_leak`; 0 where there is none. One text may count as two kinds. None may
/// touch an ASCII letter, digit or `_`; text of any other script may stand directly beside it.
///
/// - `email`: a name of letters, digits and `._%+-`, an `@`, a domain, and a last part of two or more letters.
/// - `phone`: ten digits as 3-3-4 with an optional `1` or `+1` before, parted by `-`, `.` or white space or not at
///   all, the first three also in parentheses.
/// - `id_card`: the 18 characters of a Chinese identity card with a possible date of birth; the check digit is not
///   verified.
/// - `credit_card`: 16 digits in fours, parted by `-` or white space or not at all; the check digit is not verified.
/// - `ip_address`: four numbers from 0 to 255 with dots, unless in 127/8, 10/8, 192.168/16 or 172.16/12.
///
/// The evidence holds counts and never what was found.
///
/// ## When to use it
/// Together with a reward for helpfulness, on data where personal data is not asked for.
///
/// ## How it can be gamed
/// Spelling it out (`a at b dot com`), digits of another script, or any other separator hides a leak. Version numbers
/// such as 1.2.3.4 and every number of ten digits count as leaks, so a policy may learn to avoid numbers. The penalty
/// has no lower bound; the floor, for a response that is too long to be looked at, is that of ten leaks.
///
/// ## Example
/// ```yaml
/// privacy: { reward: privacy_leakage, weight: 1.0, penalty_per_leak: -0.5 }
/// ```
///
/// ## References
/// RM-Gallery `privacy_leakage`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrivacyLeakage {
    /// What each leak adds to the score: 0 or less.
    pub penalty_per_leak: f64,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for PrivacyLeakage {
    fn default() -> Self {
        Self { penalty_per_leak: -0.5, scope: Scope::Final }
    }
}

impl Reward<Rule> for PrivacyLeakage {
    const NAME: &'static str = "privacy_leakage";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let penalises = self.penalty_per_leak.is_finite() && self.penalty_per_leak <= 0.0;
        ParamError::check(penalises, "penalty_per_leak", "must be 0 or less; a leak is not rewarded")?;
        let min = if self.penalty_per_leak < 0.0 { f64::NEG_INFINITY } else { 0.0 };
        // The range has no lower end, so the floor is that of a response with ten leaks.
        let floor = 10.0 * self.penalty_per_leak;
        Ok(Rule::each(Range::new(min, 0.0), move |sample| self.score(sample)).floor(floor))
    }
}

impl PrivacyLeakage {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let PiiCounts { email, phone, id_card, credit_card, ip_address } =
            PiiCounts::count(self.scope.of(sample.text));
        let total = email + phone + id_card + credit_card + ip_address;
        let mut info = Info::of([("total_leaks", Fact::Count(total))]);
        let kinds = [
            ("email", email),
            ("phone", phone),
            ("id_card", id_card),
            ("credit_card", credit_card),
            ("ip_address", ip_address),
        ];
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            info.push(kind, Fact::Count(count));
        }
        Outcome::scored(total as f64 * self.penalty_per_leak, info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::score;

    #[test]
    fn the_evidence_holds_counts_and_no_text() {
        let outcome = score(PrivacyLeakage::default(), "a@b.com, c@d.org and 8.8.8.8", None);
        assert_eq!(outcome.value(), Some(-1.5));
        let info = outcome.info().expect("evidence");
        assert_eq!(info.get("total_leaks"), Some(&Fact::Count(3)));
        assert_eq!(info.get("email"), Some(&Fact::Count(2)));
        assert!(info.iter().all(|(_, fact)| matches!(fact, Fact::Count(_))));
    }

    #[test]
    fn a_leak_is_never_rewarded() {
        let bonus = PrivacyLeakage { penalty_per_leak: 0.5, ..PrivacyLeakage::default() };
        assert!(bonus.build(&mut ResourceCache::default()).is_err());
        let properties = |penalty_per_leak| {
            let rule = PrivacyLeakage { penalty_per_leak, ..PrivacyLeakage::default() }
                .build(&mut ResourceCache::default());
            *rule.expect("a rule").properties()
        };
        assert_eq!(properties(0.0).range, Range::new(0.0, 0.0));
        assert_eq!(properties(-0.5).floor, -5.0);
    }
}
