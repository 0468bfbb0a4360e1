//! The layout of a reduction: which dimensions are kept and which are reduced, as few of each as possible.

use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_sdk::shape;
use oarlock_sdk::{Result, ensure};

/// A dimension: its size and its stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReduceDimension {
    length: usize,
    step: usize,
}

/// Nested dimensions, the innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DimensionNest(Vec<ReduceDimension>);

impl DimensionNest {
    pub(super) fn combination_count(&self) -> usize {
        self.0.iter().map(|dimension| dimension.length).product()
    }

    pub(super) fn combination_offset(&self, mut combination: usize) -> usize {
        let mut offset = 0;
        for dimension in self.0.iter().rev() {
            offset += combination % dimension.length * dimension.step;
            combination /= dimension.length;
        }
        offset
    }

    /// The distance from a combination to the next one, and the number of combinations from this one on that are that far apart.
    pub(super) fn uniform_run(&self, combination: usize) -> (usize, usize) {
        // The only combination of no dimensions has none after it.
        self.0.last().map_or((usize::MAX, 1), |last| (last.step, last.length - combination % last.length))
    }
}

/// The kept and the reduced dimensions of an input. Neighbors of one kind are merged, and those of size 1 left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReduceShape {
    pub(super) kept: DimensionNest,
    pub(super) reduced: DimensionNest,
    /// The number of contiguous elements: the size of the last dimension, which is in neither nest.
    pub(super) last: usize,
    pub(super) last_is_reduced: bool,
    /// The number of elements that become one.
    pub(crate) share: usize,
}

impl ReduceShape {
    pub(crate) fn new(dims: &[i64], is_reduced: &[bool]) -> Result<Self> {
        shape::element_count(dims)?;
        let share: Vec<i64> =
            dims.iter().zip(is_reduced).filter(|pair| *pair.1).map(|pair| *pair.0).collect();
        // Merged, most shapes are a single kept and a single reduced dimension, with long inner loops.
        let mut merged: Vec<(usize, bool)> = Vec::new();
        for (dim, is_reduced) in dims.iter().zip(is_reduced).filter(|pair| *pair.0 != 1) {
            match merged.last_mut().filter(|last| last.1 == *is_reduced) {
                // The product of all dimensions fits, or one is 0 and nothing is walked.
                Some(last) => last.0 = last.0.saturating_mul(*dim as usize),
                None => merged.push((*dim as usize, *is_reduced)),
            }
        }
        // A scalar, or a shape of ones, is one line of one element.
        let (last, last_is_reduced) = merged.pop().unwrap_or((1, true));
        let (mut kept, mut reduced, mut step) = (DimensionNest::default(), DimensionNest::default(), last);
        for (length, is_reduced) in merged.into_iter().rev() {
            let nest = if is_reduced { &mut reduced } else { &mut kept };
            nest.0.insert(0, ReduceDimension { length, step });
            step = step.saturating_mul(length);
        }
        Ok(Self { kept, reduced, last, last_is_reduced, share: shape::element_count(&share)? })
    }

    /// The axis that is reduced, if there is only one.
    pub(super) fn single_axis(&self) -> Option<AxisLayout> {
        let (outer, last) = (self.kept.combination_count(), self.last);
        match self.reduced.0[..] {
            [] if self.last_is_reduced => Some(AxisLayout { outer, length: last, inner: 1 }),
            [ReduceDimension { length, .. }] if !self.last_is_reduced => {
                Some(AxisLayout { outer, length, inner: last })
            }
            _ => None,
        }
    }

    /// The number of elements of a group, from each multiple of this number on, that are contiguous.
    pub(crate) fn contiguous_run(&self) -> usize {
        if self.last_is_reduced { self.last } else { 1 }
    }

    /// The offset of an element of a group; a group becomes one output.
    pub(crate) fn element_offset(&self, group: usize, index: usize) -> usize {
        if self.last_is_reduced {
            return self.kept.combination_offset(group)
                + self.reduced.combination_offset(index / self.last)
                + index % self.last;
        }
        self.kept.combination_offset(group / self.last)
            + group % self.last
            + self.reduced.combination_offset(index)
    }
}

/// The output shape: without the reduced dimensions, or with 1 in their place.
pub(super) fn reduced_dims(dims: &[i64], is_reduced: &[bool], keeps_dims: bool) -> Vec<i64> {
    let pairs = dims.iter().zip(is_reduced);
    pairs.filter(|pair| keeps_dims || !pair.1).map(|pair| if *pair.1 { 1 } else { *pair.0 }).collect()
}

pub(super) fn expect_reduced_dims(
    dims: &[i64],
    is_reduced: &[bool],
    keeps_dims: bool,
    found: &[i64],
) -> Result<()> {
    let expected = reduced_dims(dims, is_reduced, keeps_dims);
    ensure!(
        found == expected,
        invalid_argument,
        "expected an output of shape {expected:?} for an input of {dims:?}, found {found:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_of_one_kind_are_merged() {
        let shape = ReduceShape::new(&[2, 3, 1, 4, 5], &[true, true, false, false, true]).unwrap();
        assert!(shape.last_is_reduced);
        assert_eq!((shape.last, shape.share), (5, 30));
        assert_eq!(shape.kept.0, [ReduceDimension { length: 4, step: 5 }]);
        assert_eq!(shape.reduced.0, [ReduceDimension { length: 6, step: 20 }]);
        assert_eq!(shape.reduced.combination_offset(5), 100);
        assert_eq!((shape.reduced.uniform_run(4), shape.kept.uniform_run(3)), ((20, 2), (5, 1)));
    }

    #[test]
    fn a_scalar_is_one_row_of_one_element() {
        let shape = ReduceShape::new(&[], &[]).unwrap();
        assert_eq!(
            (shape.last, shape.last_is_reduced, shape.share, shape.kept.combination_count()),
            (1, true, 1, 1)
        );
    }
}
