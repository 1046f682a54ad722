//! Bearer-token authentication: tokens of a file that is read again within a second of a change, with scopes, rate limits and quotas.

use crate::error::ServeError;
use crate::http::response::ApiError;
use crate::token_file::{LOCAL, Scope, TokenEntry, TokenFile, check_name};
use blake3::Hash;
use hyper::StatusCode;
use plaudit::exec::lock;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

/// How soon a part of a job that waits for room tries again.
pub(crate) const SOON: Duration = Duration::from_millis(5);

/// Who a request is from: a token and what it has used of its quotas.
#[derive(Debug)]
pub(crate) struct Principal {
    pub(crate) entry: TokenEntry,
    hash: Option<Hash>,
    bucket: Mutex<(f64, Instant)>,
    pub(crate) rollouts: Arc<AtomicUsize>,
    /// Jobs of this principal wait for room one after the other.
    turn: tokio::sync::Mutex<()>,
}

impl Principal {
    fn new(entry: TokenEntry) -> Self {
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

    /// The principal of every request where no tokens are required.
    fn local() -> Self {
        Self::new(TokenEntry {
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

    /// Whether its token has that scope.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.entry.scopes.iter().any(|has| *has == scope || *has == Scope::Admin)
    }

    /// Token bucket: counts a request against the rate limit.
    fn check_rate(&self) -> Result<(), ApiError> {
        let Some(rate) = self.entry.rate else { return Ok(()) };
        let mut bucket = lock(&self.bucket);
        let now = Instant::now();
        let left = bucket.0 + now.duration_since(bucket.1).as_secs_f64() * f64::from(rate);
        *bucket = (left.min(f64::from(rate)), now);
        if bucket.0 < 1.0 {
            let message = format!("this token allows {rate} requests a second");
            return Err(ApiError::busy("auth.rate", message, 1));
        }
        bucket.0 -= 1.0;
        Ok(())
    }

    /// Counts rollouts against the quota of the token.
    pub(crate) fn take(&self, rollouts: usize) -> Result<QuotaPermit, ApiError> {
        let before = self.rollouts.fetch_add(rollouts, Ordering::AcqRel);
        let taken = QuotaPermit(Arc::clone(&self.rollouts), rollouts);
        match self.entry.waiting {
            Some(most) if before + rollouts > most => {
                let message = format!("this token allows {most} rollouts at once");
                Err(ApiError::busy("auth.waiting", message, 1))
            }
            _ => Ok(taken),
        }
    }

    /// Counts rollouts of a job against the quota where half of it stays free for requests. Where nothing else is counted, more than
    /// half may go in. A group that is larger than the quota takes all of it, since it cannot be cut.
    fn take_for_job(&self, rollouts: usize) -> Option<QuotaPermit> {
        let most = self.entry.waiting.unwrap_or(usize::MAX);
        let rollouts = rollouts.min(most).max(1);
        let fits = |before: usize| match before {
            0 => rollouts <= most,
            _ => before.saturating_add(rollouts) <= most / 2,
        };
        let taken = self.rollouts.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
            fits(before).then(|| before.saturating_add(rollouts))
        });
        taken.ok().map(|_| QuotaPermit(Arc::clone(&self.rollouts), rollouts))
    }

    /// Waits until the quota has room for rollouts of a job, in the order of asking.
    pub(crate) async fn wait_for_quota(&self, rollouts: usize) -> QuotaPermit {
        let _turn = self.turn.lock().await;
        loop {
            if let Some(taken) = self.take_for_job(rollouts) {
                return taken;
            }
            tokio::time::sleep(SOON).await;
        }
    }
}

/// Rollouts that count against the quota of a token until it is dropped.
#[derive(Debug)]
pub(crate) struct QuotaPermit(Arc<AtomicUsize>, usize);

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// The tokens that the service knows.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: Option<PathBuf>,
    /// The principals, and the version of the file that they were read from.
    known: RwLock<(Vec<Arc<Principal>>, Option<FileVersion>)>,
    local: Arc<Principal>,
    /// Whether the last attempt to read the file failed.
    unread: AtomicBool,
}

/// Modification time, length and inode of a file. The inode tells a file apart that replaces one of the same length and time.
type FileVersion = (SystemTime, u64, u64);

impl Tokens {
    /// Reads the tokens of a file; without a file, no tokens are required.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, ServeError> {
        let tokens = Self {
            path: path.map(Path::to_path_buf),
            known: RwLock::new((Vec::new(), None)),
            local: Arc::new(Principal::local()),
            unread: AtomicBool::new(false),
        };
        tokens.refresh()?;
        Ok(tokens)
    }

    /// The principal of a request that needs no token.
    pub(crate) fn anonymous(&self) -> Arc<Principal> {
        Arc::clone(&self.local)
    }

    /// Whether requests need a token.
    pub(crate) fn are_required(&self) -> bool {
        self.path.is_some()
    }

    /// The principal of that name, while it has a valid token. `local` always exists.
    pub(crate) fn principal(&self, owner: &str) -> Option<Arc<Principal>> {
        if !self.are_required() || owner == self.local.entry.owner() {
            return Some(Arc::clone(&self.local));
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .0
            .iter()
            .find(|principal| principal.entry.owner() == owner && principal.entry.is_valid())
            .cloned()
    }

    /// Whether the token file cannot be read any more, so that changes of it have no effect.
    pub(crate) fn are_stale(&self) -> bool {
        self.unread.load(Ordering::Acquire)
    }

    /// Reads the file again where it has changed. One that cannot be read changes nothing.
    pub(crate) fn refresh(&self) -> Result<(), ServeError> {
        let read = self.read();
        self.unread.store(read.is_err(), Ordering::Release);
        read
    }

    fn read(&self) -> Result<(), ServeError> {
        let Some(path) = &self.path else { return Ok(()) };
        let version = |path: &Path| {
            let about = std::fs::metadata(path)?;
            let which = std::os::unix::fs::MetadataExt::ino(&about);
            Ok((about.modified()?, about.len(), which))
        };
        let seen = version(path).map_err(|error| ServeError::File(path.display().to_string(), error))?;
        if self.known.read().unwrap_or_else(PoisonError::into_inner).1 == Some(seen) {
            return Ok(());
        }
        let entries = TokenFile::at(path).list()?;
        for entry in &entries {
            let refuse =
                |why| ServeError::Arguments(format!("{}: token {}: {why}", path.display(), entry.id));
            check_name(&entry.name).map_err(refuse)?;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // A token that stays keeps what it has used of its quota.
        let keep = |entry: TokenEntry| {
            let same = known.0.iter().find(|principal| principal.entry == entry).cloned();
            same.unwrap_or_else(|| Arc::new(Principal::new(entry)))
        };
        let principals = entries.into_iter().map(keep).collect();
        *known = (principals, Some(seen));
        Ok(())
    }

    /// The principal of the token in an Authorization header, if the token is valid and within its rate limit.
    pub(crate) fn check(&self, header: Option<&[u8]>) -> Result<Arc<Principal>, ApiError> {
        if !self.are_required() {
            return Ok(Arc::clone(&self.local));
        }
        let refuse = |code, message| Err(ApiError::new(StatusCode::UNAUTHORIZED, code, message));
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
        for principal in &known.0 {
            if principal.hash == Some(hash) {
                found = Some(Arc::clone(principal));
            }
        }
        match found {
            Some(principal) if principal.entry.is_valid() => {
                principal.check_rate()?;
                Ok(principal)
            }
            _ => refuse("auth.unknown", "this token is not known, or has expired or been revoked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token_file::{NewToken, now};

    fn new_token(name: &str) -> NewToken {
        NewToken {
            name: name.to_owned(),
            scopes: vec![Scope::Score],
            expires: None,
            rate: None,
            waiting: None,
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plaudit-tokens-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn token_works_until_revoked_and_is_stored_as_hash() {
        let path = folder("revoke").join("tokens.json");
        let file = TokenFile::at(&path);
        let (token, entry) = file.create(new_token("trainer")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && !text.contains(&token["plaudit_".len()..]));
        let tokens = Tokens::open(Some(&path)).unwrap();
        let header = format!("Bearer {token}");
        let principal = tokens.check(Some(header.as_bytes())).unwrap();
        assert!(principal.may(Scope::Score) && !principal.may(Scope::Read) && !principal.may(Scope::Admin));
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
    fn replaced_token_file_is_read_again() {
        let folder = folder("replaced");
        let (path, other) = (folder.join("tokens.json"), folder.join("other.json"));
        let (first, _) = TokenFile::at(&path).create(new_token("one")).unwrap();
        let (second, _) = TokenFile::at(&other).create(new_token("two")).unwrap();
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
    fn quotas_and_expiry_are_enforced() {
        let path = folder("quota").join("tokens.json");
        let file = TokenFile::at(&path);
        let (old, _) = file.create(NewToken { expires: Some(now() - 1), ..new_token("old") }).unwrap();
        let (slow, _) =
            file.create(NewToken { rate: Some(2), waiting: Some(10), ..new_token("slow") }).unwrap();
        let tokens = Tokens::open(Some(&path)).unwrap();
        let check = |token: &str| tokens.check(Some(format!("Bearer {token}").as_bytes()));
        assert_eq!(check(&old).unwrap_err().code, "auth.unknown");
        let known = |name: &str| tokens.principal(name).is_some();
        assert_eq!(
            (known("old"), known("slow"), known("nobody"), known("local")),
            (false, true, false, true)
        );
        let principal = check(&slow).unwrap();
        check(&slow).unwrap();
        assert_eq!(check(&slow).unwrap_err().code, "auth.rate");
        let some = principal.take(8).unwrap();
        assert_eq!(principal.take(3).unwrap_err().code, "auth.waiting");
        drop(some);
        drop(principal.take(10).unwrap());
        // A job leaves half of it to requests, and what is larger than that goes in alone.
        let some = principal.take_for_job(3).unwrap();
        assert!(principal.take_for_job(3).is_none() && principal.take_for_job(20).is_none());
        drop((principal.take(7).unwrap(), some));
        let all = principal.take_for_job(20).unwrap();
        assert_eq!(principal.rollouts.load(Ordering::Relaxed), 10);
        drop(all);
        assert_eq!(principal.rollouts.load(Ordering::Relaxed), 0);
    }
}
