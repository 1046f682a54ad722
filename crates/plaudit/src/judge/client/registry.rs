//! How do several engines ask the same judges without asking more than one may? Through a registry, which knows every judge once.

use super::Judge;
use super::config::{JudgeSpec, Unusable};
use super::record::held;
use super::tally::Tally;
use super::transport::Http;
use crate::reason::Reason;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Who is told what a judge says of a failure: its name, and the reason in its words.
pub type ErrorSink = Arc<dyn Fn(&str, &Reason) + Send + Sync>;

/// Judges that are known once, whoever asks them: limits, breakers and budgets hold over all callers of a registry.
#[derive(Default)]
pub struct JudgeRegistry {
    /// By everything that is said of them.
    judges: Mutex<BTreeMap<String, Arc<Judge>>>,
    error_sink: Option<ErrorSink>,
}

impl fmt::Debug for JudgeRegistry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(held(&self.judges).values().map(|judge| &judge.spec.name)).finish()
    }
}

impl JudgeRegistry {
    /// A registry whose judges' words about failures are told to one alone, and do not stand in reasons.
    pub fn discreet(error_sink: ErrorSink) -> Self {
        Self { judges: Mutex::default(), error_sink: Some(error_sink) }
    }

    /// The judge of that description, which is made where nobody has asked it yet.
    pub(super) fn judge(&self, spec: JudgeSpec) -> Result<Arc<Judge>, Unusable> {
        if spec.budget_cost.is_some() && spec.price.is_none() {
            let message = "a budget of cost needs a price".to_owned();
            return Err(Unusable { judge: spec.name, message });
        }
        // A key does not show in the description, but makes a judge another one.
        let key = spec.api_key.as_ref().map(|key| blake3::hash(key.reveal().as_bytes()));
        let description = format!("{spec:?} {key:?}");
        let mut judges = held(&self.judges);
        if let Some(known) = judges.get(&description) {
            return Ok(Arc::clone(known));
        }
        let wire = Http::new(&spec)?;
        let mut judge = Judge::new(spec, Box::new(wire));
        judge.error_sink = self.error_sink.clone();
        let judge = Arc::new(judge);
        judges.insert(description, Arc::clone(&judge));
        Ok(judge)
    }

    /// What all judges have been asked so far.
    pub fn tallies(&self) -> Vec<Tally> {
        held(&self.judges).values().map(|judge| judge.tally()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_is_known_once_and_another_one_apart() {
        let registry = JudgeRegistry::default();
        let spec = || JudgeSpec::at("main", "http://127.0.0.1:1");
        let (one, same) = (registry.judge(spec()).unwrap(), registry.judge(spec()).unwrap());
        let other = registry.judge(JudgeSpec { concurrency: 7, ..spec() }).unwrap();
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert_eq!(registry.tallies().len(), 2);
        assert!(registry.judge(JudgeSpec { budget_cost: Some(1.0), ..spec() }).is_err());
    }
}
