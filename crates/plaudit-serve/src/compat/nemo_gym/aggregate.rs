//! NeMo-Gym's aggregated metrics: mean, spread and extremes of the rewards, for each task and for all.

use crate::compat::invalid_body;
use crate::http::response::ApiError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What NeMo-Gym sends: the answers to all requests to verify, without their texts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct AggregateRequest {
    verify_responses: Vec<Map<String, Value>>,
}

/// Figures over many rewards: of each task, of all, and those to look at first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AggregateReply {
    #[schemars(with = "Vec<BTreeMap<String, f64>>")]
    group_level_metrics: Vec<Value>,
    #[schemars(with = "BTreeMap<String, f64>")]
    agent_metrics: Map<String, Value>,
    #[schemars(with = "BTreeMap<String, f64>")]
    key_metrics: Map<String, Value>,
}

/// The figures. A row with a class of failure has no reward, whatever number stands in it: it is counted and left out.
pub(crate) fn aggregate(body: &[u8]) -> Result<Value, ApiError> {
    let AggregateRequest { verify_responses } =
        serde_json::from_slice(body).map_err(|error| invalid_body("NeMo-Gym", &error))?;
    let mut tasks: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut failed = 0;
    for row in &verify_responses {
        let task = row.get("_ng_task_index").and_then(Value::as_i64).unwrap_or(0);
        let real = row.get("_ng_failure_class").is_none_or(Value::is_null);
        match row.get("reward").and_then(Value::as_f64).filter(|_| real) {
            Some(reward) => tasks.entry(task).or_default().push(reward),
            None => failed += 1,
        }
    }
    let of_tasks: Vec<Value> = tasks
        .iter()
        .map(|(task, rewards)| {
            let mut figures = figures(rewards.clone());
            figures.insert("_ng_task_index".to_owned(), json!(task));
            figures.insert("num_rollouts".to_owned(), json!(rewards.len()));
            Value::Object(figures)
        })
        .collect();
    let mut of_all = figures(tasks.into_values().flatten().collect());
    let mean = of_all.get("mean/reward").cloned();
    if failed > 0 {
        of_all.insert("failed_rollouts".to_owned(), json!(failed));
    }
    let key: Map<String, Value> = mean.into_iter().map(|mean| ("mean/reward".to_owned(), mean)).collect();
    Ok(json!(AggregateReply { group_level_metrics: of_tasks, agent_metrics: of_all, key_metrics: key }))
}

/// Nothing for no reward; the spread is that of a sample.
fn figures(mut rewards: Vec<f64>) -> Map<String, Value> {
    let mut figures = Map::new();
    rewards.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (rewards.first(), rewards.last()) else { return figures };
    let count = rewards.len();
    let mean = rewards.iter().sum::<f64>() / count as f64;
    let median = f64::midpoint(rewards[(count - 1) / 2], rewards[count / 2]);
    for (name, value) in [("mean", mean), ("max", *most), ("min", *least), ("median", median)] {
        figures.insert(format!("{name}/reward"), json!(value));
    }
    if count > 1 {
        let squares: f64 = rewards.iter().map(|reward| (reward - mean).powi(2)).sum();
        figures.insert("std/reward".to_owned(), json!((squares / (count - 1) as f64).sqrt()));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_and_not_averaged() {
        let rows = json!({"verify_responses": [
            {"_ng_task_index": 1, "reward": 0.5},
            {"_ng_task_index": 1, "reward": 1.0},
            {"_ng_task_index": 0, "reward": 0.0, "_ng_failure_class": "judge_failed"},
            {"_ng_task_index": 2},
        ]});
        let result = aggregate(rows.to_string().as_bytes()).unwrap();
        assert_eq!(result["key_metrics"], json!({"mean/reward": 0.75}));
        assert_eq!(
            (&result["agent_metrics"]["failed_rollouts"], &result["agent_metrics"]["median/reward"]),
            (&json!(2), &json!(0.75))
        );
        assert_eq!(result["group_level_metrics"][0]["_ng_task_index"], json!(1));
        assert_eq!(result["group_level_metrics"].as_array().unwrap().len(), 1);
        let spread = result["agent_metrics"]["std/reward"].as_f64().unwrap();
        assert!((spread - 0.125f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nothing_gives_nothing() {
        let result = aggregate(br#"{"verify_responses": []}"#).unwrap();
        assert_eq!(result, json!({"group_level_metrics": [], "agent_metrics": {}, "key_metrics": {}}));
        assert_eq!(aggregate(b"[]").unwrap_err().status.as_u16(), 400);
    }
}
