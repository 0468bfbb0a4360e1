//! Scratch memory of kernels. Its size depends on the model, which may demand more than the machine has, so allocation returns an
//! error instead of aborting.

use oarlock_sdk::{PluginError, Result};

/// An empty vector with room for `count` items.
pub fn try_reserve_vec<T>(count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    match room.try_reserve_exact(count) {
        Ok(()) => Ok(room),
        Err(_) => Err(PluginError::resource_exhausted(format!(
            "expected memory for {count} intermediate results of {} bytes, found too little",
            size_of::<T>()
        ))),
    }
}

/// A vector of `count` copies of an item.
pub fn try_filled_vec<T: Clone>(item: T, count: usize) -> Result<Vec<T>> {
    let mut items = try_reserve_vec(count)?;
    items.resize(count, item);
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused_with_how_much_it_was() {
        assert_eq!(try_filled_vec(7u8, 3).unwrap(), [7; 3]);
        for count in [usize::MAX, 1 << 50] {
            let error = try_reserve_vec::<f64>(count).unwrap_err();
            assert!(error.message().contains(&format!("{count} intermediate results of 8 bytes")), "{error}");
        }
    }
}
