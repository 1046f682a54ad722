//! Benchmark of judge calls, in calls a second and CPU time a call.
//!
//! Asks a judge `count` times with `concurrency` in flight and a body of so many bytes:
//! `cargo run --release --example calls -- http://127.0.0.1:8000/v1 256 20000 4096`.

use futures_util::StreamExt as _;
use plaudit::judge::{Form, Query, Request, Usage, Verdict};
use plaudit::reason::Reason;
use plaudit::schedule::{Caller, JudgeSpec, Network, NoRecord};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A question of a given size, to which every answer is a verdict.
struct Question {
    number: usize,
    bytes: usize,
}

impl Query for Question {
    fn forms(&self) -> &[Form] {
        &[Form::Json]
    }

    fn request(&self, _: Form, _: u32) -> Result<Request, Reason> {
        let content = format!("[[sample:{}]] {}", self.number, "x".repeat(self.bytes));
        let body = serde_json::json!({"model": "mock", "messages": [{"role": "user", "content": content}]});
        Ok(Request { path: "/chat/completions", body: body.to_string().into_bytes() })
    }

    fn read(&self, _: Form, _: u32, _: &[u8]) -> Result<Verdict, Reason> {
        Ok(Verdict::Score(1.0))
    }

    fn usage(&self, _: &[u8]) -> Option<Usage> {
        None
    }
}

/// The CPU time of this process so far, in seconds, where the system says so in ticks of ten milliseconds.
fn cpu() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
}

#[allow(clippy::print_stdout, reason = "the figures are what this is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, concurrency, count, bytes] = arguments.as_slice() else {
        return Err("usage: calls <base url> <concurrency> <count> <bytes>".into());
    };
    let (concurrency, count, bytes): (usize, usize, usize) =
        (concurrency.parse()?, count.parse()?, bytes.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let spec = JudgeSpec { concurrency, hedge: 0.0, ..JudgeSpec::at("judge", url) };
    let caller = Caller::new(vec![spec], Arc::new(NoRecord::default()), Network::Live)?;
    let (start, before) = (Instant::now(), cpu());
    let deadline = start + Duration::from_secs(3600);
    let asked = runtime.block_on(async {
        let ask = |number| {
            let caller = &caller;
            async move { caller.ask(0, &Question { number, bytes }, deadline).await.verdict.is_ok() }
        };
        let all = futures_util::stream::iter(0..count).map(ask).buffer_unordered(concurrency);
        all.fold(0, |good, is_good| async move { good + usize::from(is_good) }).await
    });
    let (seconds, after) = (start.elapsed().as_secs_f64(), cpu());
    println!("{asked} of {count} answered in {seconds:.2} s: {:.0} calls/s", count as f64 / seconds);
    if let (Some(before), Some(after)) = (before, after) {
        println!("{:.0} us of CPU a call", (after - before) / count as f64 * 1e6);
    }
    Ok(())
}
