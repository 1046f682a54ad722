//! The judges of a recipe, for a custom reward that is being called: free questions, and a callback with the replies.

use crate::value::parameters;
use plaudit::question::{AskJudge, Question, QuestionMessage, Replies, ReplyForm};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait that is taken at its word, in seconds.
const MAX_SECONDS: f64 = 86_400.0;

/// The judges that one call of a custom reward may ask.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct Judges {
    pub(crate) asks: Arc<dyn AskJudge>,
}

#[pymethods]
impl Judges {
    /// The names of the judges that take questions.
    fn names(&self) -> Vec<&str> {
        self.asks.judges()
    }

    /// Asks one of them all questions at once, each a list of roles and texts. `done` is called once, on another thread: with
    /// a list of replies, each a text, or a code and a message; with None where the engine goes away. Returns whether there
    /// is such a judge.
    #[allow(clippy::too_many_arguments, reason = "what a question is made of")]
    fn ask(
        &self,
        py: Python<'_>,
        judge: &str,
        questions: Vec<Vec<(String, String)>>,
        choices: Option<Vec<String>>,
        schema: Option<&Bound<'_, PyDict>>,
        timeout: f64,
        done: Py<PyAny>,
    ) -> PyResult<bool> {
        let form = match (choices, schema) {
            (Some(choices), _) => ReplyForm::Choice(choices),
            (None, Some(schema)) => ReplyForm::Json(Value::Object(parameters(schema)?)),
            (None, None) => ReplyForm::Text,
        };
        let message = |(role, content)| QuestionMessage { role, content };
        let question = |messages: Vec<(String, String)>| Question {
            messages: messages.into_iter().map(message).collect(),
            form: form.clone(),
        };
        let questions: Vec<Question> = questions.into_iter().map(question).collect();
        let timeout = Duration::from_secs_f64(timeout.clamp(0.0, MAX_SECONDS));
        let mut done = Done(Some(done));
        let then = Box::new(move |replies| done.call(Some(replies)));
        Ok(py.detach(|| self.asks.ask(judge, questions, timeout, then)))
    }
}

/// The callback of a question. Dropped without a call, it says that there are no replies, so that nobody waits for ever.
struct Done(Option<Py<PyAny>>);

impl Done {
    fn call(&mut self, replies: Option<Replies>) {
        let Some(done) = self.0.take() else { return };
        // Where the interpreter is going away, nobody waits any more.
        Python::try_attach(|py| {
            let reply = |reply| match reply {
                Ok(text) => (Some(text), None),
                Err(plaudit::reason::Reason { code, message }) => {
                    (None, Some((code.as_str(), message.into_owned())))
                }
            };
            let replies = replies.map(|replies| replies.into_iter().map(reply).collect::<Vec<_>>());
            if let Err(error) = done.call1(py, (replies,)) {
                error.write_unraisable(py, Some(done.bind(py)));
            }
        });
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.call(None);
    }
}
