//! How is a text cut into tokens? By white space, by a byte-pair vocabulary, by a Chinese dictionary, or by any
//! Hugging Face `tokenizer.json`.

use crate::text::space;
use crate::text::tokens::Tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The longest text, in bytes, that a vocabulary is asked to cut. The longest context of today's policies is
/// about 128,000 tokens, which is less; what is longer is floored as `model.too_long` before any work is done.
pub const LONGEST_TEXT: usize = 512 * 1024;

/// Which tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerType {
    /// What stands between white space.
    Simple,
}

/// The parameters by which a component names its tokenizer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenizerParams {
    /// How the text is cut into tokens.
    pub tokenizer_type: TokenizerType,
}

impl Default for TokenizerParams {
    fn default() -> Self {
        Self { tokenizer_type: TokenizerType::Simple }
    }
}

/// What is loaded once for all components of a recipe: tokenizers, and the folder that files are looked for in.
#[derive(Debug, Default)]
pub struct Shelf {
    /// The folder of the recipe, where it came from a file. Files that it names must lie below.
    pub folder: Option<PathBuf>,
}

impl Shelf {
    /// An empty shelf for a recipe of that folder.
    pub fn at(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }
}

/// A loaded tokenizer. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Tokenizer {
    /// What stands between white space.
    Simple,
}

impl Tokenizer {
    /// A number that is equal for tokenizers that cut alike.
    pub fn key(&self) -> u64 {
        match self {
            Self::Simple => 0,
        }
    }

    /// The tokens of a text.
    pub fn cut(&self, text: &str) -> Tokens {
        match self {
            Self::Simple => {
                let mut tokens = Tokens::with_capacity(text.len() / 5);
                space::words(text, |from, to| tokens.push(Tokens::word_id(&text[from..to]), from, to));
                tokens
            }
        }
    }
}
