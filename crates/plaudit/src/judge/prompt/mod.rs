//! Prompts for judges: rendering, templates of recipes, and the defence against prompt injection.

pub mod delimiters;
pub mod injection;
pub(super) mod render;
pub mod sanitize;
pub mod template;
mod template_delimiters;
pub mod transcript;
