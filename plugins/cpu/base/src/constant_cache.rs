//! A cache of what kernels derive from constants, such as packed weights. Kernels that derive the same value from the same constant
//! share it, across the shapes of a call and the sessions of a model.
//!
//! A constant is identified by its address and size. That is unambiguous while a derived value is alive: a kernel's state owns the
//! value, and the bytes of a constant do not change while that state lives. So the cache stores weak references: an entry is found
//! only while a kernel uses it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use oarlock_sdk::TensorView;

/// Values derived from constants, by weak reference: the kernels that use them own them.
pub struct ConstantCache<K, T> {
    made: Mutex<BTreeMap<ConstantKey<K>, Weak<T>>>,
}

/// The address of a constant, its size, and everything else that the value depends on.
type ConstantKey<K> = (usize, usize, K);

impl<K: Ord, T> Default for ConstantCache<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord, T> ConstantCache<K, T> {
    pub const fn new() -> Self {
        Self { made: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the value for a constant and a key; calls `make` if there is none. The key must contain everything else that `make`
    /// depends on, such as the layout, the sizes and the instruction set.
    pub fn get_or_make<E, F>(
        &self,
        constant: &[E],
        key: K,
        make: impl FnOnce() -> Result<T, F>,
    ) -> Result<Arc<T>, F> {
        self.get_or_make_at((constant.as_ptr().addr(), size_of_val(constant)), key, make)
    }

    /// Like [`Self::get_or_make`], for a constant given by its address and size in bytes.
    pub fn get_or_make_at<F>(
        &self,
        (address, size): (usize, usize),
        key: K,
        make: impl FnOnce() -> Result<T, F>,
    ) -> Result<Arc<T>, F> {
        let name = (address, size, key);
        if let Some(found) = self.find_live(&name) {
            return Ok(found);
        }
        // Without the lock: this may take long, and other threads may need other constants meanwhile.
        let new = Arc::new(make()?);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread was faster. Its value is shared, and this one is dropped.
        if let Some(found) = made.get(&name).and_then(Weak::upgrade) {
            return Ok(found);
        }
        // Dead entries are dropped only here, when the map would otherwise grow.
        made.retain(|_, thing| thing.strong_count() > 0);
        made.insert(name, Arc::downgrade(&new));
        Ok(new)
    }

    fn find_live(&self, name: &ConstantKey<K>) -> Option<Arc<T>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).get(name)?.upgrade()
    }
}

/// The address of an operand and its size in bytes.
pub fn constant_range(operand: &TensorView<'_>) -> (usize, usize) {
    let (block, offset) = operand.memory_location();
    (block.0.wrapping_add(offset) as usize, operand.size_in_bytes() as usize)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn cache_text(
        constants: &ConstantCache<u8, String>,
        constant: &[f32],
        key: u8,
        text: &str,
    ) -> Arc<String> {
        constants.get_or_make(constant, key, || Ok::<_, Infallible>(text.to_owned())).unwrap()
    }

    #[test]
    fn the_same_is_made_once_while_it_is_used() {
        let (constants, constant) = (ConstantCache::new(), [1.0, 2.0]);
        let first = cache_text(&constants, &constant, 0, "first");
        assert_eq!(*cache_text(&constants, &constant, 0, "second"), "first");
        drop(first);
        assert_eq!(*cache_text(&constants, &constant, 0, "third"), "third");
    }

    #[test]
    fn other_keys_and_other_parts_are_other_things() {
        let (constants, constant) = (ConstantCache::new(), [1.0, 2.0]);
        let _first = cache_text(&constants, &constant, 0, "first");
        assert_eq!(*cache_text(&constants, &constant, 1, "key"), "key");
        assert_eq!(*cache_text(&constants, &constant[1..], 0, "begin"), "begin");
        assert_eq!(*cache_text(&constants, &constant[..1], 0, "size"), "size");
    }

    #[test]
    fn what_nobody_uses_is_forgotten() {
        let (constants, constant) = (ConstantCache::new(), [0.0; 9]);
        (0..9).for_each(|key| drop(cache_text(&constants, &constant, key, "unused")));
        assert_eq!(constants.made.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_cannot_be_made_is_an_error_and_tried_again() {
        let (constants, constant) = (ConstantCache::<u8, String>::new(), [1.0]);
        let failed = constants.get_or_make(&constant, 0, || Err("no"));
        assert_eq!(failed, Err("no"));
        assert_eq!(*cache_text(&constants, &constant, 0, "now"), "now");
    }

    #[test]
    fn threads_that_make_the_same_share_one() {
        let (constants, constant) = (ConstantCache::new(), [1.0, 2.0]);
        let all: Vec<_> = std::thread::scope(|scope| {
            let start = || scope.spawn(|| cache_text(&constants, &constant, 0, "shared"));
            let threads: Vec<_> = (0..4).map(|_| start()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| Arc::ptr_eq(one, &all[0])));
    }
}
