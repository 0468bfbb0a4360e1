//! Arithmetic on shapes that most kernels need. Overflow and negative dimensions are errors.

use crate::{PluginError, Result};

/// The number of elements of a shape: 0 if any dimension is 0, even if the product of the others overflows.
pub fn element_count(dims: &[i64]) -> Result<usize> {
    let is_empty = dims.contains(&0);
    let mut count = 1usize;
    for dim in dims {
        let size = usize::try_from(*dim).map_err(|_| {
            PluginError::invalid_argument(format!("expected dimensions of at least 0, found {dims:?}"))
        })?;
        count = match count.checked_mul(size) {
            Some(product) => product,
            None if is_empty => 0,
            None => {
                return Err(PluginError::resource_exhausted(format!(
                    "expected dimensions that fit into memory, found {dims:?}"
                )));
            }
        };
    }
    Ok(if is_empty { 0 } else { count })
}

/// The shape that shapes broadcast to, as in NumPy: aligned at the last dimension, sizes are equal, 1 or missing.
pub fn broadcast_dims<'a>(shapes: impl IntoIterator<Item = &'a [i64]> + Clone) -> Result<Vec<i64>> {
    let rank = shapes.clone().into_iter().map(<[i64]>::len).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for dims in shapes.clone() {
        let missing = rank - dims.len();
        for (known, dim) in result[missing..].iter_mut().zip(dims) {
            match (*known, *dim) {
                (_, 1) => {}
                (1, dim) => *known = dim,
                (known, dim) if known == dim => {}
                _ => {
                    let found: Vec<&[i64]> = shapes.into_iter().collect();
                    return Err(PluginError::invalid_argument(format!(
                        "expected shapes that are equal or 1 from the last dimension on, found {found:?}"
                    )));
                }
            }
        }
    }
    Ok(result)
}

/// The index of a dimension. A negative axis counts from the end.
pub fn resolve_axis(axis: i64, rank: usize) -> Result<usize> {
    let counted = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let found = counted.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
    found.ok_or_else(|| {
        PluginError::out_of_range(format!("expected an axis of {rank} dimensions, found {axis}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_shape_has_no_elements_whatever_else_it_has() {
        assert_eq!(element_count(&[]).unwrap(), 1);
        assert_eq!(element_count(&[2, 3]).unwrap(), 6);
        assert_eq!(element_count(&[i64::MAX, i64::MAX, 0]).unwrap(), 0);
        assert!(element_count(&[i64::MAX, i64::MAX]).is_err());
        assert!(element_count(&[0, -1]).is_err());
    }

    #[test]
    fn shapes_broadcast_from_the_last_dimension_on() {
        assert_eq!(broadcast_dims([&[2, 1, 3][..], &[4, 1]]).unwrap(), [2, 4, 3]);
        assert_eq!(broadcast_dims([&[0][..], &[1, 1], &[]]).unwrap(), [1, 0]);
        assert!(broadcast_dims([&[2][..], &[3]]).is_err());
    }

    #[test]
    fn an_axis_is_inside_of_the_shape() {
        assert_eq!(resolve_axis(-1, 3).unwrap(), 2);
        for axis in [3, -4, i64::MIN, i64::MAX] {
            assert!(resolve_axis(axis, 3).unwrap_err().message().contains(&axis.to_string()));
        }
    }
}
