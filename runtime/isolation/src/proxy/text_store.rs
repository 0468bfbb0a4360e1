//! Texts that the plugin returned. The contract lets their readers keep them until the plugin is unloaded.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;

/// Limit on all texts together. A plugin returns the same few texts again and again.
const MAX_BYTES: usize = 1 << 20;

/// The texts, each once.
#[derive(Debug, Default)]
pub(crate) struct TextStore {
    books: Mutex<TextBooks>,
}

#[derive(Debug, Default)]
struct TextBooks {
    texts: BTreeSet<Box<str>>,
    bytes: usize,
}

impl TextStore {
    /// Keeps a text; `None` if there are too many.
    pub(crate) fn keep_text(&self, text: &str) -> Option<abi::Str> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        if !books.texts.contains(text) {
            if text.len() > MAX_BYTES - books.bytes {
                return None;
            }
            books.bytes += text.len();
            books.texts.insert(text.into());
        }
        // The bytes stay where they are, even if the set moves the boxes.
        books.texts.get(text).map(|kept| abi::Str::borrowed(kept))
    }
}
