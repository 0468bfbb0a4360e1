//! Operands as kernels of this crate look at them: checked, with the steps between their elements.

use oarlock_sdk::{Dtype, KernelCall, Memory, PluginError, Result, TensorView, ensure};

use crate::argument_list::TouchedBytes;
use crate::operand_walk::{contiguous_strides, element_count};
use crate::source::element_size;

/// The most dimensions of an operand.
pub(crate) const MAX_DIMENSIONS: usize = 12;

/// An operand on the device: its shape and steps fit into its bytes, so a kernel that follows them stays inside.
#[derive(Clone, Debug)]
pub(crate) struct OperandView {
    pub(crate) dtype: Dtype,
    pub(crate) dims: Vec<i64>,
    /// Elements from one index to the next along each dimension.
    pub(crate) steps: Vec<i64>,
    pub(crate) count: i64,
    block: Memory,
    /// The bytes that may be touched.
    begin: u64,
    end: u64,
    /// Where the first element lies.
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
            _ if count == 0 => vec![0; dims.len()],
            [] => contiguous_strides(dims),
            strides => strides.to_vec(),
        };
        check_strides(&steps)?;
        let (block, begin) = tensor.memory_location();
        let size = element_size(tensor.dtype());
        let extent = spanned_elements(dims, &steps, count).and_then(|extent| extent.checked_mul(size));
        let end = extent.and_then(|extent| begin.checked_add(extent));
        match (extent, end) {
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

    /// The steps that repeat this operand along `dims`, as ONNX broadcasts, or none if it does not fit.
    pub(crate) fn broadcast_strides(&self, dims: &[i64]) -> Option<Vec<i64>> {
        let missing = dims.len().checked_sub(self.dims.len())?;
        let own = self.dims.iter().zip(&self.steps).zip(&dims[missing..]);
        let fitted = own.map(|((own, step), dim)| match own {
            own if own == dim => Some(*step),
            1 => Some(0),
            _ => None,
        });
        std::iter::repeat_n(Some(0), missing).chain(fitted).collect()
    }

    /// What is touched, as the first of the two arguments an operand takes.
    pub(crate) fn touched_bytes(&self) -> TouchedBytes {
        TouchedBytes { block: self.block, begin: self.begin, end: self.end }
    }

    /// Where the first element lies in the block.
    pub(crate) fn byte_offset(&self) -> u64 {
        self.offset
    }

    /// The largest index of an element.
    pub(crate) fn last_index(&self) -> i64 {
        ((self.end - self.begin) / element_size(self.dtype)) as i64
    }

    /// The same elements as bits, for kernels that move them only: fewer programs, and no rounding.
    pub(crate) fn reinterpret_as_bits(self) -> Self {
        let dtype = match element_size(self.dtype) {
            1 => Dtype::U8,
            2 => Dtype::U16,
            4 => Dtype::U32,
            _ => Dtype::U64,
        };
        Self { dtype, ..self }
    }

    /// A part of the elements: the `first`, counted from this one's, and what follows by `steps`. The caller computes both
    /// from dimensions that fit into this.
    pub(crate) fn subview(&self, first: i64, dims: &[i64], steps: Vec<i64>) -> Self {
        let offset = self.offset + first as u64 * element_size(self.dtype);
        Self { dims: dims.to_vec(), steps, count: element_count(dims), offset, ..*self }
    }

    /// Contiguous scratch memory of the call, as `count` elements.
    pub(crate) fn from_workspace(call: &KernelCall<'_>, dtype: Dtype, count: i64) -> Result<Self> {
        let (block, begin, size) = call.workspace();
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

    /// Three dimensions: everything before an axis, the axis, everything behind it.
    pub(crate) fn split_at_axis(&self, axis: usize) -> [i64; 3] {
        [element_count(&self.dims[..axis]), self.dims[axis], element_count(&self.dims[axis + 1..])]
    }
}

/// Refuses to go backwards.
pub(crate) fn check_strides(steps: &[i64]) -> Result<()> {
    ensure!(
        steps.iter().all(|step| *step >= 0),
        unimplemented,
        "expected strides of 0 and more, found {steps:?}"
    );
    Ok(())
}

/// How many elements lie between the first and past the last, gaps included.
fn spanned_elements(dims: &[i64], steps: &[i64], count: i64) -> Option<u64> {
    if count == 0 {
        return Some(0);
    }
    let last = dims
        .iter()
        .zip(steps)
        .try_fold(0i64, |last, (dim, step)| last.checked_add((dim - 1).checked_mul(*step)?))?;
    u64::try_from(last).ok()?.checked_add(1)
}
