//! Reads the results of a slot, which may be anything that a broken child wrote.

#![expect(unsafe_code, reason = "results are written to addresses of the caller")]

use oarlock_abi as abi;

use super::text_store::TextStore;
use crate::wire::WireBreach;
use crate::wire::byte_reader::ByteReader;

/// A reply that is being read.
#[derive(Debug)]
pub(crate) struct ReplyReader<'a> {
    bytes: ByteReader<'a>,
    texts: &'a TextStore,
}

impl<'a> ReplyReader<'a> {
    pub(crate) fn new(bytes: ByteReader<'a>, texts: &'a TextStore) -> Self {
        Self { bytes, texts }
    }

    pub(crate) fn take_u32(&mut self) -> Result<u32, WireBreach> {
        self.bytes.take_u32()
    }

    pub(crate) fn take_u64(&mut self) -> Result<u64, WireBreach> {
        self.bytes.take_u64()
    }

    pub(crate) fn take_text(&mut self) -> Result<&'a str, WireBreach> {
        self.bytes.take_text()
    }

    /// A text that stays until the plugin is unloaded.
    pub(crate) fn take_str(&mut self) -> Result<abi::Str, WireBreach> {
        let text = self.bytes.take_text()?;
        self.texts.keep_text(text).ok_or_else(|| WireBreach::new("texts of at most a MiB in all", "more"))
    }

    /// Fills a list of the caller with numbers; the count of all is returned.
    ///
    /// # Safety
    ///
    /// `target` has room for `capacity` numbers.
    pub(crate) unsafe fn fill_u32_list(
        &mut self,
        target: *mut u32,
        capacity: u64,
    ) -> Result<u64, WireBreach> {
        let total = self.bytes.take_u64()?;
        let count = self.bytes.take_count(size_of::<u32>())?;
        if count as u64 > capacity {
            return Err(WireBreach::new(format!("at most {capacity} items of a list"), count.to_string()));
        }
        for index in 0..count {
            let value = self.bytes.take_u32()?;
            // SAFETY: the caller vouches for the room.
            unsafe { target.add(index).write(value) };
        }
        Ok(total)
    }
}

/// Writes a struct of the contract to a caller, who may know less of it.
///
/// # Safety
///
/// `target` points to a struct of this kind that is as large as its `size`.
pub(crate) unsafe fn write_known<T: Copy>(target: *mut T, value: T) {
    const HEADER: usize = size_of::<u32>();
    // SAFETY: every struct starts with its size.
    let size = unsafe { target.cast::<u32>().read() } as usize;
    let known = size.min(size_of::<T>()).saturating_sub(HEADER);
    // SAFETY: both have that many bytes behind the size, which stays the caller's.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const value).cast::<u8>().add(HEADER),
            target.cast::<u8>().add(HEADER),
            known,
        );
    }
}
