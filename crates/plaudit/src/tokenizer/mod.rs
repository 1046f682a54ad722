//! Tokenizers: white space, byte-pair vocabularies (tiktoken), jieba, and Hugging Face `tokenizer.json`.

#[cfg(feature = "huggingface")]
mod huggingface;
#[cfg(feature = "jieba")]
mod jieba;
#[cfg(feature = "tiktoken")]
mod tiktoken;
#[cfg(feature = "tiktoken")]
mod vocabulary;

use crate::error::ParamError;
use crate::outcome::Outcome;
use crate::reason::Code;
use crate::text::tokens::Tokens;
#[cfg(feature = "huggingface")]
pub use huggingface::Loaded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
#[cfg(feature = "huggingface")]
use std::sync::Arc;

/// The longest text, in bytes, that a vocabulary is asked to cut: about 100,000 tokens of English, and what the
/// slowest text of that length takes 50 ms for. What is longer is floored as `model.too_long` before any work is
/// done.
pub const MAX_TEXT: usize = 384 * 1024;

/// Which tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerType {
    /// What stands between white space.
    Simple,
    /// A byte-pair vocabulary of OpenAI, named by `encoding_name`.
    Tiktoken,
    /// Chinese words, by dictionary.
    Jieba,
    /// The tokenizer of any model, from `tokenizer_file`. Five to ten times slower than `tiktoken`.
    Huggingface,
}

/// Which byte-pair vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encoding {
    /// The vocabulary of GPT-4: about 100,000 tokens.
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
    /// The vocabulary of GPT-4o: about 200,000 tokens.
    #[serde(rename = "o200k_base")]
    O200kBase,
}

/// The parameters by which a component names its tokenizer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenizerParams {
    /// How the text is cut into tokens.
    pub tokenizer_type: TokenizerType,
    /// The vocabulary of `tiktoken`.
    pub encoding_name: Encoding,
    /// Whether `jieba` sees only the ideographs U+4E00 to U+9FFF of the text.
    pub chinese_only: bool,
    /// The `tokenizer.json` of `huggingface`, below the folder of the recipe.
    pub tokenizer_file: Option<String>,
}

impl Default for TokenizerParams {
    fn default() -> Self {
        Self {
            tokenizer_type: TokenizerType::Tiktoken,
            encoding_name: Encoding::Cl100kBase,
            chinese_only: false,
            tokenizer_file: None,
        }
    }
}

impl TokenizerParams {
    /// The loaded tokenizer, or what is wrong with the parameters.
    #[cfg_attr(not(feature = "huggingface"), allow(unused_variables, reason = "only files are cached"))]
    pub fn load(&self, cache: &mut ResourceCache) -> Result<Tokenizer, ParamError> {
        match (self.tokenizer_type, &self.tokenizer_file) {
            #[cfg(feature = "huggingface")]
            (TokenizerType::Huggingface, Some(file)) => {
                Ok(Tokenizer::Huggingface(huggingface::load(file, cache)?))
            }
            #[cfg(not(feature = "huggingface"))]
            (TokenizerType::Huggingface, Some(_)) => absent("huggingface"),
            (TokenizerType::Huggingface, None) => {
                Err(ParamError::new("tokenizer_file", "huggingface needs the path of a tokenizer.json"))
            }
            (_, Some(_)) => {
                Err(ParamError::new("tokenizer_file", "only tokenizer_type: huggingface reads a file"))
            }
            (TokenizerType::Simple, None) => Ok(Tokenizer::Simple),
            (TokenizerType::Tiktoken, None) if cfg!(not(feature = "tiktoken")) => absent("tiktoken"),
            (TokenizerType::Jieba, None) if cfg!(not(feature = "jieba")) => absent("jieba"),
            // These are compiled in, so nothing can fail when the first text unpacks them.
            (TokenizerType::Tiktoken, None) => Ok(Tokenizer::Tiktoken(self.encoding_name)),
            (TokenizerType::Jieba, None) => Ok(Tokenizer::Jieba { chinese_only: self.chinese_only }),
        }
    }
}

/// The error for a tokenizer that was left out of the build.
fn absent(feature: &str) -> Result<Tokenizer, ParamError> {
    let message = format!("this plaudit was built without {feature}: build it with the feature {feature}");
    Err(ParamError::new("tokenizer_type", message))
}

/// The parameters of a tokenizer that is used only for rollouts without a token count, and need not be given.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CounterParams {
    /// How tokens are counted where a rollout has no token count. Without it, such a rollout is skipped.
    pub tokenizer_type: Option<TokenizerType>,
    /// The vocabulary of `tiktoken`; by default `cl100k_base`.
    pub encoding_name: Option<Encoding>,
    /// Whether `jieba` sees only the ideographs U+4E00 to U+9FFF of the text.
    pub chinese_only: bool,
    /// The `tokenizer.json` of `huggingface`, below the folder of the recipe.
    pub tokenizer_file: Option<String>,
}

impl CounterParams {
    /// The loaded tokenizer, where one is named, or what is wrong with the parameters.
    pub fn load(&self, cache: &mut ResourceCache) -> Result<Option<Tokenizer>, ParamError> {
        match self.tokenizer_type {
            Some(tokenizer_type) => {
                let params = TokenizerParams {
                    tokenizer_type,
                    encoding_name: self.encoding_name.unwrap_or(Encoding::Cl100kBase),
                    chinese_only: self.chinese_only,
                    tokenizer_file: self.tokenizer_file.clone(),
                };
                params.load(cache).map(Some)
            }
            None if self.tokenizer_file.is_some() => {
                Err(ParamError::new("tokenizer_file", "only tokenizer_type: huggingface reads a file"))
            }
            None => Ok(None),
        }
    }
}

/// What is loaded once for all components of a recipe: tokenizers, and the folder that files are looked for in.
#[derive(Debug, Default)]
pub struct ResourceCache {
    /// The folder of the recipe, where it came from a file. Files that it names must lie below.
    pub folder: Option<PathBuf>,
    /// The tokenizers that were read from files so far.
    #[cfg(feature = "huggingface")]
    pub files: Vec<(PathBuf, Arc<Loaded>)>,
}

/// Why a text has no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncut {
    /// It is longer than [`Tokenizer::longest`].
    TooLong,
    /// The tokenizer itself gave up on it.
    Failed,
}

impl Uncut {
    /// What a rollout gets whose response has no tokens.
    pub fn of_response(self, floor: f64) -> Outcome {
        match self {
            Self::TooLong => Outcome::floored(floor, Code::ModelTooLong),
            Self::Failed => Outcome::floored(floor, Code::ModelNoTokens),
        }
    }

    /// What a rollout gets whose reference has no tokens, which is not the model's fault.
    pub fn of_reference(self) -> Outcome {
        match self {
            Self::TooLong => Outcome::invalid(Code::ReferenceTooLong),
            Self::Failed => Outcome::invalid(Code::TokenizerFailed),
        }
    }
}

impl ResourceCache {
    /// An empty cache for a recipe of that folder.
    #[allow(clippy::needless_update, reason = "all other fields belong to features")]
    pub fn at(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// The file that the recipe means. A relative path must not lead out of the recipe's folder, by `..` or by a link,
    /// so that a recipe from elsewhere cannot read about; who writes an absolute path knows their own machine.
    pub fn locate(&self, file: &str) -> Result<PathBuf, String> {
        let written = Path::new(file);
        let outside = || format!("{file} leads out of the recipe's folder; place the file below it");
        let missing = |error| format!("{file} cannot be read: {error}");
        if written.is_absolute() {
            return written.canonicalize().map_err(missing);
        }
        if written.components().any(|part| matches!(part, Component::ParentDir | Component::Prefix(_))) {
            return Err(outside());
        }
        // A recipe file beside the caller has the empty path for a folder.
        let folder = self.folder.as_deref().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().map_err(missing)?;
        let path = folder.join(written).canonicalize().map_err(missing)?;
        if path.starts_with(&folder) { Ok(path) } else { Err(outside()) }
    }

    /// The text of a regular file of at most so many bytes.
    pub fn read(&self, file: &str, largest: usize) -> Result<String, String> {
        let path = self.locate(file)?;
        let failed = |error: std::io::Error| format!("{file} cannot be read: {error}");
        let status = std::fs::metadata(&path).map_err(failed)?;
        if !status.is_file() || status.len() > largest as u64 {
            return Err(format!("{file} is no regular file of at most {largest} bytes"));
        }
        std::fs::read_to_string(&path).map_err(failed)
    }
}

/// A loaded tokenizer. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Tokenizer {
    /// What stands between white space.
    Simple,
    /// A byte-pair vocabulary.
    Tiktoken(Encoding),
    /// Chinese words.
    Jieba {
        /// Whether only ideographs are kept.
        chinese_only: bool,
    },
    /// From a file.
    #[cfg(feature = "huggingface")]
    Huggingface(Arc<Loaded>),
}

impl Tokenizer {
    /// A number that is equal for tokenizers that cut alike.
    pub fn key(&self) -> u64 {
        match self {
            Self::Simple => 0,
            Self::Tiktoken(Encoding::Cl100kBase) => 1,
            Self::Tiktoken(Encoding::O200kBase) => 2,
            Self::Jieba { chinese_only: false } => 3,
            Self::Jieba { chinese_only: true } => 4,
            #[cfg(feature = "huggingface")]
            Self::Huggingface(loaded) => loaded.key(),
        }
    }

    /// The longest text, in bytes, that it cuts in time.
    pub fn longest(&self) -> usize {
        match self {
            Self::Simple => usize::MAX,
            _ => MAX_TEXT,
        }
    }

    /// Whether it cuts a text of any length in time.
    pub fn is_unlimited(&self) -> bool {
        self.longest() == usize::MAX
    }

    /// The tokens of a text, which the caller knows to be no longer than [`Tokenizer::longest`].
    pub fn cut(&self, text: &str) -> Result<Tokens, Uncut> {
        match self {
            Self::Simple => {
                let mut tokens = Tokens::with_capacity(text.len() / 5);
                plaudit_text::each_word(text, |from, to| tokens.push_word(text, from, to));
                Ok(tokens)
            }
            #[cfg(feature = "tiktoken")]
            Self::Tiktoken(encoding) => tiktoken::cut(*encoding, text),
            #[cfg(feature = "jieba")]
            Self::Jieba { chinese_only: false } => jieba::cut(text),
            #[cfg(feature = "jieba")]
            Self::Jieba { chinese_only: true } => jieba::cut_chinese(text),
            #[cfg(feature = "huggingface")]
            Self::Huggingface(loaded) => loaded.cut(text),
            // Never loaded without its feature.
            #[cfg(not(all(feature = "tiktoken", feature = "jieba")))]
            _ => Err(Uncut::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Case, Text};

    #[test]
    #[cfg(feature = "huggingface")]
    fn keys_are_distinct_and_views_are_kept_apart() {
        let folder = huggingface::tests::folder("keys");
        let mut cache = ResourceCache { folder: Some(folder.clone()), ..ResourceCache::default() };
        let params = TokenizerParams {
            tokenizer_type: TokenizerType::Huggingface,
            tokenizer_file: Some("copy.json".to_owned()),
            ..TokenizerParams::default()
        };
        let all = [
            Tokenizer::Simple,
            Tokenizer::Tiktoken(Encoding::Cl100kBase),
            Tokenizer::Tiktoken(Encoding::O200kBase),
            Tokenizer::Jieba { chinese_only: false },
            Tokenizer::Jieba { chinese_only: true },
            params.load(&mut cache).expect("a tokenizer"),
        ];
        let text = Text::new("Hello 北京清华大学 x");
        let mut seen = Vec::new();
        for tokenizer in &all {
            assert!(!seen.contains(&tokenizer.key()));
            seen.push(tokenizer.key());
            for case in [Case::Kept, Case::Lower] {
                let tokens = text.tokens(tokenizer, case).expect("tokens");
                assert_eq!(tokens.ids, tokenizer.cut(text.in_case(case)).expect("tokens").ids);
            }
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn parameters_that_do_not_fit_together_are_refused() {
        for parameters in [
            serde_json::json!({"tokenizer_type": "huggingface"}),
            serde_json::json!({"tokenizer_type": "tiktoken", "tokenizer_file": "x.json"}),
            serde_json::json!({"tokenizer_type": "huggingface", "tokenizer_file": "../x.json"}),
        ] {
            let params: TokenizerParams = serde_json::from_value(parameters).expect("parameters");
            assert_eq!(
                params.load(&mut ResourceCache::default()).expect_err("refused").key,
                "tokenizer_file"
            );
        }
        let params: CounterParams =
            serde_json::from_value(serde_json::json!({"tokenizer_file": "x.json"})).expect("parameters");
        assert_eq!(params.load(&mut ResourceCache::default()).expect_err("refused").key, "tokenizer_file");
        assert!(CounterParams::default().load(&mut ResourceCache::default()).expect("loaded").is_none());
    }

    #[test]
    fn a_text_that_is_too_long_is_not_cut() {
        let text = Text::new("a ".repeat(MAX_TEXT));
        let tiktoken = Tokenizer::Tiktoken(Encoding::Cl100kBase);
        assert_eq!(text.tokens(&tiktoken, Case::Kept).expect_err("not cut"), Uncut::TooLong);
        assert_eq!(text.tokens(&Tokenizer::Simple, Case::Kept).expect("cut").len(), MAX_TEXT);
        assert_eq!(Uncut::TooLong.of_response(-1.0).value(), Some(-1.0));
        assert_eq!(Uncut::TooLong.of_reference().value(), None);
    }

    #[test]
    #[cfg(feature = "huggingface")]
    fn a_response_that_no_tokenizer_cuts_is_floored() {
        let folder = huggingface::tests::folder("no-tokens");
        let words = huggingface::tests::WORDS.replace(r#""unk_token": "[UNK]""#, r#""unk_token": "none""#);
        std::fs::write(folder.join("strict.json"), words).expect("a file");
        let mut cache = ResourceCache::at(Some(folder.clone()));
        let params = TokenizerParams {
            tokenizer_type: TokenizerType::Huggingface,
            tokenizer_file: Some("strict.json".to_owned()),
            ..TokenizerParams::default()
        };
        let tokenizer = params.load(&mut cache).expect("a tokenizer");
        std::fs::remove_dir_all(folder).expect("removed");
        assert!(tokenizer.cut("hello world").is_ok());
        let uncut = tokenizer.cut("hello x").expect_err("not cut");
        assert_eq!(uncut.of_response(-1.0), Outcome::floored(-1.0, Code::ModelNoTokens));
        assert_eq!(uncut.of_reference(), Outcome::invalid(Code::TokenizerFailed));
    }
}
