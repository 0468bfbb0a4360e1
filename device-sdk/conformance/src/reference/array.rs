//! Arrays of `f64`, in the simplest form.

/// An array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReferenceArray {
    pub(crate) dims: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl ReferenceArray {
    pub(crate) fn new(dims: &[usize], values: Vec<f64>) -> Self {
        debug_assert_eq!(dims.iter().product::<usize>(), values.len());
        Self { dims: dims.to_vec(), values }
    }

    /// An array of one dimension.
    pub(crate) fn from_list(values: &[i64]) -> Self {
        Self::new(&[values.len()], values.iter().map(|value| *value as f64).collect())
    }

    pub(crate) fn from_scalar(value: f64) -> Self {
        Self::new(&[], vec![value])
    }

    pub(crate) fn from_fn(dims: &[usize], mut element: impl FnMut(&[usize]) -> f64) -> Self {
        let mut values = Vec::with_capacity(dims.iter().product());
        for_each_index(dims, |index| values.push(element(index)));
        Self { dims: dims.to_vec(), values }
    }

    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        let place = index.iter().zip(&self.dims).fold(0, |place, (index, dim)| place * dim + index);
        self.values[place]
    }

    /// The element at an index that may lie outside, where `beyond` is.
    pub(crate) fn at_or(&self, index: &[i64], beyond: f64) -> f64 {
        let mut place = 0;
        for (index, dim) in index.iter().zip(&self.dims) {
            match usize::try_from(*index) {
                Ok(index) if index < *dim => place = place * dim + index,
                _ => return beyond,
            }
        }
        self.values[place]
    }

    /// The element that is broadcast to an index of a larger array.
    pub(crate) fn broadcast_at(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.rank()..];
        let next = |place, (index, dim): (&usize, &usize)| place * dim + if *dim == 1 { 0 } else { *index };
        self.values[own.iter().zip(&self.dims).fold(0, next)]
    }

    /// The values as integers.
    pub(crate) fn to_ints(&self) -> Vec<i64> {
        self.values.iter().map(|value| *value as i64).collect()
    }
}

/// Calls a function with each index of an array, in row-major order.
pub(crate) fn for_each_index(dims: &[usize], mut work: impl FnMut(&[usize])) {
    let mut index = vec![0; dims.len()];
    for _ in 0..dims.iter().product() {
        work(&index);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// All indices of an array, in row-major order.
pub(crate) fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = Vec::with_capacity(dims.iter().product());
    for_each_index(dims, |index| all.push(index.to_vec()));
    all
}

/// The shape that arrays of these shapes are broadcast to.
pub(crate) fn broadcast_dims<'a>(all: impl IntoIterator<Item = &'a [usize]>) -> Vec<usize> {
    let mut dims: Vec<usize> = Vec::new();
    for other in all {
        let rank = dims.len().max(other.len());
        let size =
            |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
        let merged = (0..rank).map(|axis| match (size(&dims, axis), size(other, axis)) {
            (1, other) => other,
            (own, _) => own,
        });
        dims = merged.collect();
    }
    dims
}

/// An axis counted from the end if it is negative.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> usize {
    (if axis < 0 { axis + rank as i64 } else { axis }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_broadcast_along_dimensions_of_one_and_missing_ones() {
        let (column, row) = (
            ReferenceArray::from_fn(&[2, 1], |at| 10.0 * at[0] as f64),
            ReferenceArray::from_list(&[1, 2, 3]),
        );
        let dims = broadcast_dims([&*column.dims, &*row.dims]);
        let sum = ReferenceArray::from_fn(&dims, |at| column.broadcast_at(at) + row.broadcast_at(at));
        assert_eq!((sum.dims, sum.values), (vec![2, 3], vec![1.0, 2.0, 3.0, 11.0, 12.0, 13.0]));
        assert_eq!(broadcast_dims([&[0, 3][..], &[1, 1]]), [0, 3]);
        assert_eq!(indices(&[]), [Vec::<usize>::new()]);
        assert!(indices(&[2, 0]).is_empty());
    }

    #[test]
    fn outside_of_an_array_is_what_the_caller_says() {
        let row = ReferenceArray::from_list(&[1, 2, 3]);
        assert_eq!([-1, 0, 2, 3].map(|at| row.at_or(&[at], 9.0)), [9.0, 1.0, 3.0, 9.0]);
    }
}
