//! Registry of judges: every judge is known once, so that limits, breakers and budgets hold over all clients.

use super::judge_state::JudgeState;
use super::judge_usage::JudgeUsage;
use super::transport::{HttpTransport, JudgeSetupError};
use crate::exec::lock;
use crate::judge::config::ResolvedJudge;
use crate::reason::Reason;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Something about a judge that a log should tell.
#[derive(Debug, Clone, Copy)]
pub enum JudgeEvent<'e> {
    /// An error, with its unredacted text.
    Error(&'e Reason),
    /// What was learned of the formats and parameters that it takes, in words.
    Learned(&'e str),
}

/// Receives what happens to a judge, with the judge's name, for logs only.
pub type JudgeLog = Arc<dyn Fn(&str, JudgeEvent<'_>) + Send + Sync>;

/// Judges that are known once, whichever client asks them.
#[derive(Default)]
pub struct JudgeRegistry {
    /// By everything that their limits depend on.
    judges: Mutex<BTreeMap<String, Arc<JudgeState>>>,
    log: Option<JudgeLog>,
}

impl fmt::Debug for JudgeRegistry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(lock(&self.judges).values().map(|judge| &judge.judge.name)).finish()
    }
}

impl JudgeRegistry {
    /// A registry whose judges' error texts go to a log alone, and not into reasons.
    pub fn redacted(log: JudgeLog) -> Self {
        Self { judges: Mutex::default(), log: Some(log) }
    }

    /// The state of a judge, which is made where no client has asked it yet.
    pub(super) fn judge(&self, judge: Arc<ResolvedJudge>) -> Result<Arc<JudgeState>, JudgeSetupError> {
        let mut judges = lock(&self.judges);
        let key = judge.limits_key();
        if let Some(known) = judges.get(&key) {
            return Ok(Arc::clone(known));
        }
        let transport = HttpTransport::new(&judge)?;
        let state = Arc::new(JudgeState::new(judge, Box::new(transport), self.log.clone()));
        judges.insert(key, Arc::clone(&state));
        Ok(state)
    }

    /// The counts of all judges so far.
    pub fn judge_usage(&self) -> Vec<JudgeUsage> {
        lock(&self.judges).values().map(|judge| judge.judge_usage()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, resolved};
    use super::*;
    use crate::judge::config::JudgeConfig;

    #[test]
    fn a_judge_is_known_once_and_another_one_apart() {
        let registry = JudgeRegistry::default();
        let judge = |config: JudgeConfig| registry.judge(Arc::new(resolved(config))).unwrap();
        let (one, same) = (judge(config()), judge(config()));
        let other = judge(JudgeConfig { concurrency: 7, ..config() });
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert_eq!(registry.judge_usage().len(), 2);
    }
}
