//! Arrays with labeled dimensions.
use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{BatchedGemm, GemmElement, GemmOperand, GemmShape, ScratchBuffer, StridedMatrix};
use oarlock_sdk::{PluginError, Result};

use super::super::operand_size_error;
use super::equation::AxisLabel;

/// An array whose dimensions are identified by labels.
pub(super) struct LabeledArray<T> {
    axes: Vec<LabeledAxis>,
    values: Vec<T>,
}

#[derive(Clone, Copy, Debug)]
struct LabeledAxis {
    label: AxisLabel,
    size: usize,
    stride: usize,
}

impl<T: GemmElement> LabeledArray<T> {
    /// A contiguous array. A repeated label selects the diagonal. A dimension of size 1 whose label has another size elsewhere
    /// broadcasts; it needs no stride, so it is dropped.
    pub(super) fn new(
        values: Vec<T>,
        dims: &[i64],
        labels: &[AxisLabel],
        size: impl Fn(AxisLabel) -> usize,
    ) -> Self {
        let mut axes: Vec<LabeledAxis> = Vec::new();
        // In an array without elements, a stride could overflow.
        let mut stride = 1usize;
        for (label, dim) in labels.iter().zip(dims).rev() {
            if *dim != 1 || size(*label) == 1 {
                match axes.iter_mut().find(|axis| axis.label == *label) {
                    Some(axis) => axis.stride = axis.stride.saturating_add(stride),
                    None => axes.push(LabeledAxis { label: *label, size: *dim as usize, stride }),
                }
            }
            stride = stride.saturating_mul(*dim as usize);
        }
        Self { axes, values }
    }

    fn find_axis(&self, label: AxisLabel) -> Option<LabeledAxis> {
        self.axes.iter().copied().find(|axis| axis.label == label)
    }

    /// The values, transposed to the order of these labels and summed over all others. Labels that the array lacks are ignored.
    pub(super) fn sum_to(&self, order: &[AxisLabel]) -> Result<Vec<T>> {
        let kept: Vec<_> = order.iter().filter_map(|label| self.find_axis(*label)).collect();
        let summed: Vec<_> = self.axes.iter().copied().filter(|axis| !order.contains(&axis.label)).collect();
        let count = axes_size(&kept)?;
        let mut sums = try_reserve_vec(count)?;
        for_each_offset(&kept, 0, &mut |start| {
            let mut sum = T::default();
            for_each_offset(&summed, start, &mut |offset| sum = sum.plus(self.values[offset]));
            sums.push(sum);
        });
        Ok(sums)
    }

    /// The product of two arrays, summed over the labels that are not needed later.
    pub(super) fn contract_with(
        &self,
        other: &Self,
        is_needed: &dyn Fn(AxisLabel) -> bool,
        team: &dyn ThreadTeam,
    ) -> Result<Self> {
        let own = |array: &Self, others: &Self| -> Vec<LabeledAxis> {
            let alone = |axis: &LabeledAxis| others.find_axis(axis.label).is_none() && is_needed(axis.label);
            array.axes.iter().copied().filter(alone).collect()
        };
        let (rows, columns) = (own(self, other), own(other, self));
        let both = self.axes.iter().copied().filter(|axis| other.find_axis(axis.label).is_some());
        // Of the common labels, those that are needed later become the batch, and the others are summed as the depth.
        let (batch, depth): (Vec<_>, Vec<_>) = both.partition(|axis| is_needed(axis.label));
        let labels = |parts: [&[LabeledAxis]; 3]| -> Vec<AxisLabel> {
            parts.concat().iter().map(|axis| axis.label).collect()
        };
        // Transposed so that both operands are contiguous batches of row-major matrices.
        let left = self.sum_to(&labels([&batch, &rows, &depth]))?;
        let right = other.sum_to(&labels([&batch, &depth, &columns]))?;
        let sizes = GemmShape {
            items: axes_size(&batch)?,
            rows: axes_size(&rows)?,
            columns: axes_size(&columns)?,
            depth: axes_size(&depth)?,
        };
        let axes = merge_contiguous([batch, rows, columns].concat());
        let count = axes_size(&axes)?;
        let mut values = try_filled_vec(T::default(), count)?;
        if values.is_empty() {
            return Ok(Self { axes, values });
        }
        let starts = |step: usize| (0..sizes.items).map(|item| item * step).collect();
        let left = StridedMatrix::new(
            &left,
            starts(sizes.rows * sizes.depth),
            (sizes.rows, sizes.depth),
            (sizes.depth, 1),
        );
        let steps = (sizes.depth, sizes.columns);
        let right =
            StridedMatrix::new(&right, starts(sizes.depth * sizes.columns), (sizes.columns, 1), steps);
        let (left, right) = left.zip(right).ok_or_else(operand_size_error)?;
        let (left, right) = (GemmOperand::Operand(&left), GemmOperand::Operand(&right));
        let output = Some(&mut values[..]);
        BatchedGemm { sizes, left, right, output, epilogue: None }
            .compute(team, &mut ScratchBuffer::without_workspace());
        Ok(Self { axes, values })
    }
}

fn merge_contiguous(mut axes: Vec<LabeledAxis>) -> Vec<LabeledAxis> {
    let mut stride = 1usize;
    for axis in axes.iter_mut().rev() {
        axis.stride = stride;
        stride = stride.saturating_mul(axis.size);
    }
    axes
}

fn axes_size(axes: &[LabeledAxis]) -> Result<usize> {
    let is_empty = axes.iter().any(|axis| axis.size == 0);
    let size = axes.iter().try_fold(1usize, |size, axis| size.checked_mul(axis.size));
    let size = if is_empty { Some(0) } else { size };
    size.filter(|size| *size <= isize::MAX as usize / 16).ok_or_else(|| {
        PluginError::resource_exhausted(
            "expected an equation whose products fit into memory, found a larger one",
        )
    })
}

/// Calls `body` with the offset of each element along some axes.
fn for_each_offset(axes: &[LabeledAxis], start: usize, body: &mut dyn FnMut(usize)) {
    match axes {
        // With an empty axis there are no elements, but the other axes could be too long to iterate over.
        _ if axes.iter().any(|axis| axis.size == 0) => {}
        [] => body(start),
        [axis, rest @ ..] => {
            for index in 0..axis.size {
                for_each_offset(rest, start + index * axis.stride, body);
            }
        }
    }
}
