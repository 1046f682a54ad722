//! Free questions of custom rewards, asked on the judges' runtime by the client that asks all others.

use super::{JudgeRunner, RunOptions};
use crate::exec::unless_cancelled;
use crate::judge::answer::Verdict;
use crate::judge::free_question::FreeQuestion;
use crate::question::{Question, Replies};
use crate::reason::{Code, Reason};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl JudgeRunner {
    /// Asks a judge all questions at once. `then` gets the replies on a thread that may wait. In a dry run the calls are
    /// counted as the component's, and only the journal answers.
    pub(crate) fn ask(
        self: &Arc<Self>,
        (component, judge): (&str, usize),
        questions: Vec<Question>,
        timeout: Duration,
        options: RunOptions,
        then: impl FnOnce(Replies) + Send + 'static,
    ) {
        let count = questions.len();
        let failed = move |code: Code| (0..count).map(|_| Err(Reason::from(code))).collect();
        let Some(runtime) = self.runtime.get(self.threads) else { return then(failed(Code::Stopped)) };
        let (runner, component) = (Arc::clone(self), component.to_owned());
        let asked = runtime.spawn(async move {
            let settings = runner.client.judge(judge);
            let calls: Vec<_> =
                questions.iter().map(|question| FreeQuestion::new(question, settings)).collect();
            if runner.is_dry() {
                runner.count_questions(&component, judge, &calls).await;
            }
            let deadline = Instant::now() + timeout;
            let ask = runner.client.ask_all(
                judge,
                &calls,
                deadline,
                (options.span.as_deref(), options.usage.as_deref()),
            );
            let outcomes = unless_cancelled(options.cancel.as_ref(), ask).await?;
            let reply = |verdict| match verdict {
                Ok(Verdict::Text(text)) => Ok(text),
                Ok(_) => Err(Code::JudgeSchema.into()),
                Err(reason) => Err(reason),
            };
            Ok(outcomes.into_iter().map(|outcome| reply(outcome.verdict)).collect())
        });
        runtime.spawn(async move {
            let replies = asked.await.unwrap_or(Err(Code::Panic));
            tokio::task::spawn_blocking(move || then(replies.unwrap_or_else(failed)));
        });
    }
}
