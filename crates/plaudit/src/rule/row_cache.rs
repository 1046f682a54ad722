//! What was made of a row (a compiled schema, parsed instructions), kept for the other rollouts of its group.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many rows are kept.
const KEPT: usize = 256;

/// Values by the text that they were made of. Results do not depend on what is kept.
pub(super) struct RowCache<T>(Mutex<BTreeMap<String, T>>);

impl<T: Clone> RowCache<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The value of a text, which is made where it is not kept.
    pub(super) fn get(&self, text: Cow<'_, str>, make: impl FnOnce(&str) -> T) -> T {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lock().get(&*text) {
            return kept.clone();
        }
        // Made outside the lock, so that other threads go on.
        let made = make(&text);
        let mut kept = lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(text.into_owned(), made.clone());
        made
    }
}
