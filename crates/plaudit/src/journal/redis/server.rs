//! Checks of the Redis server's durability settings.

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError as ClientError};
use std::collections::BTreeMap;

/// How judgments could be lost, as sentences for a person.
pub(super) async fn warnings(connection: &mut MultiplexedConnection) -> Result<Vec<String>, ClientError> {
    let mut found = BTreeMap::new();
    for name in ["appendonly", "maxmemory", "maxmemory-policy"] {
        let asked: Result<BTreeMap<String, String>, ClientError> =
            redis::cmd("CONFIG").arg("GET").arg(name).query_async(connection).await;
        match asked {
            Ok(settings) => found.extend(settings),
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            // Some providers keep the command to themselves.
            Err(_) => {}
        }
    }
    Ok(sentences(&found))
}

fn sentences(settings: &BTreeMap<String, String>) -> Vec<String> {
    let setting = |name: &str| settings.get(name).map(String::as_str);
    let mut warnings = Vec::new();
    let mut unknown = Vec::new();
    match setting("appendonly") {
        Some("no") => warnings.push(
            "Redis does not write judgments to disk as they come: what was bought since its last snapshot is lost \
             when it stops; switch it on with `appendonly yes`"
                .to_owned(),
        ),
        Some(_) => {}
        None => unknown.push("appendonly"),
    }
    match (setting("maxmemory"), setting("maxmemory-policy")) {
        (Some("0"), _) => {}
        (_, Some(policy)) if policy.starts_with("allkeys") => warnings.push(format!(
            "Redis throws judgments away when its memory is full, and they are bought again: set `maxmemory-policy \
             noeviction` in the place of {policy}"
        )),
        (_, Some(_)) => {}
        (_, None) => unknown.push("maxmemory-policy"),
    }
    if !unknown.is_empty() {
        warnings.push(format!(
            "Redis does not tell whether it could lose judgments: see to it that it has `appendonly yes` and \
             `maxmemory-policy noeviction` (unknown: {})",
            unknown.join(", ")
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(settings: &[(&str, &str)]) -> String {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        sentences(&settings).join("\n")
    }

    #[test]
    fn what_keeps_judgments_is_not_doubted() {
        for (maxmemory, policy) in [("0", "allkeys-lru"), ("100", "noeviction"), ("100", "volatile-lru")] {
            let settings = [("appendonly", "yes"), ("maxmemory", maxmemory), ("maxmemory-policy", policy)];
            assert_eq!(said(&settings), "", "{settings:?}");
        }
    }

    #[test]
    fn what_could_lose_judgments_is_said() {
        let settings = [("appendonly", "no"), ("maxmemory", "100"), ("maxmemory-policy", "allkeys-lru")];
        assert!(
            said(&settings).contains("appendonly yes")
                && said(&settings).contains("in the place of allkeys-lru")
        );
        assert!(said(&[]).contains("does not tell") && said(&[]).contains("maxmemory-policy"));
    }
}
