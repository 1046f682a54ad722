//! Scalar reward models behind vLLM's `POST /pooling`.

use super::{Protocol, scalar};

pub(super) const PROTOCOL: Protocol = Protocol {
    scalar: true,
    reserved: &["model", "messages"],
    request: |call, _, _| Ok(scalar::vllm(call, "/pooling")),
    read: scalar::read,
    completion_tokens: |_| 0,
    earlier_request: Some(|call| scalar::request(call, "/pooling", "messages", scalar::conversation(call))),
    local: None,
};
