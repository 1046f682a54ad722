//! The simulated endpoint: makes the reply to a request body, with drawn faults and delays. It does not wait; the server
//! does.

use super::answer::Answer;
use super::caches::{AskCounts, Prefixes};
use super::judge::{Judge, chance};
use super::prompt::Question;
use super::protocol::{
    Chat, Choice, Completion, ErrorBody, ErrorDetails, Logprobs, ReplyMessage, ScoreRequest, ScoredItem,
    Scores, Usage, tokens,
};
use super::quality::quality;
use super::random::{SeededRandom, sigma};
use super::{lock, natural, share, time};
use clap::Args;
use serde::Serialize;
use std::sync::Mutex;
use std::time::Duration;

/// The most choices a token that OpenAI's protocol allows to ask for.
const MAX_TOP: u64 = 20;
/// How much of the text of a request error is sent back.
const MESSAGE: usize = 200;
/// The longest delay in seconds.
const MAX_SECONDS: f64 = 86_400.0;

/// What goes wrong, and how long everything takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Faults {
    /// The median time to an answer, such as 50ms or 1.5s
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = time)]
    pub(crate) latency: Duration,
    /// How much the time varies: the sigma of a lognormal distribution
    #[arg(long, value_name = "SIGMA", default_value = "0.2", value_parser = natural)]
    pub(crate) jitter: f64,
    /// The share of answers that take much longer
    #[arg(long, value_name = "SHARE", default_value = "0.01", value_parser = share)]
    pub(crate) slow_share: f64,
    /// How many times longer those take
    #[arg(long, value_name = "FACTOR", default_value = "10", value_parser = natural)]
    pub(crate) slow_factor: f64,
    /// The share of requests that fail with status 500
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) error_rate: f64,
    /// The share of requests that are turned away with status 429, at once
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) rate_limit_share: f64,
    /// The share of answers that chat and hold no verdict
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) invalid_rate: f64,
}

/// A judge with an endpoint's habits.
#[derive(Debug)]
pub(crate) struct Simulator {
    seed: u64,
    model: Option<String>,
    judge: Judge,
    faults: Faults,
    /// How often each question was asked.
    asked: Mutex<AskCounts>,
    /// The prefix cache.
    known: Prefixes,
}

/// A reply, to be sent after a while.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) latency: Duration,
    pub(crate) usage: Option<Usage>,
}

/// Which endpoint for numbers was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Classify,
    Pooling,
    Embeddings,
}

/// What chance does to one request.
struct Outcome {
    latency: Duration,
    failure: Option<Reply>,
    invalid: bool,
}

impl Reply {
    /// A refusal in OpenAI's shape, at once.
    pub(crate) fn error(status: u16, message: &str, code: Option<&str>, param: Option<&str>) -> Self {
        let kind = match status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let short = &message[..message.floor_char_boundary(MESSAGE)];
        let error = ErrorDetails { message: short, kind, param, code };
        Self { status, body: bytes(&ErrorBody { error }), latency: Duration::ZERO, usage: None }
    }
}

fn bytes(reply: &impl Serialize) -> Vec<u8> {
    // Replies hold strings and finite numbers, which can always be written; an object without fields is no verdict.
    serde_json::to_vec(reply).unwrap_or_else(|_| b"{}".to_vec())
}

fn unsupported(param: &str, message: &str) -> Reply {
    Reply::error(400, message, Some("unsupported_parameter"), Some(param))
}

impl Simulator {
    pub(crate) fn new(seed: u64, model: Option<String>, judge: Judge, faults: Faults) -> Self {
        let (asked, known) = (Mutex::new(AskCounts::new()), Prefixes::new());
        Self { seed, model, judge, faults, asked, known }
    }

    /// The name of the model that is served.
    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or("judge-sim")
    }

    /// The reply to a request for a chat completion.
    pub(crate) fn chat(&self, body: &[u8]) -> Reply {
        self.read(body).and_then(|chat| self.judge(&chat)).unwrap_or_else(|refusal| refusal)
    }

    fn read(&self, body: &[u8]) -> Result<Chat, Reply> {
        let chat: Chat = serde_json::from_slice(body)
            .map_err(|error| Reply::error(400, &error.to_string(), None, None))?;
        if chat.messages.is_empty() {
            return Err(Reply::error(400, "there are no messages", None, Some("messages")));
        }
        if chat.stream == Some(true) {
            return Err(unsupported(
                "stream",
                "streaming is not supported: send stream false, or leave it out",
            ));
        }
        if chat.n.is_some_and(|n| n != 1) {
            return Err(unsupported("n", "only one choice a request is supported"));
        }
        if chat.logprobs == Some(true) && self.judge.no_logprobs {
            return Err(unsupported("logprobs", "unsupported parameter: this model has no logprobs"));
        }
        let json = chat.response_format.as_ref().is_some_and(|format| format.kind != "text");
        if json && self.judge.no_json {
            return Err(unsupported(
                "response_format",
                "unsupported parameter: this model has no response_format",
            ));
        }
        let wrong = |param, message| Err(Reply::error(400, message, Some("invalid_value"), Some(param)));
        let top = chat.top_logprobs.unwrap_or(0);
        if top > MAX_TOP {
            return wrong("top_logprobs", "top_logprobs is at most 20");
        }
        if top > 0 && chat.logprobs != Some(true) {
            return wrong("top_logprobs", "top_logprobs needs logprobs true");
        }
        if chat.max_tokens == Some(0) || chat.max_completion_tokens == Some(0) {
            return wrong("max_tokens", "max_tokens is at least 1");
        }
        Ok(chat)
    }

    fn judge(&self, chat: &Chat) -> Result<Reply, Reply> {
        let last = chat.messages.iter().rev().find(|message| message.role == "user").or(chat.messages.last());
        let question = Question::read(last.map_or("", |message| &message.content.0));
        let chance = chance(self.seed, &question.asked, chat.seed);
        let outcome = self.outcome(chance);
        if let Some(failure) = outcome.failure {
            return Err(failure);
        }
        let answer = if outcome.invalid {
            Answer::chatty()
        } else {
            Answer::new(
                &question.asked,
                question.form,
                self.judge.verdict(&question.asked, chance, self.sampled(chat.seed)),
            )
        };
        let longest = [chat.max_tokens, chat.max_completion_tokens].into_iter().flatten().min();
        let (content, cut) = answer.text(longest);
        let logprobs = (chat.logprobs == Some(true)).then(|| {
            let top = usize::try_from(chat.top_logprobs.unwrap_or(0)).unwrap_or(0);
            Logprobs { content: answer.tokens(&content, top) }
        });
        let prompt: String = chat.messages.iter().map(|message| message.content.0.as_str()).collect();
        let usage = self.usage(&[&prompt], tokens(content.len()));
        let completion = Completion {
            id: format!("chatcmpl-{:016x}", chance.key()),
            object: "chat.completion",
            created: 0,
            model: self.named(chat.model.as_deref()),
            choices: [Choice {
                index: 0,
                message: ReplyMessage { role: "assistant", content: &content, refusal: None },
                logprobs,
                finish_reason: if cut { "length" } else { "stop" },
            }],
            usage,
        };
        Ok(Reply { status: 200, body: bytes(&completion), latency: outcome.latency, usage: Some(usage) })
    }

    /// The reply to a request for one number a text: its quality, or for a class the share that it makes
    /// unless the request wants the number itself.
    pub(crate) fn scores(&self, body: &[u8], shape: Shape) -> Reply {
        let request: ScoreRequest = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => return Reply::error(400, &error.to_string(), None, None),
        };
        let texts = request.texts();
        if texts.is_empty() {
            return Reply::error(400, "there is no input", None, Some("input"));
        }
        let chance = SeededRandom::new(self.seed).about(5);
        let chance = texts.iter().fold(chance, |chance, text| chance.about_text(text.as_bytes()));
        let outcome = self.outcome(chance);
        if let Some(failure) = outcome.failure {
            return failure;
        }
        let usage = self.usage(&texts, 0);
        // What a reward model says that has lost its way: nothing at all for any text.
        let judged: &[&str] = if outcome.invalid { &[] } else { &texts };
        let raw = request.use_activation.or(request.activation) == Some(false);
        let scored = |(index, text): (usize, &&str)| match (shape, quality(text)) {
            (Shape::Classify, q) => {
                let number = if raw { q } else { sigma(q) };
                ScoredItem::Class { index, label: "LABEL_0", probs: [number], num_classes: 1 }
            }
            (Shape::Pooling, q) => ScoredItem::Pooled { index, object: "pooling", data: [q] },
            (Shape::Embeddings, q) => ScoredItem::Embedded { index, object: "embedding", embedding: [q] },
        };
        let scores = Scores {
            id: format!("score-{:016x}", chance.key()),
            object: "list",
            created: 0,
            model: self.named(request.model.as_deref()),
            data: judged.iter().enumerate().map(scored).collect(),
            usage,
        };
        Reply { status: 200, body: bytes(&scores), latency: outcome.latency, usage: Some(usage) }
    }

    /// What chance depends on beside a question.
    fn sampled(&self, sampling: Option<i64>) -> SeededRandom {
        let seed = SeededRandom::new(self.seed);
        sampling.map_or(seed, |sampling| seed.about(sampling as u64))
    }

    /// The model's own name if it has one, else whatever the request calls it.
    fn named<'n>(&'n self, asked: Option<&'n str>) -> &'n str {
        self.model.as_deref().or(asked).unwrap_or_else(|| self.model())
    }

    fn usage(&self, prompts: &[&str], completion: u64) -> Usage {
        let cached: usize = prompts.iter().map(|prompt| self.known.cached(prompt.as_bytes())).sum();
        Usage::new(prompts.iter().map(|prompt| tokens(prompt.len())).sum(), cached as u64, completion)
    }

    /// What becomes of a question, which depends on how often it was asked: a second try may fare better.
    fn outcome(&self, chance: SeededRandom) -> Outcome {
        let faults = &self.faults;
        let before = lock(&self.asked).add(chance.key());
        let chance = chance.about(6).about(u64::from(before));
        let happens = |what: u64, share: f64| chance.about(what).uniform() < share;
        if happens(1, faults.rate_limit_share) {
            let limited = Reply::error(429, "too many requests", Some("rate_limit_exceeded"), None);
            return Outcome { latency: Duration::ZERO, failure: Some(limited), invalid: false };
        }
        let slow = if happens(2, faults.slow_share) { faults.slow_factor } else { 1.0 };
        let factor = (faults.jitter * chance.about(3).normal()).exp() * slow;
        let seconds = (faults.latency.as_secs_f64() * factor).min(MAX_SECONDS);
        let latency = Duration::from_secs_f64(seconds);
        let failure = happens(4, faults.error_rate).then(|| {
            let failed = Reply::error(500, "the simulated judge has failed", Some("internal_error"), None);
            Reply { latency, ..failed }
        });
        Outcome { latency, failure, invalid: happens(5, faults.invalid_rate) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulator(change: impl FnOnce(&mut Faults)) -> Simulator {
        let mut faults = Faults {
            latency: Duration::from_millis(50),
            jitter: 0.2,
            slow_share: 0.0,
            slow_factor: 10.0,
            error_rate: 0.0,
            rate_limit_share: 0.0,
            invalid_rate: 0.0,
        };
        change(&mut faults);
        Simulator::new(1, None, super::super::judge::tests::JUDGE, faults)
    }

    #[test]
    fn delays_are_lognormal_around_their_median_with_a_slow_share() {
        let simulator = simulator(|faults| faults.slow_share = 0.1);
        let mut delays: Vec<f64> = (0..4000)
            .map(|at| simulator.outcome(SeededRandom::new(at)).latency.as_secs_f64() * 1e3)
            .collect();
        delays.sort_by(f64::total_cmp);
        let slow = delays.iter().filter(|delay| **delay > 160.0).count();
        assert!((49.0..53.5).contains(&delays[2000]) && slow.abs_diff(400) < 60, "{} {slow}", delays[2000]);
        // A sigma of 0.2 puts a sixth of the fast ones below the median by a factor of exp(-0.2).
        assert!((delays[571] - 50.0 * (-0.2_f64).exp()).abs() < 1.5, "{}", delays[571]);
    }

    #[test]
    fn a_second_try_has_another_fate_and_the_same_verdict() {
        let simulator = simulator(|faults| faults.error_rate = 0.5);
        let body = |at: u64| format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{at}\"}}]}}");
        let (mut changed, mut delayed) = (0, 0);
        for at in 0..100 {
            let tries: Vec<Reply> = (0..6).map(|_| simulator.chat(body(at).as_bytes())).collect();
            changed += usize::from(tries[0].status != tries[1].status);
            delayed += usize::from(tries[0].latency != tries[1].latency);
            let mut said: Vec<&[u8]> =
                tries.iter().filter(|reply| reply.status == 200).map(|reply| reply.body.as_slice()).collect();
            said.dedup();
            assert!(said.len() <= 1, "{at}");
        }
        assert!((25..75).contains(&changed) && delayed == 100, "{changed} {delayed}");
    }

    #[test]
    fn messages_may_come_in_parts_and_end_with_the_judge() {
        let simulator = simulator(|_| {});
        let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a [[quality:"},
            {"type":"image_url","image_url":{}},{"type":"text","text":"8]]"}]},{"role":"assistant","content":null}]}"#;
        let reply: serde_json::Value = serde_json::from_slice(&simulator.chat(body.as_bytes()).body).unwrap();
        let content = reply["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(content.starts_with("{\"score\": 0.99"), "{content}");
        assert_eq!(reply["usage"]["prompt_tokens"], 4);
    }

    #[test]
    fn a_reward_model_that_has_lost_its_way_scores_nothing() {
        let simulator = simulator(|faults| faults.invalid_rate = 1.0);
        let reply = simulator.scores(b"{\"input\":\"a\"}", Shape::Pooling);
        let reply: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(reply["data"], serde_json::json!([]));
    }
}
