//! Reads structs of the contract, whose lists and texts go into a storage.

#![expect(unsafe_code, reason = "numbers are read from bytes")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use oarlock_abi as abi;

use super::WireBreach;
use super::bump_storage::BumpStorage;
use super::byte_reader::ByteReader;
use super::header::{ELEMENTS_ELSEWHERE, ELEMENTS_INLINE, ELEMENTS_SHARED};

/// Finds a range of the shared memory in this process.
pub(crate) type RangeLookup<'a> = &'a dyn Fn(u64, u64) -> Result<*mut u8, WireBreach>;

/// A number of which any bytes are a value.
pub(crate) trait StoredNumber: Copy {}
impl StoredNumber for u8 {}
impl StoredNumber for u32 {}
impl StoredNumber for u64 {}
impl StoredNumber for i64 {}
impl StoredNumber for f64 {}

/// What a message refers to without containing it.
#[derive(Clone, Copy)]
pub(crate) struct MessageSurroundings<'a> {
    /// The shared memory.
    pub(crate) find_range: RangeLookup<'a>,
    /// What the call of a kernel names as its maker.
    pub(crate) host_call: *mut c_void,
    /// True if the elements of tensors stay longer than the message, so they are copied out of the shared memory.
    pub(crate) keeps_elements: bool,
    /// Where the call of a kernel is noted while it runs.
    pub(crate) call: &'a AtomicPtr<abi::Call>,
}

/// A message that is being read into a storage.
pub(crate) struct StoredReader<'a> {
    bytes: ByteReader<'a>,
    storage: &'a BumpStorage,
    around: MessageSurroundings<'a>,
    has_elements: bool,
}

impl<'a> StoredReader<'a> {
    pub(crate) fn new(
        bytes: ByteReader<'a>,
        storage: &'a BumpStorage,
        around: MessageSurroundings<'a>,
    ) -> Self {
        Self { bytes, storage, around, has_elements: false }
    }

    pub(crate) fn host_call(&self) -> *mut c_void {
        self.around.host_call
    }

    /// Notes the call of a kernel, which is in the storage.
    pub(crate) fn note_call(&self, call: *mut abi::Call) {
        self.around.call.store(call, Ordering::Release);
    }

    /// True if the message had elements of tensors, which are in the storage or in the shared memory.
    pub(crate) fn has_elements(&self) -> bool {
        self.has_elements
    }

    pub(crate) fn storage(&self) -> &'a BumpStorage {
        self.storage
    }

    pub(crate) fn take_u8(&mut self) -> Result<u8, WireBreach> {
        self.bytes.take_u8()
    }

    pub(crate) fn take_u32(&mut self) -> Result<u32, WireBreach> {
        self.bytes.take_u32()
    }

    pub(crate) fn take_u64(&mut self) -> Result<u64, WireBreach> {
        self.bytes.take_u64()
    }

    pub(crate) fn take_i32(&mut self) -> Result<i32, WireBreach> {
        self.bytes.take_i32()
    }

    /// An address in the shared memory, and the number of bytes there.
    pub(crate) fn take_range(&mut self) -> Result<(*mut c_void, u64), WireBreach> {
        let (offset, size) = (self.take_u64()?, self.take_u64()?);
        Ok(((self.around.find_range)(offset, size)?.cast(), size))
    }

    /// An address in the shared memory. The size is another argument.
    pub(crate) fn take_address(&mut self) -> Result<*mut c_void, WireBreach> {
        let offset = self.take_u64()?;
        Ok((self.around.find_range)(offset, 1)?.cast())
    }

    pub(crate) fn take_str(&mut self) -> Result<abi::Str, WireBreach> {
        let text = self.bytes.take_text()?;
        Ok(abi::Str { data: self.storage.store_list(text.as_bytes()), size: text.len() as u64 })
    }

    pub(crate) fn take_numbers<T: StoredNumber>(&mut self) -> Result<(*const T, u64), WireBreach> {
        let count = self.bytes.take_count(size_of::<T>())?;
        let bytes = self.bytes.take_raw(count * size_of::<T>())?;
        let values: Vec<T> = bytes
            .chunks_exact(size_of::<T>())
            // SAFETY: the chunk has as many bytes as the number, of which any bytes are a value.
            .map(|chunk| unsafe { chunk.as_ptr().cast::<T>().read_unaligned() })
            .collect();
        Ok((self.storage.store_list(&values), count as u64))
    }

    /// A list of values.
    pub(crate) fn take_values<T: Copy>(
        &mut self,
        take: fn(&mut Self) -> Result<T, WireBreach>,
    ) -> Result<(*const T, u64), WireBreach> {
        // Every value has at least one byte.
        let count = self.bytes.take_count(1)?;
        let values = (0..count).map(|_| take(self)).collect::<Result<Vec<T>, _>>()?;
        Ok((self.storage.store_list(&values), count as u64))
    }

    /// A list of structs, as pointers.
    pub(crate) fn take_structs<T: Copy>(
        &mut self,
        take: fn(&mut Self) -> Result<T, WireBreach>,
    ) -> Result<(*const *const T, u64), WireBreach> {
        let count = self.bytes.take_count(1)?;
        let pointers = (0..count)
            .map(|_| Ok(self.storage.store(take(self)?).cast_const()))
            .collect::<Result<Vec<*const T>, WireBreach>>()?;
        Ok((self.storage.store_list(&pointers), count as u64))
    }

    /// Follows the fields of a tensor, see `put_elements` of the writer.
    pub(crate) fn take_elements(&mut self, tensor: &mut abi::Tensor) -> Result<(), WireBreach> {
        match self.take_u8()? {
            ELEMENTS_ELSEWHERE => Ok(()),
            ELEMENTS_INLINE => {
                let elements = self.bytes.take_bytes()?;
                tensor.block = abi::Memory(self.storage.store_aligned(elements) as u64);
                tensor.offset = 0;
                self.has_elements = true;
                Ok(())
            }
            ELEMENTS_SHARED => {
                let (offset, size) = (self.take_u64()?, tensor.size_in_bytes);
                let mut place = (self.around.find_range)(offset, size)?;
                if self.around.keeps_elements {
                    // SAFETY: the range is in the shared memory, and the host does not change it during the call.
                    place = self
                        .storage
                        .store_aligned(unsafe { std::slice::from_raw_parts(place, size as usize) });
                }
                tensor.block = abi::Memory(place as u64);
                tensor.offset = 0;
                self.has_elements = true;
                Ok(())
            }
            other => Err(WireBreach::new("a way in which elements cross", other.to_string())),
        }
    }
}
