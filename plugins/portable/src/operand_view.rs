//! Operands as kernels of this crate see them: bounds-checked, with explicit strides.

use oarlock_sdk::{Dtype, KernelCall, Memory, PluginError, Result, TensorView, ensure};

use crate::operand_walk::{contiguous_strides, saturating_element_count};
use crate::source::element_size;
use crate::touched_bytes::TouchedBytes;

/// Upper bound on the rank of an operand.
// With 12 dimensions and 8 strided inputs an element-wise program takes 1,016 bytes of arguments. OpenCL promises 1,024, and CUDA 4 KiB.
pub(crate) const MAX_DIMENSIONS: usize = 12;

/// An operand on the device. Its shape and strides were checked against its size, so a kernel that follows them stays in bounds.
#[derive(Clone, Debug)]
pub(crate) struct OperandView {
    pub(crate) dtype: Dtype,
    pub(crate) dims: Vec<i64>,
    /// Strides in elements.
    pub(crate) steps: Vec<i64>,
    pub(crate) count: i64,
    block: Memory,
    /// The byte range of the block that may be touched.
    begin: u64,
    end: u64,
    /// Byte offset of the first element in the block.
    offset: u64,
}

impl OperandView {
    pub(crate) fn new(tensor: &TensorView<'_>) -> Result<Self> {
        let dims = tensor.dims();
        ensure!(
            dims.len() <= MAX_DIMENSIONS,
            unimplemented,
            "expected at most {MAX_DIMENSIONS} dimensions, found {}",
            dims.len()
        );
        let count = i64::try_from(tensor.element_count()?).map_err(|_| {
            PluginError::out_of_range(format!("expected a shape that fits into memory, found {dims:?}"))
        })?;
        let steps = match tensor.strides() {
            // Nothing follows the strides of an empty operand, and those of its shape may overflow.
            _ if count == 0 => vec![0; dims.len()],
            [] => contiguous_strides(dims),
            strides => strides.to_vec(),
        };
        // Without negative strides the first element has the lowest address, so one range starting there covers the operand.
        check_strides(&steps)?;
        let (block, begin) = tensor.memory_location();
        let size = element_size(tensor.dtype());
        // Dimensions and strides come from outside and may be any numbers, so each step of the sum is checked.
        let extent = spanned_elements(dims, &steps, count).and_then(|extent| extent.checked_mul(size));
        let end = extent.and_then(|extent| begin.checked_add(extent));
        match (extent, end) {
            // This compares with the size of the tensor. The launch compares the range with the block.
            (Some(extent), Some(end)) if extent <= tensor.size_in_bytes() => Ok(Self {
                dtype: tensor.dtype(),
                dims: dims.to_vec(),
                steps,
                count,
                block,
                begin,
                end,
                offset: begin,
            }),
            _ => Err(PluginError::out_of_range(format!(
                "expected room for shape {dims:?} with steps {steps:?}, found {} bytes",
                tensor.size_in_bytes()
            ))),
        }
    }

    /// The strides that broadcast this operand to `dims`, or `None` if the shapes do not fit.
    pub(crate) fn broadcast_strides(&self, dims: &[i64]) -> Option<Vec<i64>> {
        let missing = dims.len().checked_sub(self.dims.len())?;
        // A step of 0 reads the same element again, so repeating takes no copy.
        let own = self.dims.iter().zip(&self.steps).zip(&dims[missing..]);
        let fitted = own.map(|((own, step), dim)| match own {
            own if own == dim => Some(*step),
            1 => Some(0),
            _ => None,
        });
        std::iter::repeat_n(Some(0), missing).chain(fitted).collect()
    }

    /// The block and byte range, from which the first of an operand's two arguments is made.
    pub(crate) fn touched_bytes(&self) -> TouchedBytes {
        TouchedBytes { block: self.block, begin: self.begin, end: self.end }
    }

    /// Byte offset of the first element, the second of an operand's two arguments.
    pub(crate) fn byte_offset(&self) -> u64 {
        self.offset
    }

    /// An upper bound on element indices, which decides between 32- and 64-bit arithmetic.
    pub(crate) fn last_index(&self) -> i64 {
        // Taken from the range and not from the dimensions, so that it also bounds a subview with negative steps.
        ((self.end - self.begin) / element_size(self.dtype)) as i64
    }

    /// The same elements as unsigned integers, for kernels that only move them: fewer programs to compile, and no rounding.
    pub(crate) fn reinterpret_as_bits(self) -> Self {
        let dtype = match element_size(self.dtype) {
            1 => Dtype::U8,
            2 => Dtype::U16,
            4 => Dtype::U32,
            // No other size is left: every dtype of this crate has 1, 2, 4 or 8 bytes.
            _ => Dtype::U64,
        };
        Self { dtype, ..self }
    }

    /// A view of some elements, with `first` and `steps` relative to this view. The caller derives both from dimensions that lie
    /// inside this one, so no new check is needed.
    pub(crate) fn subview(&self, first: i64, dims: &[i64], steps: Vec<i64>) -> Self {
        // The range stays that of the whole operand. It is what the launch checks, and the subview lies in it.
        let offset = self.offset + first as u64 * element_size(self.dtype);
        Self { dims: dims.to_vec(), steps, count: saturating_element_count(dims), offset, ..*self }
    }

    /// The call's workspace as a contiguous view of `count` elements.
    pub(crate) fn from_workspace(call: &KernelCall<'_>, dtype: Dtype, count: i64) -> Result<Self> {
        let (block, begin, size) = call.workspace();
        // The host was asked for this size, but only a check keeps a kernel inside of what it gave.
        let needed = count as u64 * element_size(dtype);
        ensure!(needed <= size, invalid_argument, "expected a workspace of {needed} bytes, found {size}");
        Ok(Self {
            dtype,
            dims: vec![count],
            steps: vec![1],
            count,
            block,
            begin,
            end: begin + needed,
            offset: begin,
        })
    }

    /// The shape as three dimensions: everything before the axis, the axis, everything after it.
    pub(crate) fn split_at_axis(&self, axis: usize) -> [i64; 3] {
        [
            saturating_element_count(&self.dims[..axis]),
            self.dims[axis],
            saturating_element_count(&self.dims[axis + 1..]),
        ]
    }
}

/// Refuses negative strides.
pub(crate) fn check_strides(steps: &[i64]) -> Result<()> {
    ensure!(
        steps.iter().all(|step| *step >= 0),
        unimplemented,
        "expected strides of 0 and more, found {steps:?}"
    );
    Ok(())
}

/// Number of elements from the first through the last, gaps included.
fn spanned_elements(dims: &[i64], steps: &[i64], count: i64) -> Option<u64> {
    if count == 0 {
        // Below, a dimension of 0 would count as -1.
        return Some(0);
    }
    let last = dims
        .iter()
        .zip(steps)
        .try_fold(0i64, |last, (dim, step)| last.checked_add((dim - 1).checked_mul(*step)?))?;
    u64::try_from(last).ok()?.checked_add(1)
}
