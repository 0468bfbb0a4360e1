//! Arrays: operands that own their memory, with guards before and after it.

use oarlock_sdk::{Dtype, Element, Memory, abi};

/// A line of memory, with the alignment that the device guarantees.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
struct GuardLine([u8; TILE_ROW_BYTES]);

const TILE_ROW_BYTES: usize = 64;
/// The contents of guards, and of outputs until the kernel writes them.
const GUARD: GuardLine = GuardLine([0xA5; TILE_ROW_BYTES]);

/// Bytes between guards.
#[derive(Clone, Debug)]
pub(super) struct GuardedStorage {
    lines: Vec<GuardLine>,
    size: usize,
}

impl GuardedStorage {
    pub(super) fn new(size: usize) -> Self {
        Self { lines: vec![GUARD; size.div_ceil(TILE_ROW_BYTES) + 2], size }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn address(&mut self) -> u64 {
        self.lines[1..].as_mut_ptr() as u64
    }

    fn all_bytes(&self) -> &[u8] {
        // SAFETY: a line is `TILE_ROW_BYTES` bytes without padding, all of them initialized.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * TILE_ROW_BYTES) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.all_bytes()[TILE_ROW_BYTES..TILE_ROW_BYTES + self.size]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let size = self.size;
        // SAFETY: as for `all_bytes`, and any bytes are a valid line.
        unsafe { std::slice::from_raw_parts_mut(self.lines[1..].as_mut_ptr().cast(), size) }
    }

    /// True if nothing was written outside the bytes between the guards.
    pub(super) fn is_guarded(&self) -> bool {
        let (before, rest) = self.all_bytes().split_at(TILE_ROW_BYTES);
        before.iter().chain(&rest[self.size..]).all(|byte| *byte == GUARD.0[0])
    }
}

/// An operand: dtype, shape, strides in elements (empty if contiguous) and bytes.
#[derive(Clone, Debug)]
pub struct TestArray {
    pub dtype: Dtype,
    pub dims: Vec<i64>,
    pub strides: Vec<i64>,
    /// The offset of the first element, in bytes.
    start: usize,
    storage: GuardedStorage,
    /// True if kernels are told that the bytes never change.
    is_constant: bool,
}

impl TestArray {
    /// An array of these values, in contiguous order.
    pub fn from_values<T: Element>(dims: &[i64], values: &[T]) -> Self {
        // SAFETY: elements are plain values without padding.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
        Self::from_bytes(T::DTYPE, dims, bytes)
    }

    /// An array of a dtype that has no Rust type.
    pub fn from_bytes(dtype: Dtype, dims: &[i64], bytes: &[u8]) -> Self {
        let mut array = Self::blank(dtype, dims);
        assert_eq!(array.storage.size, bytes.len(), "as many bytes as {dims:?} needs");
        array.storage.bytes_mut().copy_from_slice(bytes);
        array
    }

    /// An array that no kernel has written yet.
    pub fn blank(dtype: Dtype, dims: &[i64]) -> Self {
        let count: i64 = dims.iter().product();
        let bits = count as usize * dtype_bits(dtype);
        Self {
            dtype,
            dims: dims.to_vec(),
            strides: Vec::new(),
            start: 0,
            storage: GuardedStorage::new(bits.div_ceil(8)),
            is_constant: false,
        }
    }

    /// The same array as a constant.
    pub fn into_constant(self) -> Self {
        Self { is_constant: true, ..self }
    }

    /// Another view of the same values: with strides, from the element at `offset` on.
    pub fn with_strides(&self, dims: &[i64], strides: &[i64], offset: usize) -> Self {
        let start = offset * dtype_bits(self.dtype) / 8;
        Self { dims: dims.to_vec(), strides: strides.to_vec(), start, ..self.clone() }
    }

    /// The values in memory order.
    pub fn values<T: Element>(&self) -> Vec<T> {
        assert_eq!(self.dtype, T::DTYPE);
        let count = self.storage.size / size_of::<T>();
        // SAFETY: the memory is aligned for any element and has this many; kernels must write bools as 0 or 1, which is checked.
        unsafe {
            let first = self.storage.bytes().as_ptr();
            let is_valid = self.dtype != Dtype::BOOL || self.storage.bytes().iter().all(|byte| *byte < 2);
            assert!(is_valid, "bools of 0 and 1");
            std::slice::from_raw_parts(first.cast::<T>(), count).to_vec()
        }
    }

    /// The bytes in memory order.
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.storage.is_guarded()
    }

    pub fn has_same_bytes(&self, other: &Self) -> bool {
        self.storage.lines == other.storage.lines
    }

    /// The contract's record of an operand that is only read.
    pub(super) fn describe(&self) -> abi::Tensor {
        let (dims, strides) = (&self.dims, &self.strides);
        abi::Tensor {
            block: Memory(self.storage.lines[1..].as_ptr() as u64),
            offset: self.start as u64,
            size_in_bytes: self.storage.size.saturating_sub(self.start) as u64,
            dtype: self.dtype,
            dims: dims.as_ptr(),
            dims_count: dims.len() as u64,
            strides: strides.as_ptr(),
            strides_count: strides.len() as u64,
            bits: if self.is_constant { abi::TensorFlags::CONSTANT } else { abi::Tensor::EMPTY.bits },
            ..abi::Tensor::EMPTY
        }
    }

    /// The contract's record of an operand that may be written.
    pub(super) fn describe_mut(&mut self) -> abi::Tensor {
        let block = Memory(self.storage.address());
        abi::Tensor { block, ..self.describe() }
    }
}

fn dtype_bits(dtype: Dtype) -> usize {
    match dtype {
        Dtype::I2 | Dtype::U2 => 2,
        Dtype::I4 | Dtype::U4 | Dtype::F4E2M1 => 4,
        Dtype::BOOL
        | Dtype::I8
        | Dtype::U8
        | Dtype::F8E4M3
        | Dtype::F8E4M3FNUZ
        | Dtype::F8E5M2
        | Dtype::F8E5M2FNUZ
        | Dtype::F8E8M0 => 8,
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => 16,
        Dtype::I32 | Dtype::U32 | Dtype::F32 => 32,
        Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::C64 => 64,
        Dtype::C128 => 128,
        other => panic!("no array has elements of {:?}", other.name()),
    }
}
