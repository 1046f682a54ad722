//! Hugging Face tokenizers: any model's `tokenizer.json`.

use super::{ResourceCache, Uncut};
use crate::error::ParamError;
use crate::text::tokens::Tokens;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use tokenizers::Tokenizer;

/// The largest file that is read: about three times the largest of today's models.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The recipe's key for the file.
const KEY: &str = "tokenizer_file";

/// A tokenizer from a file.
pub struct Loaded {
    tokenizer: Tokenizer,
    key: u64,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Loaded").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Loaded {
    /// The same for files of the same content, and never one of the small keys of the built-in tokenizers.
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// The tokens of a text, without those that a chat template would add around it.
    pub(super) fn cut(&self, text: &str) -> Result<Tokens, Uncut> {
        let encoding = self.tokenizer.encode(text, false).map_err(|_| Uncut::Failed)?;
        let mut tokens = Tokens::with_capacity(encoding.len());
        for (id, (from, to)) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
            tokens.push(Tokens::number_id(u64::from(*id)), *from, *to);
        }
        Ok(tokens)
    }
}

/// Loads a file, or takes it from the cache where another component has named it.
pub(super) fn load(file: &str, cache: &mut ResourceCache) -> Result<Arc<Loaded>, ParamError> {
    let path = cache.locate(file).map_err(|message| ParamError::new(KEY, message))?;
    if let Some((_, loaded)) = cache.files.iter().find(|(known, _)| *known == path) {
        return Ok(Arc::clone(loaded));
    }
    let loaded = Arc::new(parse(&read(&path)?, &path)?);
    cache.files.push((path, Arc::clone(&loaded)));
    Ok(loaded)
}

fn read(path: &Path) -> Result<Vec<u8>, ParamError> {
    let failed = |error| ParamError::new(KEY, format!("{} cannot be read: {error}", path.display()));
    let status = std::fs::metadata(path).map_err(failed)?;
    if !status.is_file() {
        return Err(ParamError::new(KEY, format!("{} is not a file", path.display())));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    // One byte more than is allowed tells a file that is too large from one that just fits.
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        let limit = MAX_FILE >> 20;
        return Err(ParamError::new(KEY, format!("{} is larger than {limit} MiB", path.display())));
    }
    Ok(bytes)
}

fn parse(bytes: &[u8], path: &Path) -> Result<Loaded, ParamError> {
    // The library's message may quote the file, which need not be a tokenizer at all.
    let refused = || ParamError::new(KEY, format!("{} is not a Hugging Face tokenizer.json", path.display()));
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|_| refused())?;
    // A file may ask for cut or filled texts, which would hide how long a response is.
    tokenizer.with_truncation(None).map_err(|_| refused())?;
    tokenizer.with_padding(None);
    // The name of a special token in a response is ordinary text, as with the other tokenizers.
    tokenizer.set_encode_special_tokens(true);
    Ok(Loaded { tokenizer, key: rapidhash::v3::rapidhash_v3(bytes) | 1 << 63 })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A small word-level tokenizer with a special token, padding and truncation.
    pub(crate) const WORDS: &str = r#"{
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "[UNK]"},
        "added_tokens": [{"id": 3, "content": "[END]", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}],
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "hello": 1, "world": 2, "[END]": 3}, "unk_token": "[UNK]"}
    }"#;

    /// A folder of its own for one test.
    pub(crate) fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plaudit-tokenizer-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inside")).expect("a folder");
        std::fs::write(folder.join("inside/words.json"), WORDS).expect("a file");
        std::fs::write(folder.join("copy.json"), WORDS).expect("a file");
        std::fs::write(folder.join("not.json"), "secret").expect("a file");
        folder
    }

    #[test]
    fn a_file_is_loaded_once_and_cuts_whole_texts() {
        let folder = folder("once");
        let mut cache = ResourceCache { folder: Some(folder.clone()), ..ResourceCache::default() };
        let loaded = load("inside/words.json", &mut cache).expect("a tokenizer");
        let again = load("./inside/words.json", &mut cache).expect("a tokenizer");
        assert!(Arc::ptr_eq(&loaded, &again));
        let absolute =
            load(&folder.join("copy.json").display().to_string(), &mut cache).expect("a tokenizer");
        assert_eq!(absolute.key(), loaded.key());
        let tokens = loaded.cut("hello world x  hello").expect("tokens");
        assert_eq!(tokens.ids, [1, 2, 0, 1].map(Tokens::number_id));
        assert_eq!(tokens.spans, [(0, 5), (6, 11), (12, 13), (15, 20)]);
        assert_eq!(loaded.cut("[END]").expect("tokens").ids, [Tokens::number_id(0); 3]);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_file_elsewhere_or_of_another_kind_is_refused() {
        let folder = folder("refused");
        let mut cache = ResourceCache { folder: Some(folder.join("inside")), ..ResourceCache::default() };
        for file in ["../copy.json", "missing.json", "", ".", "/nowhere/at/all.json"] {
            assert_eq!(load(file, &mut cache).expect_err("refused").key, "tokenizer_file", "{file}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.join("copy.json"), folder.join("inside/link.json"))
                .expect("a link");
            assert!(load("link.json", &mut cache).expect_err("refused").message.contains("leads out"));
        }
        let error = load(&folder.join("not.json").display().to_string(), &mut cache).expect_err("refused");
        assert!(!error.message.contains("secret"));
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
