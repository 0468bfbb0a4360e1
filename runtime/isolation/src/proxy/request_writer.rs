//! Writes the arguments of a slot.

#![expect(unsafe_code, reason = "arguments are lists and structs behind pointers of the caller")]

use oarlock_abi as abi;

use super::crossed_memory::{CrossedMemory, is_in_host_memory};
use crate::wire::WireBreach;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::header::{ELEMENTS_ELSEWHERE, ELEMENTS_INLINE, ELEMENTS_SHARED};

/// Elements of at most this many bytes are part of the message.
const MAX_INLINE: u64 = 512;
/// The tensors whose elements in host memory a slot may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementPolicy {
    /// Those of attributes.
    Attributes,
    /// Constants too.
    Constants,
    /// All.
    All,
}

/// What a tensor is to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandRole {
    Input,
    Output,
    Attribute,
}

/// A struct of the contract, of which an older caller may have less.
///
/// # Safety
///
/// `source` points to a struct of this kind that is as large as its `size`.
pub(crate) unsafe fn copy_known<T: Copy>(source: *const T, empty: T) -> Result<T, WireBreach> {
    if source.is_null() {
        return Err(WireBreach::new("the address of a struct", "null"));
    }
    // SAFETY: the pointer is not null, and every struct starts with its size.
    let size = unsafe { source.cast::<u32>().read() } as usize;
    if size >= size_of::<T>() {
        // SAFETY: the struct is at least that large.
        return Ok(unsafe { source.read() });
    }
    let mut copy = empty;
    // SAFETY: both have that many bytes, and any bytes are a value of a struct of the contract.
    unsafe {
        std::ptr::copy_nonoverlapping(source.cast::<u8>(), (&raw mut copy).cast::<u8>(), size);
    }
    Ok(copy)
}

/// A number that crosses as its bytes.
pub(crate) trait PlainNumber: Copy {}
impl PlainNumber for u8 {}
impl PlainNumber for u32 {}
impl PlainNumber for u64 {}
impl PlainNumber for i64 {}
impl PlainNumber for f64 {}

/// A request that is being written.
#[derive(Debug)]
pub(crate) struct RequestWriter<'a, 'c> {
    bytes: ByteWriter<'a>,
    crossed: &'a mut CrossedMemory<'c>,
    policy: ElementPolicy,
    role: OperandRole,
}

impl<'a, 'c> RequestWriter<'a, 'c> {
    pub(crate) fn new(
        bytes: ByteWriter<'a>,
        crossed: &'a mut CrossedMemory<'c>,
        policy: ElementPolicy,
        role: OperandRole,
    ) -> Self {
        Self { bytes, crossed, policy, role }
    }

    pub(crate) fn put_u8(&mut self, value: u8) {
        self.bytes.put_u8(value);
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.bytes.put_u32(value);
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.bytes.put_u64(value);
    }

    pub(crate) fn put_i32(&mut self, value: i32) {
        self.bytes.put_i32(value);
    }

    pub(crate) fn set_role(&mut self, role: OperandRole) {
        self.role = role;
    }

    /// # Safety
    ///
    /// The text is readable.
    pub(crate) unsafe fn put_str(&mut self, text: abi::Str) -> Result<(), WireBreach> {
        // SAFETY: the caller vouches for the text.
        let bytes = unsafe { text.bytes() };
        self.bytes
            .put_bytes(bytes.ok_or_else(|| WireBreach::new("text", format!("{} bytes at null", text.size)))?);
        Ok(())
    }

    fn put_count<T>(&mut self, first: *const T, count: u64) -> Result<usize, WireBreach> {
        if count > u32::MAX.into() || (first.is_null() && count > 0) {
            return Err(WireBreach::new("a list", format!("{count} items at {first:p}")));
        }
        self.put_u32(count as u32);
        Ok(count as usize)
    }

    /// # Safety
    ///
    /// The list has `count` numbers.
    pub(crate) unsafe fn put_numbers<T: PlainNumber>(
        &mut self,
        first: *const T,
        count: u64,
    ) -> Result<(), WireBreach> {
        let count = self.put_count(first, count)?;
        if count > 0 {
            // SAFETY: the caller vouches for the numbers, and a number is made of initialized bytes.
            self.bytes
                .put_raw(unsafe { std::slice::from_raw_parts(first.cast::<u8>(), count * size_of::<T>()) });
        }
        Ok(())
    }

    /// # Safety
    ///
    /// The list has `count` items, for each of which `put` may be called.
    pub(crate) unsafe fn put_items<T: Copy>(
        &mut self,
        first: *const T,
        count: u64,
        put: unsafe fn(&mut Self, T) -> Result<(), WireBreach>,
    ) -> Result<(), WireBreach> {
        for index in 0..self.put_count(first, count)? {
            // SAFETY: the caller vouches for the items.
            unsafe { put(self, first.add(index).read())? };
        }
        Ok(())
    }

    /// Follows the fields of a tensor: says where its elements are, if they are in host memory and the slot may read them.
    ///
    /// # Safety
    ///
    /// The tensor is as the contract describes it.
    pub(crate) unsafe fn put_elements(&mut self, tensor: &abi::Tensor) -> Result<(), WireBreach> {
        let is_constant = tensor.bits.contains(abi::TensorFlags::CONSTANT);
        let crosses = match (self.role, self.policy) {
            (OperandRole::Attribute, _) | (_, ElementPolicy::All) => true,
            (OperandRole::Input, ElementPolicy::Constants) => is_constant,
            _ => false,
        };
        if !crosses || !is_in_host_memory(tensor) || tensor.block.0 == 0 {
            self.put_u8(ELEMENTS_ELSEWHERE);
            return Ok(());
        }
        if tensor.dtype == abi::Dtype::STRING {
            return Err(WireBreach::new(
                "a tensor of numbers, because an isolated plugin cannot read texts of this process",
                "one of strings",
            ));
        }
        let (address, size) = (tensor.block.0.wrapping_add(tensor.offset), tensor.size_in_bytes);
        let is_output = self.role == OperandRole::Output;
        if size <= MAX_INLINE && !is_output {
            self.put_u8(ELEMENTS_INLINE);
            // SAFETY: the caller vouches for the elements.
            self.bytes.put_bytes(unsafe { std::slice::from_raw_parts(address as *const u8, size as usize) });
            return Ok(());
        }
        // SAFETY: as above; outputs can be written until the call is done.
        let offset = unsafe { self.crossed.cross_elements(address, size, is_output)? };
        self.put_u8(ELEMENTS_SHARED);
        self.put_u64(offset);
        Ok(())
    }
}
