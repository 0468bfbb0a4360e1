//! Arrays whose dimensions have labels.

use oarlock_sdk::{Error, Result};

use super::super::too_small;
use super::equation::Label;
use crate::gemm::{Matrix, Number, Product, Scratch, Side, Sizes, Team};
use crate::kernels::rows::room::{filled, room_for};

/// An array; each label stands for one dimension.
pub(super) struct Labelled<T> {
    axes: Vec<Axis>,
    values: Vec<T>,
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    label: Label,
    size: usize,
    stride: usize,
}

impl<T: Number> Labelled<T> {
    /// A contiguous array. A label that is there twice means the diagonal; a dimension of 1 whose label has another size
    /// elsewhere is repeated, and since that needs no dimension it loses its label.
    pub(super) fn new(values: Vec<T>, dims: &[i64], labels: &[Label], size: impl Fn(Label) -> usize) -> Self {
        let mut axes: Vec<Axis> = Vec::new();
        // Of an array without elements a stride may be larger than numbers go.
        let mut stride = 1usize;
        for (label, dim) in labels.iter().zip(dims).rev() {
            if *dim != 1 || size(*label) == 1 {
                match axes.iter_mut().find(|axis| axis.label == *label) {
                    Some(axis) => axis.stride = axis.stride.saturating_add(stride),
                    None => axes.push(Axis { label: *label, size: *dim as usize, stride }),
                }
            }
            stride = stride.saturating_mul(*dim as usize);
        }
        Self { axes, values }
    }

    fn axis(&self, label: Label) -> Option<Axis> {
        self.axes.iter().copied().find(|axis| axis.label == label)
    }

    /// The values in the order of some labels, summed over all others. A label that is not the array's is repeated nowhere.
    pub(super) fn summed_to(&self, order: &[Label]) -> Result<Vec<T>> {
        let kept: Vec<_> = order.iter().filter_map(|label| self.axis(*label)).collect();
        let summed: Vec<_> = self.axes.iter().copied().filter(|axis| !order.contains(&axis.label)).collect();
        let count = size_of(&kept)?;
        let mut sums = room_for(count)?;
        each_offset(&kept, 0, &mut |start| {
            let mut sum = T::default();
            each_offset(&summed, start, &mut |offset| sum = sum.plus(self.values[offset]));
            sums.push(sum);
        });
        Ok(sums)
    }

    /// The product of two arrays, summed over the labels that nothing after needs.
    pub(super) fn contracted(
        &self,
        other: &Self,
        is_needed: &dyn Fn(Label) -> bool,
        team: &dyn Team,
    ) -> Result<Self> {
        let own = |array: &Self, others: &Self| -> Vec<Axis> {
            let alone = |axis: &Axis| others.axis(axis.label).is_none() && is_needed(axis.label);
            array.axes.iter().copied().filter(alone).collect()
        };
        let (rows, columns) = (own(self, other), own(other, self));
        let both = self.axes.iter().copied().filter(|axis| other.axis(axis.label).is_some());
        let (batch, depth): (Vec<_>, Vec<_>) = both.partition(|axis| is_needed(axis.label));
        let labels =
            |parts: [&[Axis]; 3]| -> Vec<Label> { parts.concat().iter().map(|axis| axis.label).collect() };
        let left = self.summed_to(&labels([&batch, &rows, &depth]))?;
        let right = other.summed_to(&labels([&batch, &depth, &columns]))?;
        let sizes = Sizes {
            items: size_of(&batch)?,
            rows: size_of(&rows)?,
            columns: size_of(&columns)?,
            depth: size_of(&depth)?,
        };
        let axes = contiguous([batch, rows, columns].concat());
        let count = size_of(&axes)?;
        let mut values = filled(T::default(), count)?;
        if values.is_empty() {
            return Ok(Self { axes, values });
        }
        let starts = |step: usize| (0..sizes.items).map(|item| item * step).collect();
        let left =
            Matrix::new(&left, starts(sizes.rows * sizes.depth), (sizes.rows, sizes.depth), (sizes.depth, 1));
        let steps = (sizes.depth, sizes.columns);
        let right = Matrix::new(&right, starts(sizes.depth * sizes.columns), (sizes.columns, 1), steps);
        let (left, right) = left.zip(right).ok_or_else(too_small)?;
        let (left, right) = (Side::Operand(&left), Side::Operand(&right));
        let output = Some(&mut values[..]);
        Product { sizes, left, right, output, finish: None }.compute(team, &mut Scratch::none());
        Ok(Self { axes, values })
    }
}

fn contiguous(mut axes: Vec<Axis>) -> Vec<Axis> {
    let mut stride = 1usize;
    for axis in axes.iter_mut().rev() {
        axis.stride = stride;
        stride = stride.saturating_mul(axis.size);
    }
    axes
}

fn size_of(axes: &[Axis]) -> Result<usize> {
    let is_empty = axes.iter().any(|axis| axis.size == 0);
    let size = axes.iter().try_fold(1usize, |size, axis| size.checked_mul(axis.size));
    let size = if is_empty { Some(0) } else { size };
    size.filter(|size| *size <= isize::MAX as usize / 16).ok_or_else(|| {
        Error::resource_exhausted("expected an equation whose products fit into memory, found a larger one")
    })
}

/// Calls `body` with where each element of some axes lies.
fn each_offset(axes: &[Axis], start: usize, body: &mut dyn FnMut(usize)) {
    match axes {
        // The other dimensions of nothing may be so long that nobody could go through them.
        _ if axes.iter().any(|axis| axis.size == 0) => {}
        [] => body(start),
        [axis, rest @ ..] => {
            for index in 0..axis.size {
                each_offset(rest, start + index * axis.stride, body);
            }
        }
    }
}
