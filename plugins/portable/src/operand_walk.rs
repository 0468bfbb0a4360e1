//! Joint iteration over several operands: dimensions, and the strides of each operand along them.
//!
//! Adjacent dimensions that every operand can traverse with one stride are merged. Most calls end up without any, so their
//! kernels index operands linearly.

/// Maps the index of an output element to the index of an operand's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementAccess {
    /// The same index.
    Flat,
    /// Always index 0: a scalar broadcast.
    Repeated,
    /// Computed from the walk's strides.
    Stepped,
}

/// Merged dimensions, and the strides of each operand along them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperandWalk {
    dims: Vec<i64>,
    /// Strides by operand.
    steps: Vec<Vec<i64>>,
}

impl OperandWalk {
    /// Builds a walk over `dims`, with adjacent dimensions merged where all operands allow it.
    pub(crate) fn new(dims: &[i64], operands: &[&[i64]]) -> Self {
        let mut walk = Self { dims: Vec::new(), steps: vec![Vec::new(); operands.len()] };
        // A dimension of 1 has only the index 0. Its stride means nothing and must not prevent a merge.
        for (axis, dim) in dims.iter().enumerate().filter(|(_, dim)| **dim != 1) {
            let steps = || operands.iter().map(|steps| steps[axis]);
            // Each dimension that stays costs every work-item a division, which takes a GPU many instructions. Two dimensions are one if
            // a step along the outer is as long as a pass through the inner.
            let joins = walk.dims.last().is_some()
                && walk
                    .steps
                    .iter()
                    .zip(steps())
                    .all(|(before, step)| before.last() == Some(&step.saturating_mul(*dim)));
            if joins {
                let last = walk.dims.len() - 1;
                walk.dims[last] = walk.dims[last].saturating_mul(*dim);
                walk.steps.iter_mut().zip(steps()).for_each(|(before, step)| before[last] = step);
            } else {
                walk.dims.push(*dim);
                walk.steps.iter_mut().zip(steps()).for_each(|(before, step)| before.push(step));
            }
        }
        walk
    }

    /// The access pattern of each operand, which selects the program variant.
    pub(crate) fn operand_accesses(&self) -> Vec<ElementAccess> {
        // Flat and repeated operands need no strides: no argument, and no division.
        let flat = contiguous_strides(&self.dims);
        let access = |steps: &Vec<i64>| {
            if *steps == flat {
                ElementAccess::Flat
            } else if steps.iter().all(|step| *step == 0) {
                ElementAccess::Repeated
            } else {
                ElementAccess::Stepped
            }
        };
        self.steps.iter().map(access).collect()
    }

    /// Number of dimensions passed to the kernel: 0 if no operand is strided.
    pub(crate) fn rank(&self) -> u8 {
        // If nobody needs the dimensions they are not passed, and calls of every rank share one program.
        let is_stepped = self.operand_accesses().contains(&ElementAccess::Stepped);
        if is_stepped { self.dims.len() as u8 } else { 0 }
    }

    /// Encodes the struct for the kernel: the dimensions, then the strides of each strided operand. Empty if the rank is 0.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if self.rank() == 0 {
            return Vec::new();
        }
        let accesses = self.operand_accesses();
        // Exactly the fields that the source declares: only strided operands have an array of steps.
        let stepped = self.steps.iter().zip(accesses).filter(|(_, access)| *access == ElementAccess::Stepped);
        let rows = std::iter::once(&self.dims).chain(stepped.map(|(steps, _)| steps));
        rows.flatten().flat_map(|number| number.to_ne_bytes()).collect()
    }
}

/// The product of dimensions. Saturates; only an operand with a dimension of 0 can overflow here, and its count is not used.
pub(crate) fn saturating_element_count(dims: &[i64]) -> i64 {
    dims.iter().fold(1, |product: i64, dim| product.saturating_mul(*dim))
}

/// Row-major strides, saturated like [`saturating_element_count`].
pub(crate) fn contiguous_strides(dims: &[i64]) -> Vec<i64> {
    let mut steps = vec![1i64; dims.len()];
    for axis in (1..dims.len()).rev() {
        steps[axis - 1] = steps[axis].saturating_mul(dims[axis]);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_operands_need_no_dimensions_of_their_own() {
        let walk = OperandWalk::new(&[2, 3, 4], &[&[12, 4, 1], &[12, 4, 1], &[0, 0, 0]]);
        assert_eq!(walk.rank(), 0);
        assert_eq!(
            walk.operand_accesses(),
            [ElementAccess::Flat, ElementAccess::Flat, ElementAccess::Repeated]
        );
    }

    #[test]
    fn a_repeated_row_keeps_two_dimensions() {
        let walk = OperandWalk::new(&[2, 3, 4], &[&[12, 4, 1], &[0, 0, 1]]);
        assert_eq!((walk.rank(), walk.dims.as_slice()), (2, &[6, 4][..]));
        assert_eq!(walk.operand_accesses(), [ElementAccess::Flat, ElementAccess::Stepped]);
        assert_eq!(walk.to_bytes().len(), 8 * 4);
    }

    #[test]
    fn one_element_has_no_dimensions() {
        let walk = OperandWalk::new(&[1, 1], &[&[7, 9], &[0, 0]]);
        assert_eq!(
            (walk.rank(), walk.operand_accesses()),
            (0, vec![ElementAccess::Flat, ElementAccess::Flat])
        );
    }

    #[test]
    fn a_transposed_operand_is_stepped() {
        let walk = OperandWalk::new(&[4, 3], &[&[1, 4]]);
        assert_eq!((walk.rank(), walk.operand_accesses()), (2, vec![ElementAccess::Stepped]));
    }
}
