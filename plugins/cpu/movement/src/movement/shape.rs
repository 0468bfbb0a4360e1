//! Shapes: dimensions as `usize`, axes, and checks of output shapes.

use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{PluginError, Result, TensorView, ensure};

/// The dimensions of an operand, whose product fits into memory.
pub(super) fn shape_dims(tensor: &TensorView<'_>) -> Result<Vec<usize>> {
    tensor.element_count()?;
    let dim = |dim: &i64| {
        usize::try_from(*dim).map_err(|_| {
            PluginError::invalid_argument(format!("expected dimensions of 0 or more, found {dim}"))
        })
    };
    tensor.dims().iter().map(dim).collect()
}

pub(super) fn element_count(dims: &[usize]) -> Result<usize> {
    let product = dims.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim));
    // An empty dimension makes the count 0, even if the product before it overflowed.
    let product = if dims.contains(&0) { Some(0) } else { product };
    product.ok_or_else(|| {
        PluginError::resource_exhausted(format!("expected a shape that fits into memory, found {dims:?}"))
    })
}

/// Resolves axes that may count from the end and must differ.
pub(super) fn resolve_axes(given: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = given.iter().map(|one| resolve_axis(*one, rank)).collect::<Result<Vec<_>>>()?;
    let mut seen = vec![false; rank];
    for axis in &axes {
        ensure!(!seen[*axis], invalid_argument, "expected different axes, found {given:?}");
        seen[*axis] = true;
    }
    Ok(axes)
}

/// Resolves an index that may count from the end; `None` if it is out of bounds.
pub(super) fn resolve_index(index: i64, count: usize) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(count as i64)? } else { index };
    usize::try_from(from_start).ok().filter(|index| *index < count)
}

pub(super) fn expect_shape(output: &TensorView<'_>, name: &str, expected: &[usize]) -> Result<()> {
    let found = shape_dims(output)?;
    ensure!(
        found == expected,
        invalid_argument,
        "expected `{name}` to have the shape {expected:?}, found {found:?}"
    );
    Ok(())
}

pub(super) fn expect_length(list: &[i64], name: &str, expected: usize) -> Result<()> {
    let found = list.len();
    ensure!(found == expected, invalid_argument, "expected {expected} items in `{name}`, found {found}");
    Ok(())
}

/// The strides of a contiguous tensor, in elements.
pub(super) fn contiguous_strides(dims: &[usize]) -> Vec<usize> {
    // In a tensor without elements strides may be anything, so they saturate instead of overflowing.
    let mut strides = vec![1usize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis].max(1));
    }
    strides
}

/// The number of elements before, along and after an axis. In a tensor without elements, one of them may exceed the range of
/// numbers.
pub(super) fn split_at_axis(dims: &[usize], axis: usize) -> (usize, usize, usize) {
    let size = |dims: &[usize]| dims.iter().fold(1, |size: usize, dim| size.saturating_mul(*dim));
    (size(&dims[..axis]), dims[axis], size(&dims[axis + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_from_the_end_too() {
        assert_eq!(resolve_index(-1, 3), Some(2));
        assert_eq!(resolve_index(3, 3), None);
        assert_eq!(resolve_index(i64::MIN, 3), None);
        assert_eq!(resolve_axes(&[-1, 0], 2).unwrap(), [1, 0]);
    }

    #[test]
    fn an_axis_named_twice_is_refused() {
        assert!(resolve_axes(&[1, -1], 2).unwrap_err().message().contains("different axes"));
    }
}
