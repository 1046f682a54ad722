//! Who is asking? Tokens in a file, of which only hashes are kept; the service sees within a second when one is added or revoked.

use super::reply::Refusal;
use crate::error::CliError;
use crate::files::Output;
use blake3::Hash;
use clap::ValueEnum;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What every token begins with, so that a scanner for secrets finds one that got where it should not be.
const PREFIX: &str = "plaudit_";
/// The longest name of a token, in characters.
const LONGEST_NAME: usize = 64;
/// Whose everything is where no tokens are asked for.
const LOCAL: &str = "local";
/// How soon it is looked again whether there is room for a part of a job.
pub(crate) const SOON: Duration = Duration::from_millis(5);

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// Handing in rollouts, and asking for jobs of one's own.
    Score,
    /// Looking at runs, judges and metrics.
    Read,
    /// Everything, also of others.
    Admin,
}

/// A token as the file has it. The token itself is nowhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Which one it is.
    pub(crate) id: String,
    /// Whom it is for, and whom runs and jobs belong to.
    pub(crate) name: String,
    hash: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) created: u64,
    /// From when on it is worth nothing, in seconds since 1970.
    pub(crate) expires: Option<u64>,
    /// The most requests a second.
    pub(crate) rate: Option<u32>,
    /// The most rollouts that may be under way at once.
    pub(crate) waiting: Option<usize>,
}

impl Entry {
    /// Whom belongs what is handed in with it. Tokens of one name are one holder's, so that one can take the place of another.
    pub(crate) fn owner(&self) -> &str {
        &self.name
    }

    /// Whether it has not expired.
    pub(crate) fn is_valid(&self) -> bool {
        self.expires.is_none_or(|expires| now() < expires)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Listed {
    tokens: Vec<Entry>,
}

/// What a new token may do.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) expires: Option<u64>,
    pub(crate) rate: Option<u32>,
    pub(crate) waiting: Option<usize>,
}

/// Whether a token may have that name: it stands in files, logs and labels of metrics, and tells holders apart.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name == LOCAL {
        return Err(format!("a token must not have the name {LOCAL:?}, which stands for this machine"));
    }
    if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(is_plain) {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        return Err(format!(
            "{shown:?} is no name for a token: 1 to {LONGEST_NAME} letters, digits, dots, hyphens and underscores are wanted"
        ));
    }
    Ok(())
}

/// The seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A file of tokens, for those who change it.
#[derive(Debug)]
pub(crate) struct File(PathBuf);

impl File {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    fn read(&self) -> Result<Listed, CliError> {
        let failure = |error| CliError::File(self.0.display().to_string(), error);
        let text = std::fs::read_to_string(&self.0).map_err(failure)?;
        serde_json::from_str(&text).map_err(|error| {
            CliError::Arguments(format!("{}: this is no file of tokens: {error}", self.0.display()))
        })
    }

    fn write(&self, listed: &Listed) -> Result<(), CliError> {
        let name = self.0.display().to_string();
        let text =
            serde_json::to_string_pretty(listed).map_err(|error| CliError::Arguments(error.to_string()))?;
        let mut file = Output::private(&name)?;
        writeln!(file, "{text}").map_err(|error| CliError::writing(&name, error))?;
        file.finish()
    }

    /// Keeps others from changing the file until it is dropped; who comes meanwhile waits.
    fn lock(&self) -> Result<std::fs::File, CliError> {
        let failure = |error| CliError::File(self.0.display().to_string(), error);
        let name = self.0.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        // A file of its own, as that of the tokens is replaced by each change.
        let path = self.0.with_file_name(format!(".{name}.lock"));
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(failure)?;
        file.lock().map_err(failure)?;
        Ok(file)
    }

    /// Every token there is.
    pub(crate) fn list(&self) -> Result<Vec<Entry>, CliError> {
        self.read().map(|listed| listed.tokens)
    }

    /// Makes a token and gives it out, this once.
    pub(crate) fn create(&self, wanted: Wanted) -> Result<(String, Entry), CliError> {
        check_name(&wanted.name).map_err(CliError::Arguments)?;
        let _lock = self.lock()?;
        let mut listed = if self.0.exists() { self.read()? } else { Listed::default() };
        let (token, id) = (format!("{PREFIX}{}", hex(&random::<32>()?)), hex(&random::<4>()?));
        let Wanted { name, scopes, expires, rate, waiting } = wanted;
        let hash = blake3::hash(token.as_bytes()).to_hex().to_string();
        let entry = Entry { id, name, hash, scopes, created: now(), expires, rate, waiting };
        listed.tokens.push(entry.clone());
        self.write(&listed)?;
        Ok((token, entry))
    }

    /// Takes a token back, by its id or by its name where only one has it.
    pub(crate) fn revoke(&self, who: &str) -> Result<Entry, CliError> {
        // Where there is no file, nothing is put beside it.
        self.read()?;
        let _lock = self.lock()?;
        let mut listed = self.read()?;
        let meant: Vec<usize> = (0..listed.tokens.len())
            .filter(|at| listed.tokens[*at].id == who || listed.tokens[*at].name == who)
            .collect();
        let [at] = meant[..] else {
            let message = match meant.len() {
                0 => format!("there is no token {who:?}: `plaudit token list` shows them"),
                many => format!("{many} tokens are called {who:?}: name one by its id"),
            };
            return Err(CliError::Arguments(message));
        };
        let gone = listed.tokens.remove(at);
        self.write(&listed)?;
        Ok(gone)
    }
}

/// Who a request is from.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) entry: Entry,
    hash: Option<Hash>,
    bucket: Mutex<(f64, Instant)>,
    pub(crate) rollouts: Arc<AtomicUsize>,
    /// Whose turn it is among the jobs that wait for room.
    turn: tokio::sync::Mutex<()>,
}

impl Holder {
    fn new(entry: Entry) -> Self {
        let hash = Hash::from_hex(&entry.hash).ok();
        let full = entry.rate.map_or(0.0, f64::from);
        let bucket = Mutex::new((full, Instant::now()));
        Self {
            entry,
            hash,
            bucket,
            rollouts: Arc::new(AtomicUsize::new(0)),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Whoever is on this machine, where no tokens are asked for.
    fn local() -> Self {
        Self::new(Entry {
            id: LOCAL.to_owned(),
            name: LOCAL.to_owned(),
            hash: String::new(),
            scopes: vec![Scope::Admin],
            created: 0,
            expires: None,
            rate: None,
            waiting: None,
        })
    }

    /// Whether it may do something of that kind.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.entry.scopes.iter().any(|has| *has == scope || *has == Scope::Admin)
    }

    /// Counts a request against what is allowed in a second.
    fn pace(&self) -> Result<(), Refusal> {
        let Some(rate) = self.entry.rate else { return Ok(()) };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let left = bucket.0 + now.duration_since(bucket.1).as_secs_f64() * f64::from(rate);
        *bucket = (left.min(f64::from(rate)), now);
        if bucket.0 < 1.0 {
            let message = format!("this token allows {rate} requests a second");
            return Err(Refusal::busy("auth.rate", message, 1));
        }
        bucket.0 -= 1.0;
        Ok(())
    }

    /// Takes rollouts in, where the token allows so many at once.
    pub(crate) fn take(&self, rollouts: usize) -> Result<Taken, Refusal> {
        let before = self.rollouts.fetch_add(rollouts, Ordering::AcqRel);
        let taken = Taken(Arc::clone(&self.rollouts), rollouts);
        match self.entry.waiting {
            Some(most) if before + rollouts > most => {
                let message = format!("this token allows {most} rollouts at once");
                Err(Refusal::busy("auth.waiting", message, 1))
            }
            _ => Ok(taken),
        }
    }

    /// Takes rollouts of a job in, where that leaves half of what the token allows to requests; more than that go in alone. A
    /// group that is larger than all of it takes all of it, since it cannot be cut.
    fn take_behind(&self, rollouts: usize) -> Option<Taken> {
        let most = self.entry.waiting.unwrap_or(usize::MAX);
        let rollouts = rollouts.min(most).max(1);
        let fits = |before: usize| match before {
            0 => rollouts <= most,
            _ => before.saturating_add(rollouts) <= most / 2,
        };
        let taken = self.rollouts.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
            fits(before).then(|| before.saturating_add(rollouts))
        });
        taken.ok().map(|_| Taken(Arc::clone(&self.rollouts), rollouts))
    }

    /// Waits until rollouts of a job may be taken in. Whose turn it is keeps it until they may, however many they are.
    pub(crate) async fn wait(&self, rollouts: usize) -> Taken {
        let _turn = self.turn.lock().await;
        loop {
            if let Some(taken) = self.take_behind(rollouts) {
                return taken;
            }
            tokio::time::sleep(SOON).await;
        }
    }
}

/// Rollouts that count against a token, until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken(Arc<AtomicUsize>, usize);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// The tokens that the service knows.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: Option<PathBuf>,
    /// The holders, and what the file looked like when they were read.
    known: RwLock<(Vec<Arc<Holder>>, Option<Look>)>,
    local: Arc<Holder>,
    /// Whether the file could not be read when it was looked at last.
    unread: AtomicBool,
}

/// What tells whether a file has changed: when it was written, how long it is, and which one it is, as a file that takes the
/// place of another may be as long and seem as old.
type Look = (SystemTime, u64, u64);

impl Tokens {
    /// The tokens of a file; without one, everybody is let in.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let tokens = Self {
            path: path.map(Path::to_path_buf),
            known: RwLock::new((Vec::new(), None)),
            local: Arc::new(Holder::local()),
            unread: AtomicBool::new(false),
        };
        tokens.refresh()?;
        Ok(tokens)
    }

    /// Whoever asks for what everybody may see.
    pub(crate) fn nobody(&self) -> Arc<Holder> {
        Arc::clone(&self.local)
    }

    /// Whether a token is asked for.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.path.is_some()
    }

    /// A holder of that name, while a token of it is worth anything. Whoever is on this machine is always known.
    pub(crate) fn holder(&self, owner: &str) -> Option<Arc<Holder>> {
        if !self.are_asked_for() || owner == self.local.entry.owner() {
            return Some(Arc::clone(&self.local));
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.0.iter().find(|holder| holder.entry.owner() == owner && holder.entry.is_valid()).cloned()
    }

    /// Whether the tokens are those of a file that cannot be read any more.
    pub(crate) fn are_old(&self) -> bool {
        self.unread.load(Ordering::Acquire)
    }

    /// Reads the file again where it has changed. One that cannot be read changes nothing.
    pub(crate) fn refresh(&self) -> Result<(), CliError> {
        let read = self.read();
        self.unread.store(read.is_err(), Ordering::Release);
        read
    }

    fn read(&self) -> Result<(), CliError> {
        let Some(path) = &self.path else { return Ok(()) };
        let look = |path: &Path| {
            let about = std::fs::metadata(path)?;
            let which = std::os::unix::fs::MetadataExt::ino(&about);
            Ok((about.modified()?, about.len(), which))
        };
        let seen = look(path).map_err(|error| CliError::File(path.display().to_string(), error))?;
        if self.known.read().unwrap_or_else(PoisonError::into_inner).1 == Some(seen) {
            return Ok(());
        }
        let entries = File::at(path).list()?;
        for entry in &entries {
            let refuse = |why| CliError::Arguments(format!("{}: token {}: {why}", path.display(), entry.id));
            check_name(&entry.name).map_err(refuse)?;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // A token that stays keeps what it has used of its quota.
        let keep = |entry: Entry| {
            let same = known.0.iter().find(|holder| holder.entry == entry).cloned();
            same.unwrap_or_else(|| Arc::new(Holder::new(entry)))
        };
        let holders = entries.into_iter().map(keep).collect();
        *known = (holders, Some(seen));
        Ok(())
    }

    /// The holder of the token in a header, if it is worth anything.
    pub(crate) fn check(&self, header: Option<&[u8]>) -> Result<Arc<Holder>, Refusal> {
        if !self.are_asked_for() {
            return Ok(Arc::clone(&self.local));
        }
        let refuse = |code, message| Err(Refusal::new(StatusCode::UNAUTHORIZED, code, message));
        let Some(header) = header else {
            return refuse("auth.missing", "a token is needed: Authorization: Bearer TOKEN");
        };
        let token =
            header.get(..7).filter(|word| word.eq_ignore_ascii_case(b"bearer ")).map(|_| &header[7..]);
        let Some(token) = token.map(<[u8]>::trim_ascii) else {
            return refuse("auth.scheme", "only Authorization: Bearer TOKEN is understood");
        };
        let hash = blake3::hash(token);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // All are compared, and each in constant time.
        let mut found = None;
        for holder in &known.0 {
            if holder.hash == Some(hash) {
                found = Some(Arc::clone(holder));
            }
        }
        match found {
            Some(holder) if holder.entry.is_valid() => {
                holder.pace()?;
                Ok(holder)
            }
            _ => refuse("auth.unknown", "this token is not known, or has expired or been revoked"),
        }
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], CliError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| CliError::Arguments(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> Wanted {
        Wanted { name: name.to_owned(), scopes: vec![Scope::Score], expires: None, rate: None, waiting: None }
    }

    #[test]
    fn names_of_tokens_follow_one_rule() {
        for good in ["a", "team-1.trainer_2", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", "a b", "a\n", "local", "é", "a/b", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plaudit-tokens-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_token_works_until_it_is_revoked_and_is_not_in_the_file() {
        let path = folder("revoke").join("tokens.json");
        let file = File::at(&path);
        let (token, entry) = file.create(wanted("trainer")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && !text.contains(&token[PREFIX.len()..]));
        let tokens = Tokens::open(Some(&path)).unwrap();
        let header = format!("Bearer {token}");
        let holder = tokens.check(Some(header.as_bytes())).unwrap();
        assert!(holder.may(Scope::Score) && !holder.may(Scope::Read) && !holder.may(Scope::Admin));
        let code = |header: Option<&[u8]>| tokens.check(header).unwrap_err().code;
        assert_eq!(code(None), "auth.missing");
        assert_eq!(code(Some(b"Basic abc")), "auth.scheme");
        assert_eq!(code(Some(b"Bearer plaudit_00")), "auth.unknown");
        assert_eq!(file.revoke("trainer").unwrap(), entry);
        tokens.refresh().unwrap();
        assert_eq!(code(Some(header.as_bytes())), "auth.unknown");
        assert!(file.revoke("trainer").is_err());
    }

    #[test]
    fn a_file_that_takes_the_place_of_another_is_seen_though_it_seems_the_same() {
        let folder = folder("replaced");
        let (path, other) = (folder.join("tokens.json"), folder.join("other.json"));
        let (first, _) = File::at(&path).create(wanted("one")).unwrap();
        let (second, _) = File::at(&other).create(wanted("two")).unwrap();
        let tokens = Tokens::open(Some(&path)).unwrap();
        let was = std::fs::metadata(&path).unwrap();
        std::fs::File::open(&other).unwrap().set_modified(was.modified().unwrap()).unwrap();
        assert_eq!(std::fs::metadata(&other).unwrap().len(), was.len());
        std::fs::rename(&other, &path).unwrap();
        tokens.refresh().unwrap();
        let known = |token: &str| tokens.check(Some(format!("Bearer {token}").as_bytes())).is_ok();
        assert_eq!((known(&first), known(&second)), (false, true));
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept_from_the_first_on() {
        let path = folder("parallel").join("tokens.json");
        let names: Vec<String> = (0..16).map(|at| at.to_string()).collect();
        let all_at_once = |deed: &(dyn Fn(&str) + Sync)| {
            std::thread::scope(|scope| names.iter().for_each(|name| drop(scope.spawn(|| deed(name)))));
        };
        all_at_once(&|name| drop(File::at(&path).create(wanted(name)).unwrap()));
        assert_eq!(File::at(&path).list().unwrap().len(), names.len());
        all_at_once(&|name| drop(File::at(&path).revoke(name).unwrap()));
        assert!(File::at(&path).list().unwrap().is_empty());
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn quotas_and_expiry_hold() {
        let path = folder("quota").join("tokens.json");
        let file = File::at(&path);
        let (old, _) = file.create(Wanted { expires: Some(now() - 1), ..wanted("old") }).unwrap();
        let (slow, _) = file.create(Wanted { rate: Some(2), waiting: Some(10), ..wanted("slow") }).unwrap();
        let tokens = Tokens::open(Some(&path)).unwrap();
        let check = |token: &str| tokens.check(Some(format!("Bearer {token}").as_bytes()));
        assert_eq!(check(&old).unwrap_err().code, "auth.unknown");
        let known = |name: &str| tokens.holder(name).is_some();
        assert_eq!(
            (known("old"), known("slow"), known("nobody"), known("local")),
            (false, true, false, true)
        );
        let holder = check(&slow).unwrap();
        check(&slow).unwrap();
        assert_eq!(check(&slow).unwrap_err().code, "auth.rate");
        let some = holder.take(8).unwrap();
        assert_eq!(holder.take(3).unwrap_err().code, "auth.waiting");
        drop(some);
        drop(holder.take(10).unwrap());
        // A job leaves half of it to requests, and what is larger than that goes in alone.
        let some = holder.take_behind(3).unwrap();
        assert!(holder.take_behind(3).is_none() && holder.take_behind(20).is_none());
        drop((holder.take(7).unwrap(), some));
        let all = holder.take_behind(20).unwrap();
        assert_eq!(holder.rollouts.load(Ordering::Relaxed), 10);
        drop(all);
        assert_eq!(holder.rollouts.load(Ordering::Relaxed), 0);
    }
}
