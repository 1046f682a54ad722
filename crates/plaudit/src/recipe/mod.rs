//! What was written? A recipe as text or as a Python dict becomes a tree with line numbers,
//! and a tree is checked against a schema; every mistake is found in one go.

pub mod check;
mod json;
pub mod mistake;
mod scalar;
mod set;
mod trail;
pub mod tree;
mod yaml;

pub use check::check;
pub use mistake::{Mistake, Mistakes, closest};
pub use tree::{Key, Node, Tree};

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod yaml_tests;
