//! Resolves axes, which attributes count from either end, to the layout that kernels need.

use oarlock_sdk::shape::{element_count, resolve_axis};
use oarlock_sdk::{Result, ensure};

/// The number of elements before, along and after an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisLayout {
    pub outer: usize,
    pub length: usize,
    pub inner: usize,
}

impl AxisLayout {
    pub fn new(dims: &[i64], axis: i64) -> Result<Self> {
        let axis = resolve_axis(axis, dims.len())?;
        Ok(Self {
            outer: element_count(&dims[..axis])?,
            length: element_count(&dims[axis..=axis])?,
            inner: element_count(&dims[axis + 1..])?,
        })
    }

    /// All dimensions from `axis` on as a single axis. `axis` may be one past the last dimension.
    pub fn from_flattened(dims: &[i64], axis: i64) -> Result<Self> {
        let axis = if axis == dims.len() as i64 { dims.len() } else { resolve_axis(axis, dims.len())? };
        Ok(Self { outer: element_count(&dims[..axis])?, length: element_count(&dims[axis..])?, inner: 1 })
    }

    pub fn line_count(&self) -> usize {
        self.outer * self.inner
    }
}

/// For each dimension, true if it is among the axes. Duplicate axes are an error.
pub fn axes_mask(axes: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut mask = vec![false; rank];
    for axis in axes {
        let dimension = &mut mask[resolve_axis(*axis, rank)?];
        ensure!(!*dimension, invalid_argument, "expected each axis once, found {axes:?}");
        *dimension = true;
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_axis_counts_from_the_end() {
        assert_eq!(AxisLayout::new(&[2, 3, 4], -2).unwrap(), AxisLayout { outer: 2, length: 3, inner: 4 });
        assert_eq!(
            AxisLayout::from_flattened(&[2, 3, 4], 1).unwrap(),
            AxisLayout { outer: 2, length: 12, inner: 1 }
        );
    }

    #[test]
    fn axes_outside_of_the_shape_are_refused() {
        for axis in [3, -4, i64::MIN, i64::MAX] {
            let error = AxisLayout::new(&[2, 3, 4], axis).unwrap_err();
            assert!(error.message().contains(&axis.to_string()), "{error}");
        }
        assert!(axes_mask(&[0, -3], 3).unwrap_err().message().contains("once"));
    }
}
