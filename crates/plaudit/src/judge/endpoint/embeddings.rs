//! Scalar reward models behind `POST /embeddings`, as SGLang serves them: an embedding of one number.

use super::{Protocol, scalar};
use serde_json::json;

pub(super) const PROTOCOL: Protocol = Protocol {
    scalar: true,
    reserved: &["model", "input"],
    request: |call, _, _| {
        let input = json!(format!("{}\n\n{}", call.view.query, call.candidate(0).text));
        Ok(scalar::request(call, "/embeddings", "input", input))
    },
    read: scalar::read,
    completion_tokens: |_| 0,
    earlier_request: None,
    local: None,
};
