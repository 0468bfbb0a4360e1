//! How the elements of operands correspond: broadcasts checked shapes and merges them to as few dimensions as possible.

use oarlock_sdk::{PluginError, Result, TensorView, ensure};

/// The maximum number of operands, including the output, which comes last.
pub(super) const MAX_OPERANDS: usize = 9;

/// Dimensions that are held without a heap allocation.
const INLINE_AXES: usize = 6;

/// One dimension of all operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LoopAxis {
    pub(super) size: usize,
    /// The stride of each operand in elements; 0 where an input is broadcast.
    pub(super) steps: [usize; MAX_OPERANDS],
}

/// The dimensions that remain after merging, the innermost first. None has size 1, and a single element has none.
#[derive(Debug)]
pub(super) struct IterationSpace {
    inline: [LoopAxis; INLINE_AXES],
    heap: Vec<LoopAxis>,
    length: usize,
}

/// The shape of an operand, with strides in elements; no strides if it is contiguous.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperandShape<'a> {
    pub(super) dims: &'a [i64],
    pub(super) strides: &'a [i64],
}

impl<'a> OperandShape<'a> {
    pub(super) fn from_tensor(tensor: &TensorView<'a>) -> Self {
        Self { dims: tensor.dims(), strides: tensor.strides() }
    }

    /// The number of elements from the first to past the last, gaps included.
    pub(super) fn element_span(&self) -> Result<usize> {
        let size = |dim: &i64| usize::try_from(*dim).ok();
        let dims = self.dims.iter().map(size);
        let extent = if self.dims.contains(&0) {
            // Nothing is read, but negative sizes are refused all the same.
            dims.clone().try_fold(0, |_, dim| dim.map(|_| 0))
        } else if self.strides.is_empty() {
            dims.clone().try_fold(1usize, |count, dim| count.checked_mul(dim?))
        } else {
            dims.zip(self.strides.iter().map(size)).try_fold(1usize, |extent, (dim, stride)| {
                extent.checked_add((dim? - 1).checked_mul(stride?)?)
            })
        };
        // Elements have up to 16 bytes, so the size in bytes fits as well.
        extent.filter(|extent| *extent <= isize::MAX as usize / 16).ok_or_else(|| {
            let Self { dims, strides } = self;
            PluginError::out_of_range(format!(
                "expected dimensions that fit into memory and strides that are not negative, found {dims:?} and {strides:?}"
            ))
        })
    }
}

impl IterationSpace {
    /// The iteration space of operands, the output last; the inputs must broadcast to exactly its shape.
    ///
    /// The spans of the operands must have been computed before, so that no product of dimensions overflows.
    pub(super) fn new(operands: &[OperandShape<'_>]) -> Result<Self> {
        let mut plan = Self { inline: [LoopAxis::default(); INLINE_AXES], heap: Vec::new(), length: 0 };
        let Some((output, inputs)) = operands.split_last() else { return Ok(plan) };
        let rank = output.dims.len();
        ensure_broadcast(inputs.iter().map(|input| input.dims.len()).max() == Some(rank), operands)?;
        // Beside a dimension of 0, the product of the others may overflow.
        let is_empty = output.dims.contains(&0);
        let mut contiguous = [1; MAX_OPERANDS];
        for back in 1..=rank {
            let size = output.dims[rank - back] as usize;
            let mut axis = LoopAxis { size, steps: [0; MAX_OPERANDS] };
            let mut has_size = false;
            for (index, operand) in operands.iter().enumerate() {
                let Some(at) = operand.dims.len().checked_sub(back) else { continue };
                let dim = operand.dims[at] as usize;
                ensure_broadcast(dim == size || dim == 1, operands)?;
                has_size |= dim == size && index < inputs.len();
                if dim != 1 {
                    axis.steps[index] =
                        operand.strides.get(at).map_or(contiguous[index], |stride| *stride as usize);
                }
                // This wraps only where it is not used: beside a dimension of 0, or if strides are given.
                contiguous[index] = contiguous[index].wrapping_mul(dim);
            }
            // A dimension of the output comes from an input, and is not merely allowed by all of them.
            ensure_broadcast(has_size, operands)?;
            if !is_empty {
                plan.push_axis(axis);
            }
        }
        if is_empty {
            plan.push_axis(LoopAxis::default());
        }
        Ok(plan)
    }

    /// The dimensions, the innermost first.
    pub(super) fn axes(&self) -> &[LoopAxis] {
        if self.heap.is_empty() { &self.inline[..self.length] } else { &self.heap }
    }

    pub(super) fn element_count(&self) -> usize {
        self.axes().iter().map(|axis| axis.size).product()
    }

    /// Adds the next outer dimension. It is merged into the last one if all operands continue where that ends: inner loops get
    /// longer.
    fn push_axis(&mut self, axis: LoopAxis) {
        if axis.size == 1 {
            return;
        }
        if self.length > 0 {
            let last = if self.heap.is_empty() {
                &mut self.inline[self.length - 1]
            } else {
                &mut self.heap[self.length - 1]
            };
            let goes_on = |(next, step): (&usize, &usize)| *next == step.wrapping_mul(last.size);
            if axis.steps.iter().zip(&last.steps).all(goes_on) {
                last.size *= axis.size;
                return;
            }
        }
        if self.length == INLINE_AXES {
            self.heap = self.inline.to_vec();
        }
        if self.length < INLINE_AXES {
            self.inline[self.length] = axis;
        } else {
            self.heap.push(axis);
        }
        self.length += 1;
    }
}

fn ensure_broadcast(condition: bool, operands: &[OperandShape<'_>]) -> Result<()> {
    if condition { Ok(()) } else { Err(broadcast_error(operands)) }
}

#[cold]
fn broadcast_error(operands: &[OperandShape<'_>]) -> PluginError {
    let mut shapes: Vec<String> = operands.iter().map(|operand| format!("{:?}", operand.dims)).collect();
    let output = shapes.pop().unwrap_or_default();
    let inputs = shapes.join(" and ");
    PluginError::invalid_argument(format!(
        "expected inputs that broadcast to the output's shape {output}, found shapes {inputs}"
    ))
}

/// Checks that an operand has the dtype that the kernel was prepared for.
pub(super) fn ensure_dtype(tensor: &TensorView<'_>, dtype: oarlock_sdk::Dtype) -> Result<()> {
    ensure!(
        tensor.dtype() == dtype,
        invalid_argument,
        "expected elements of {}, as the kernel was prepared for, found {}",
        dtype.name().unwrap_or("?"),
        tensor.dtype().name().unwrap_or("something unknown")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged_axes(operands: &[(&[i64], &[i64])]) -> Result<Vec<(usize, Vec<usize>)>> {
        let shapes: Vec<_> = operands.iter().map(|(dims, strides)| OperandShape { dims, strides }).collect();
        let plan = IterationSpace::new(&shapes)?;
        Ok(plan.axes().iter().map(|axis| (axis.size, axis.steps[..shapes.len()].to_vec())).collect())
    }

    #[test]
    fn contiguous_operands_become_one_dimension() {
        let shape: (&[i64], &[i64]) = (&[2, 3, 4], &[]);
        assert_eq!(merged_axes(&[shape, shape]).unwrap(), [(24, vec![1, 1])]);
    }

    #[test]
    fn a_repeated_dimension_has_no_step() {
        let found = merged_axes(&[(&[2, 3, 4], &[]), (&[3, 1], &[]), (&[2, 3, 4], &[])]).unwrap();
        assert_eq!(found, [(4, vec![1, 0, 1]), (3, vec![4, 1, 4]), (2, vec![12, 0, 12])]);
    }

    #[test]
    fn strides_are_kept_and_merged_where_they_go_on() {
        let found = merged_axes(&[(&[2, 3, 4], &[1, 8, 2]), (&[2, 3, 4], &[])]).unwrap();
        assert_eq!(found, [(12, vec![2, 1]), (2, vec![1, 12])]);
    }

    #[test]
    fn many_dimensions_that_cannot_be_merged_are_kept() {
        let dims = [2i64; 9];
        let strides: Vec<i64> = (0..9).map(|axis| 1 << axis).collect();
        assert_eq!(merged_axes(&[(&dims, &strides), (&dims, &[])]).unwrap().len(), 9);
    }

    #[test]
    fn shapes_that_do_not_make_up_the_output_are_refused() {
        for (inputs, output) in
            [([&[3i64][..], &[2]], &[3i64][..]), ([&[1], &[1]], &[2]), ([&[2], &[2]], &[1, 2])]
        {
            let operands = [(inputs[0], &[][..]), (inputs[1], &[][..]), (output, &[][..])];
            let error = merged_axes(&operands).unwrap_err();
            assert!(error.message().contains(&format!("{output:?}")), "{error}");
        }
    }

    #[test]
    fn an_extent_counts_gaps_and_refuses_negative_strides() {
        let extent = |dims, strides| OperandShape { dims, strides }.element_span();
        assert_eq!(extent(&[2, 3], &[10, 2]).unwrap(), 15);
        assert_eq!(extent(&[2, 0], &[10, 2]).unwrap(), 0);
        assert!(extent(&[2], &[-1]).is_err());
        assert!(extent(&[i64::MAX, 4], &[]).is_err());
        assert!(extent(&[-1], &[]).is_err());
    }
}
