//! Operands as plain slices. Data movement does not interpret elements, so all dtypes of one size share code: an element is an
//! array of bytes.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_sdk::{
    Dtype, DtypeSet, Element, KernelCall, PluginError, Result, TensorView, abi, dtype_set, ensure,
};

use crate::device::Cpu;
use crate::simd::SortElement;

pub const WHOLE_BYTE_DTYPES: DtypeSet = dtype_set(&[
    Dtype::BOOL,
    Dtype::I8,
    Dtype::U8,
    Dtype::I16,
    Dtype::U16,
    Dtype::I32,
    Dtype::U32,
    Dtype::I64,
    Dtype::U64,
    Dtype::F8E4M3,
    Dtype::F8E4M3FNUZ,
    Dtype::F8E5M2,
    Dtype::F8E5M2FNUZ,
    Dtype::F8E8M0,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
    Dtype::C64,
    Dtype::C128,
    Dtype::STRING,
]);

pub const INDEX_DTYPES: DtypeSet = dtype_set(&[Dtype::I32, Dtype::I64]);

/// Copying fewer bytes than this is faster than waking another thread.
const GRAIN_BYTES: usize = 64 << 10;

/// Calls a function that is generic over the size of an element, with the size of a dtype.
#[macro_export]
macro_rules! by_size {
    ($dtype:expr, $size:ident => $body:expr) => {
        match $crate::element_bytes::size_of_dtype($dtype)? {
            1 => {
                const $size: usize = 1;
                $body
            }
            2 => {
                const $size: usize = 2;
                $body
            }
            4 => {
                const $size: usize = 4;
                $body
            }
            8 => {
                const $size: usize = 8;
                $body
            }
            _ => {
                const $size: usize = 16;
                $body
            }
        }
    };
}

/// The size of an element in bytes: a power of two up to 16.
pub fn size_of_dtype(dtype: Dtype) -> Result<usize> {
    match dtype {
        Dtype::BOOL
        | Dtype::I8
        | Dtype::U8
        | Dtype::F8E4M3
        | Dtype::F8E4M3FNUZ
        | Dtype::F8E5M2
        | Dtype::F8E5M2FNUZ
        | Dtype::F8E8M0 => Ok(1),
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => Ok(2),
        Dtype::I32 | Dtype::U32 | Dtype::F32 => Ok(4),
        Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::C64 => Ok(8),
        Dtype::C128 | Dtype::STRING => Ok(16),
        other => Err(PluginError::unimplemented(format!(
            "expected elements of whole bytes, found {}",
            other.name().unwrap_or("an unknown dtype")
        ))),
    }
}

/// The address of an operand, after checking that its memory has `count` elements of `size` bytes.
fn operand_address(tensor: &TensorView<'_>, count: usize, size: usize) -> Result<*mut u8> {
    let needed = count.checked_mul(size).filter(|needed| isize::try_from(*needed).is_ok());
    let found = tensor.size_in_bytes();
    ensure!(
        needed.is_some_and(|needed| needed as u64 <= found),
        out_of_range,
        "expected room for {count} elements of {size} bytes, found {found} bytes"
    );
    let (block, offset) = tensor.memory_location();
    let address = (block.0.wrapping_add(offset)) as *mut u8;
    ensure!(count == 0 || !address.is_null(), invalid_argument, "expected an operand in memory, found none");
    Ok(if count == 0 { std::ptr::dangling_mut() } else { address })
}

fn contiguous_count(tensor: &TensorView<'_>, size: usize) -> Result<usize> {
    ensure!(
        tensor.strides().is_empty(),
        invalid_argument,
        "expected a contiguous operand, found strides {:?}",
        tensor.strides()
    );
    let found = size_of_dtype(tensor.dtype())?;
    ensure!(found == size, invalid_argument, "expected elements of {size} bytes, found {found} bytes");
    tensor.element_count()
}

/// The elements of a contiguous operand.
pub fn element_bytes<'a, const N: usize>(tensor: &TensorView<'a>) -> Result<&'a [[u8; N]]> {
    let count = contiguous_count(tensor, N)?;
    let address = operand_address(tensor, count, N)?;
    // SAFETY: the address is not null and has `count` elements of N bytes; the call vouches that nothing writes an input while it
    // runs.
    Ok(unsafe { std::slice::from_raw_parts(address.cast(), count) })
}

/// All memory from the first to the last element of an operand that may have strides, gaps included.
pub fn strided_element_bytes<'a, const N: usize>(tensor: &TensorView<'a>) -> Result<&'a [[u8; N]]> {
    if tensor.strides().is_empty() {
        return element_bytes(tensor);
    }
    let found = size_of_dtype(tensor.dtype())?;
    ensure!(found == N, invalid_argument, "expected elements of {N} bytes, found {found} bytes");
    let count = usize::try_from(tensor.size_in_bytes()).unwrap_or(usize::MAX) / N;
    let address = operand_address(tensor, count, N)?;
    // SAFETY: as for `element_bytes`; the operand's size in bytes has room for `count` elements.
    Ok(unsafe { std::slice::from_raw_parts(address.cast(), count) })
}

/// The elements of an output. A kernel must call this only once per output.
pub fn element_bytes_mut<'a, const N: usize>(tensor: &TensorView<'a>) -> Result<&'a mut [[u8; N]]> {
    let count = contiguous_count(tensor, N)?;
    let address = operand_address(tensor, count, N)?;
    // SAFETY: as for `element_bytes`; the call vouches that nothing else accesses an output.
    Ok(unsafe { std::slice::from_raw_parts_mut(address.cast(), count) })
}

/// Elements as integers of their size, if they lie where such integers may.
pub fn integers_of_elements<I: SortElement, const N: usize>(elements: &mut [[u8; N]]) -> Option<&mut [I]> {
    if N != size_of::<I>() {
        return None;
    }
    // SAFETY: any bytes are an integer, and any integer is bytes.
    let (before, integers, behind) = unsafe { elements.align_to_mut::<I>() };
    (before.is_empty() && behind.is_empty()).then_some(integers)
}

/// The values of a contiguous operand.
pub fn typed_values<'a, T: Element>(tensor: &TensorView<'a>) -> Result<&'a [T]> {
    // SAFETY: the memory of the device is the host's, and the call vouches that nothing writes an input while it runs.
    unsafe { tensor.elements() }
}

/// The values of an output. A kernel must call this only once per output.
pub fn typed_values_mut<'a, T: Element>(tensor: &TensorView<'a>) -> Result<&'a mut [T]> {
    // SAFETY: as above; the call vouches that nothing else accesses an output.
    unsafe { tensor.elements_mut() }
}

/// The number of elements packed into a byte; `None` if an element has whole bytes.
fn elements_per_byte(dtype: Dtype) -> Option<usize> {
    match dtype {
        Dtype::I2 | Dtype::U2 => Some(4),
        Dtype::I4 | Dtype::U4 | Dtype::F4E2M1 => Some(2),
        _ => None,
    }
}

/// Copies all bytes of a contiguous operand to an output of the same size, which may be the same memory.
pub fn copy_contiguous(cpu: &Cpu, from: &TensorView<'_>, to: &TensorView<'_>) -> Result<()> {
    ensure!(
        from.dtype() == to.dtype(),
        invalid_argument,
        "expected an output with the elements of the input, found another dtype"
    );
    copy_bits(cpu, from, to)
}

/// Like [`copy_contiguous`], but the output may have another dtype of the same size.
pub fn copy_bits(cpu: &Cpu, from: &TensorView<'_>, to: &TensorView<'_>) -> Result<()> {
    let (count, expected) = (from.element_count()?, to.element_count()?);
    let shared = elements_per_byte(from.dtype());
    let (bytes, size) = match shared {
        Some(shared) => (count.div_ceil(shared), 1),
        None => (count, size_of_dtype(from.dtype())?),
    };
    let same_size =
        elements_per_byte(to.dtype()) == shared && (shared.is_some() || size_of_dtype(to.dtype())? == size);
    ensure!(
        count == expected && same_size,
        invalid_argument,
        "expected an output with the {count} elements of the input, found {} of shape {:?}",
        to.dtype().name().unwrap_or("an unknown dtype"),
        to.dims()
    );
    let count = bytes;
    let is_contiguous = from.strides().is_empty() && to.strides().is_empty();
    ensure!(is_contiguous, invalid_argument, "expected contiguous operands, found ones with strides");
    let (from, to) = (operand_address(from, count, size)?.cast_const(), operand_address(to, count, size)?);
    if from == to.cast_const() {
        return Ok(());
    }
    // SAFETY: as for `element_bytes` and `element_bytes_mut`; an output that is not the input's memory does not overlap it.
    let (from, to) = unsafe {
        (std::slice::from_raw_parts(from, count * size), std::slice::from_raw_parts_mut(to, count * size))
    };
    for_parallel_pieces(cpu, to, 1, |begin, to| to.copy_from_slice(&from[begin..begin + to.len()]));
    Ok(())
}

/// Splits a slice into pieces and calls `body(first, piece)` for each, on several threads if that pays. A piece is a whole number
/// of units; `first` is the index of its first unit.
pub fn for_parallel_pieces<T: Send>(
    cpu: &Cpu,
    out: &mut [T],
    unit: usize,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    if unit == 0 || out.is_empty() {
        return;
    }
    let bytes = (unit * size_of::<T>()).max(1);
    let count = out.len() / unit;
    let whole = SharedSlice(out.as_mut_ptr());
    cpu.parallel_for(count, GRAIN_BYTES.div_ceil(bytes), |begin, end| {
        assert!(begin <= end && end <= count);
        // SAFETY: the range lies in the slice, and the host runs each part of the loop once, so no two pieces overlap.
        let piece =
            unsafe { std::slice::from_raw_parts_mut(whole.pointer_at(begin * unit), (end - begin) * unit) };
        body(begin, piece);
    });
}

/// The start of a slice whose disjoint parts several threads write.
struct SharedSlice<T>(*mut T);

// SAFETY: `for_parallel_pieces` passes disjoint elements to the threads, and elements are `Send`.
unsafe impl<T: Send> Sync for SharedSlice<T> {}

impl<T> SharedSlice<T> {
    /// # Safety
    ///
    /// The index is at most the length of the slice.
    unsafe fn pointer_at(&self, index: usize) -> *mut T {
        // SAFETY: as the caller vouches.
        unsafe { self.0.add(index) }
    }
}

/// The elements of an optional operand with an index dtype.
pub fn read_optional_integers(call: &KernelCall<'_>, index: usize) -> Result<Option<Vec<i64>>> {
    call.optional_input(index)?.map(|tensor| read_integers(&tensor)).transpose()
}

/// The elements of an operand with an index dtype.
pub fn read_integers(tensor: &TensorView<'_>) -> Result<Vec<i64>> {
    match tensor.dtype() {
        Dtype::I32 => Ok(typed_values::<i32>(tensor)?.iter().map(|value| i64::from(*value)).collect()),
        _ => Ok(typed_values::<i64>(tensor)?.to_vec()),
    }
}

/// The dtype and the bytes of the first element of an attribute that is a tensor.
pub fn first_attribute_element(call: &KernelCall<'_>, name: &str) -> Result<Option<(Dtype, [u8; 16])>> {
    let raw = call.as_raw();
    for index in 0..raw.attributes_count as usize {
        // SAFETY: the host promises that the list matches its count and that its items are not null.
        let attribute = unsafe { &**raw.attributes.add(index) };
        // SAFETY: the name lives as long as the call.
        let is_named = unsafe { attribute.name.text() } == Some(name);
        if !is_named || attribute.kind != abi::AttributeKind::TENSOR || attribute.tensors_count == 0 {
            continue;
        }
        // SAFETY: as above; the list has an item.
        let tensor = unsafe { &**attribute.tensors };
        let size = size_of_dtype(tensor.dtype)?;
        let address = (tensor.block.0.wrapping_add(tensor.offset)) as *const u8;
        ensure!(
            tensor.size_in_bytes >= size as u64 && !address.is_null(),
            invalid_argument,
            "expected `{name}` to hold an element, found {} bytes",
            tensor.size_in_bytes
        );
        let mut bytes = [0; 16];
        // SAFETY: the address is that of the element, which has at most 16 bytes.
        unsafe { std::ptr::copy_nonoverlapping(address, bytes.as_mut_ptr(), size) };
        return Ok(Some((tensor.dtype, bytes)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::integers_of_elements;

    #[test]
    fn elements_are_integers_where_size_and_place_fit() {
        let mut bytes = [7; 16];
        let aligned = bytes.as_ptr().align_offset(4);
        let mut integers_from = |start: usize| {
            integers_of_elements::<u32, 4>(bytes[start..][..8].as_chunks_mut().0)
                .map(|integers| integers.to_vec())
        };
        assert_eq!(integers_from(aligned), Some(vec![0x0707_0707; 2]));
        assert_eq!(integers_from(aligned + 1), None);
        assert!(integers_of_elements::<u64, 4>(&mut []).is_none());
    }
}
