//! The configuration file of the service: recipes, judges, limits and retention.

use crate::error::{ServeError, write_errors};
use plaudit::abort::AbortAfter;
use plaudit::judge::config::JudgeConfig;
use plaudit::recipe::{Node, RecipeErrors, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The configuration of `plaudit serve`. Clients name recipes; addresses, keys and limits stand only here.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The recipes that clients may name: names of shipped ones, or files beside this one. All shipped ones where nothing is said.
    pub recipes: Vec<String>,
    /// Judges that take the place of those of the same name in every recipe.
    pub judges: BTreeMap<String, JudgeConfig>,
    /// Names under which the service may be asked, beside those of this machine.
    pub hosts: Vec<String>,
    /// What the service may hold at once.
    pub limits: Limits,
    /// After so many steps in a row without one valid rollout the requests of a run are refused, and at once where that cannot heal
    /// by itself; `never` to go on answering. In runs without numbers of steps, a minute is one.
    pub abort_after: AbortAfter,
    /// What is kept of runs and jobs, and for how long.
    pub keep: Keep,
    /// Where traces are exported to.
    pub traces: Traces,
}

/// Where traces are exported to, over OTLP/HTTP. Keys for it stand in the environment: `OTEL_EXPORTER_OTLP_HEADERS`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Traces {
    /// The collector, such as http://127.0.0.1:4318; `OTEL_EXPORTER_OTLP_ENDPOINT` where nothing is said, and no traces where that is
    /// not set either.
    pub endpoint: Option<String>,
    /// The share of traces that is recorded, from 0 to 1, of those that begin here; all of them where nothing is said. A trace that
    /// begins with the caller is recorded where its `traceparent` says so.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: Option<f64>,
}

/// What the service may hold at once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The most connections.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections: usize,
    /// The most connections of one address, which may be a proxy or a node with a large training; four fifths of all where nothing
    /// is said.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections_per_peer: Option<usize>,
    /// The most rollouts that are being scored or wait for it. One run may have three quarters of them.
    #[schemars(range(min = 8, max = 10_000_000))]
    pub rollouts: usize,
    /// The most rollouts that may wait for the other members of their groups.
    #[schemars(range(min = 8, max = 10_000_000))]
    pub joining: usize,
    /// The most bytes of rollouts that are being scored or wait for their groups. One run may have three quarters of them.
    #[schemars(range(min = 1_048_576))]
    pub rollout_bytes: usize,
    /// The longest body of a request, in bytes.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub request_bytes: u64,
    /// The most bytes of bodies that are held at once, of all requests.
    #[schemars(range(min = 1024))]
    pub total_request_bytes: usize,
    /// The most jobs that wait or run. One token may have three quarters of them.
    #[schemars(range(min = 1, max = 100_000))]
    pub jobs: usize,
    /// The most runs that are scored for at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub runs: usize,
    /// The most programs of responses that one token runs at once; three quarters of the cores where nothing is said, so that
    /// programs that sleep leave room for another token's. Tokens take turns in any case.
    #[schemars(range(min = 1, max = 10_000))]
    pub programs: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 5120,
            connections_per_peer: None,
            rollouts: 8192,
            joining: 65_536,
            rollout_bytes: 1 << 30,
            request_bytes: 64 << 20,
            total_request_bytes: 192 << 20,
            programs: None,
            jobs: 1000,
            runs: 256,
        }
    }
}

impl Limits {
    /// The most connections of one address.
    pub(crate) fn share_of_peer(&self) -> usize {
        self.connections_per_peer.unwrap_or(self.connections - self.connections / 5)
    }
}

/// What is kept of runs and jobs, and for how long.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// For how many days a run is kept after its last rollout.
    #[schemars(range(min = 1, max = 3650))]
    pub run_days: u64,
    /// The most runs; the oldest of whoever has most go first.
    #[schemars(range(min = 1, max = 100_000))]
    pub runs: usize,
    /// How many groups of each step can be looked at.
    #[schemars(range(max = 10_000))]
    pub groups: usize,
    /// The most bytes of such groups of one run; the oldest go first.
    #[schemars(range(min = 65_536))]
    pub group_bytes: u64,
    /// For how many hours the results of a job are kept after it ended.
    #[schemars(range(min = 1, max = 87_600))]
    pub job_hours: u64,
    /// The most bytes of jobs and their results; the oldest results of whoever has most go first, and no more jobs are taken while
    /// those that wait take all of it. The jobs of one token that wait may take three quarters.
    #[schemars(range(min = 65_536))]
    pub job_bytes: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            run_days: 90,
            runs: 1000,
            groups: 24,
            group_bytes: 256 << 20,
            job_hours: 72,
            job_bytes: 16 << 30,
        }
    }
}

impl Config {
    /// Reads a file; all errors in it at once.
    pub fn read(path: &Path) -> Result<Self, ServeError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ServeError::File(name.clone(), error))?;
        let mut config = Self::parse(&text).map_err(|error| {
            let mut message = format!("{name}: ");
            let written = match &error {
                ServeError::Recipe(errors) => write_errors(&mut message, "configuration", errors),
                other => write!(message, "{other}"),
            };
            written.map_or(error, |()| ServeError::Arguments(message))
        })?;
        // A recipe that is a file lies beside the configuration.
        let folder = path.parent().unwrap_or(Path::new(""));
        for recipe in &mut config.recipes {
            let beside = folder.join(&*recipe);
            if beside.is_file() {
                *recipe = beside.display().to_string();
            }
        }
        Ok(config)
    }

    fn parse(text: &str) -> Result<Self, ServeError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let node = Node::from_yaml(text)?;
        let mut errors = Vec::new();
        check(&node, &schema(), "", &mut errors);
        RecipeErrors::none(errors)?;
        let config: Self = serde_json::from_value(node.to_value())
            .map_err(|error| ServeError::Arguments(error.to_string()))?;
        let Limits { request_bytes, total_request_bytes, .. } = config.limits;
        if (total_request_bytes as u64) < request_bytes {
            let message = format!(
                "limits.total_request_bytes is {total_request_bytes} and limits.request_bytes is {request_bytes}: a body of that \
                 length could never be held"
            );
            return Err(ServeError::Arguments(message));
        }
        Ok(config)
    }
}

/// The JSON schema of the configuration, for editors.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Compares a file of `docs/reference` with what the types say; `make docs` writes it.
    pub(crate) fn check_reference(name: &str, value: &serde_json::Value) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
        let text = format!("{value:#}\n");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_else(|_| String::new());
        assert!(kept == text, "docs/reference/{name} is out of date: run `make docs`");
    }

    #[test]
    fn reference_of_the_configuration_is_current() {
        check_reference("serve.schema.json", &schema());
    }

    #[test]
    fn configuration_of_the_guide_is_valid() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/serve.md");
        let text = std::fs::read_to_string(guide).unwrap();
        let block = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let config = Config::parse(block).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((config.recipes.len(), config.judges.len()), (3, 1));
    }

    #[test]
    fn defaults_apply_and_errors_have_lines() {
        let config = Config::parse("limits: { rollouts: 100 }\nhosts: [rewards.example]\n").unwrap();
        assert_eq!((config.limits.rollouts, config.limits.connections), (100, 5120));
        assert_eq!(config.limits.share_of_peer(), 4096);
        let config = Config::parse("limits: { connections: 10, connections_per_peer: 10 }\n").unwrap();
        assert_eq!(config.limits.share_of_peer(), 10);
        let errors = Config::parse("limits:\n  rollouts: 1\nhots: []\n").unwrap_err().to_string();
        assert!(errors.contains("line 2, limits.rollouts"), "{errors}");
        assert!(errors.contains("line 3, hots") && errors.contains("hosts"), "{errors}");
        assert_eq!(Config::parse("abort_after: never\n").unwrap().abort_after, AbortAfter::Never);
        assert_eq!(Config::parse("abort_after: 3\n").unwrap().abort_after, AbortAfter::Steps(3));
        assert!(Config::parse("abort_after: 0\n").is_err() && Config::parse("abort_after: no\n").is_err());
        let never = Config::parse("limits: { request_bytes: 4096, total_request_bytes: 2048 }\n")
            .unwrap_err()
            .to_string();
        assert!(never.contains("limits.total_request_bytes is 2048"), "{never}");
    }
}
