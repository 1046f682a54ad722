//! The API, one file for each resource; `routes.rs` lists every path and `openapi.rs` describes them.

pub(crate) mod catalog;
pub(crate) mod extract;
pub(crate) mod jobs;
pub(crate) mod join;
pub(crate) mod names;
pub(crate) mod openapi;
pub(crate) mod routes;
pub(crate) mod runs;
pub(crate) mod score;
pub(crate) mod service;
