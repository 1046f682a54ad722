//! The token file: creates, lists and revokes API tokens. It holds only their hashes.

use crate::atomic_file;
use crate::error::ServeError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What every token begins with, so that secret scanners recognise a leaked one.
const PREFIX: &str = "plaudit_";
/// The longest name of a token, in characters.
const MAX_NAME: usize = 64;
/// The owner of everything where no tokens are required.
pub(crate) const LOCAL: &str = "local";

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Handing in rollouts, and asking for jobs of one's own.
    Score,
    /// Looking at runs, judges and metrics.
    Read,
    /// Everything, also of others.
    Admin,
}

/// A token as the file has it, without the token itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Its id.
    pub id: String,
    /// The name of its owner, whom runs and jobs belong to.
    pub name: String,
    pub(crate) hash: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it was created, in seconds since 1970.
    pub created: u64,
    /// When it expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// The most requests a second.
    pub rate: Option<u32>,
    /// The most rollouts that may be under way at once.
    pub waiting: Option<usize>,
}

impl TokenEntry {
    /// Whom runs and jobs belong to that come with it. Tokens of one name have one owner, so that one can replace another.
    pub fn owner(&self) -> &str {
        &self.name
    }

    /// Whether it has not expired.
    pub fn is_valid(&self) -> bool {
        self.expires.is_none_or(|expires| now() < expires)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TokenList {
    tokens: Vec<TokenEntry>,
}

/// A token to be created.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The name of its owner.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// The most requests a second.
    pub rate: Option<u32>,
    /// The most rollouts that may be under way at once.
    pub waiting: Option<usize>,
}

/// Whether a token may have that name, which appears in files, logs and metric labels and identifies the owner.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name == LOCAL {
        return Err(format!("a token must not have the name {LOCAL:?}, which stands for this machine"));
    }
    if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(is_plain) {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Err(format!(
            "{shown:?} is no name for a token: 1 to {MAX_NAME} letters, digits, dots, hyphens and underscores are wanted"
        ));
    }
    Ok(())
}

/// The seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A token file.
#[derive(Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// The file at a path, whether it exists or not.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    fn read(&self) -> Result<TokenList, ServeError> {
        let text = std::fs::read_to_string(&self.0).map_err(|error| ServeError::file(&self.0, error))?;
        serde_json::from_str(&text).map_err(|error| {
            ServeError::Arguments(format!("{}: this is no file of tokens: {error}", self.0.display()))
        })
    }

    fn write(&self, list: &TokenList) -> Result<(), ServeError> {
        let text =
            serde_json::to_string_pretty(list).map_err(|error| ServeError::Arguments(error.to_string()))?;
        let written = atomic_file::write(&self.0, format!("{text}\n").as_bytes());
        written.map_err(|error| ServeError::file(&self.0, error))
    }

    /// Keeps other processes from changing the file until it is dropped; they wait.
    fn lock(&self) -> Result<std::fs::File, ServeError> {
        let failure = |error| ServeError::file(&self.0, error);
        let name = self.0.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        // A file of its own, since every change replaces the token file.
        let path = self.0.with_file_name(format!(".{name}.lock"));
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(failure)?;
        file.lock().map_err(failure)?;
        Ok(file)
    }

    /// All tokens.
    pub fn list(&self) -> Result<Vec<TokenEntry>, ServeError> {
        self.read().map(|list| list.tokens)
    }

    /// Creates a token and returns it, this once.
    pub fn create(&self, new: NewToken) -> Result<(String, TokenEntry), ServeError> {
        check_name(&new.name).map_err(ServeError::Arguments)?;
        let _lock = self.lock()?;
        let mut list = if self.0.exists() { self.read()? } else { TokenList::default() };
        let (token, id) = (format!("{PREFIX}{}", hex(&random::<32>()?)), hex(&random::<4>()?));
        let NewToken { name, scopes, expires, rate, waiting } = new;
        let hash = blake3::hash(token.as_bytes()).to_hex().to_string();
        let entry = TokenEntry { id, name, hash, scopes, created: now(), expires, rate, waiting };
        list.tokens.push(entry.clone());
        self.write(&list)?;
        Ok((token, entry))
    }

    /// Revokes a token, by its id or by its name where only one has it.
    pub fn revoke(&self, who: &str) -> Result<TokenEntry, ServeError> {
        // Fails before a lock file is made beside a file that does not exist.
        self.read()?;
        let _lock = self.lock()?;
        let mut list = self.read()?;
        let matching: Vec<usize> = (0..list.tokens.len())
            .filter(|at| list.tokens[*at].id == who || list.tokens[*at].name == who)
            .collect();
        let [at] = matching[..] else {
            let message = match matching.len() {
                0 => format!("there is no token {who:?}: `plaudit token list` shows them"),
                many => format!("{many} tokens are called {who:?}: name one by its id"),
            };
            return Err(ServeError::Arguments(message));
        };
        let revoked = list.tokens.remove(at);
        self.write(&list)?;
        Ok(revoked)
    }
}

/// Bytes from the system's random number generator.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ServeError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| ServeError::Arguments(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_names_are_checked() {
        for good in ["a", "team-1.trainer_2", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", "a b", "a\n", "local", "é", "a/b", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = std::env::temp_dir().join(format!("plaudit-tokens-parallel-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tokens.json");
        let names: Vec<String> = (0..16).map(|at| at.to_string()).collect();
        let all_at_once = |change: &(dyn Fn(&str) + Sync)| {
            std::thread::scope(|scope| names.iter().for_each(|name| drop(scope.spawn(|| change(name)))));
        };
        let new = |name: &str| NewToken {
            name: name.to_owned(),
            scopes: vec![Scope::Score],
            expires: None,
            rate: None,
            waiting: None,
        };
        all_at_once(&|name| drop(TokenFile::at(&path).create(new(name)).unwrap()));
        assert_eq!(TokenFile::at(&path).list().unwrap().len(), names.len());
        all_at_once(&|name| drop(TokenFile::at(&path).revoke(name).unwrap()));
        assert!(TokenFile::at(&path).list().unwrap().is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
