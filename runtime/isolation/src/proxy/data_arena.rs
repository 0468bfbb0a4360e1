//! The shared memory with the books of its arena.

use std::sync::{Mutex, PoisonError};

use crate::shared::arena::ArenaBooks;
use crate::shared::region::SharedRegion;

/// Shared memory from which the host hands out pieces.
#[derive(Debug)]
pub(crate) struct DataArena {
    region: SharedRegion,
    books: Mutex<ArenaBooks>,
}

impl DataArena {
    pub(crate) fn new(region: SharedRegion) -> Self {
        Self { books: Mutex::new(ArenaBooks::new(region.arena_bytes())), region }
    }

    pub(crate) fn region(&self) -> &SharedRegion {
        &self.region
    }

    pub(crate) fn take_piece(&self, size: u64) -> Option<u64> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner).take_piece(size)
    }

    /// Frees a piece; false if there is none at this offset.
    pub(crate) fn give_piece(&self, offset: u64) -> bool {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unused) = books.give_piece(offset) else { return false };
        if unused > 0 {
            // Under the lock, so that nobody writes to these pages yet.
            self.region.forget_pages(offset, unused);
        }
        true
    }
}
