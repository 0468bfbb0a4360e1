//! Shapes: dimensions as `usize`, axes, and whether an output has the shape that the op says.

use oarlock_sdk::{Error, Result, Tensor, ensure};

/// The dimensions of an operand, whose product fits into memory.
pub(super) fn dims(tensor: &Tensor<'_>) -> Result<Vec<usize>> {
    tensor.element_count()?;
    let dim = |dim: &i64| {
        usize::try_from(*dim)
            .map_err(|_| Error::invalid_argument(format!("expected dimensions of 0 or more, found {dim}")))
    };
    tensor.dims().iter().map(dim).collect()
}

/// How many elements a shape has.
pub(super) fn count(dims: &[usize]) -> Result<usize> {
    let product = dims.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim));
    // An empty dimension makes the count 0, wherever the product of those before it stood.
    let product = if dims.contains(&0) { Some(0) } else { product };
    product.ok_or_else(|| {
        Error::resource_exhausted(format!("expected a shape that fits into memory, found {dims:?}"))
    })
}

/// An axis that may count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize> {
    index(axis, rank).ok_or_else(|| {
        Error::out_of_range(format!("expected an axis from -{rank} to {rank} (exclusive), found {axis}"))
    })
}

/// Different axes that may count from the end.
pub(super) fn axes(given: &[i64], rank: usize) -> Result<Vec<usize>> {
    let axes = given.iter().map(|one| axis(*one, rank)).collect::<Result<Vec<_>>>()?;
    let mut seen = vec![false; rank];
    for axis in &axes {
        ensure!(!seen[*axis], invalid_argument, "expected different axes, found {given:?}");
        seen[*axis] = true;
    }
    Ok(axes)
}

/// An index that may count from the end, if it is one of `count`.
pub(super) fn index(index: i64, count: usize) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(count as i64)? } else { index };
    usize::try_from(from_start).ok().filter(|index| *index < count)
}

/// Checks the shape of an output.
pub(super) fn expect(output: &Tensor<'_>, name: &str, expected: &[usize]) -> Result<()> {
    let found = dims(output)?;
    ensure!(
        found == expected,
        invalid_argument,
        "expected `{name}` to have the shape {expected:?}, found {found:?}"
    );
    Ok(())
}

/// Checks how many items a list of integers has.
pub(super) fn expect_length(list: &[i64], name: &str, expected: usize) -> Result<()> {
    let found = list.len();
    ensure!(found == expected, invalid_argument, "expected {expected} items in `{name}`, found {found}");
    Ok(())
}

/// The strides of a contiguous tensor, in elements.
pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis].max(1));
    }
    strides
}

/// Where a contiguous tensor is cut by an axis: elements before, along, and after it. Of a tensor without elements a part
/// may be larger than numbers go.
pub(super) fn around(dims: &[usize], axis: usize) -> (usize, usize, usize) {
    let size = |dims: &[usize]| dims.iter().fold(1, |size: usize, dim| size.saturating_mul(*dim));
    (size(&dims[..axis]), dims[axis], size(&dims[axis + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_from_the_end_too() {
        assert_eq!(index(-1, 3), Some(2));
        assert_eq!(index(3, 3), None);
        assert_eq!(index(i64::MIN, 3), None);
        assert_eq!(axes(&[-1, 0], 2).unwrap(), [1, 0]);
    }

    #[test]
    fn an_axis_named_twice_is_refused() {
        assert!(axes(&[1, -1], 2).unwrap_err().message().contains("different axes"));
    }
}
