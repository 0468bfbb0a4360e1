//! How operands are walked through together: dimensions and, for each operand, how far apart its elements lie along them.
//!
//! Dimensions that all operands walk through in one go are made one, so that most calls end up with none and read their
//! operands straight.

/// How a kernel finds the element of an operand that belongs to an element of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementAccess {
    /// It has the same index.
    Flat,
    /// It is always the first.
    Repeated,
    /// It is found by the steps of the walk.
    Stepped,
}

/// Dimensions, and the steps of each operand along them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperandWalk {
    dims: Vec<i64>,
    /// By operand.
    steps: Vec<Vec<i64>>,
}

impl OperandWalk {
    /// A walk through `dims` with the steps of each operand along them, which is made as short as it can be.
    pub(crate) fn new(dims: &[i64], operands: &[&[i64]]) -> Self {
        let mut walk = Self { dims: Vec::new(), steps: vec![Vec::new(); operands.len()] };
        for (axis, dim) in dims.iter().enumerate().filter(|(_, dim)| **dim != 1) {
            let steps = || operands.iter().map(|steps| steps[axis]);
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

    /// How each operand is read.
    pub(crate) fn operand_accesses(&self) -> Vec<ElementAccess> {
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

    /// How many dimensions the kernel has to know: none when no operand is read by steps.
    pub(crate) fn rank(&self) -> u8 {
        let is_stepped = self.operand_accesses().contains(&ElementAccess::Stepped);
        if is_stepped { self.dims.len() as u8 } else { 0 }
    }

    /// The struct that kernels get: the dimensions, then the steps of each operand that is read by steps. Empty without
    /// dimensions.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if self.rank() == 0 {
            return Vec::new();
        }
        let accesses = self.operand_accesses();
        let stepped = self.steps.iter().zip(accesses).filter(|(_, access)| *access == ElementAccess::Stepped);
        let rows = std::iter::once(&self.dims).chain(stepped.map(|(steps, _)| steps));
        rows.flatten().flat_map(|number| number.to_ne_bytes()).collect()
    }
}

/// How many elements a part of a shape has. What an operand without elements has too many of is cut, since nobody counts it.
pub(crate) fn element_count(dims: &[i64]) -> i64 {
    dims.iter().fold(1, |product: i64, dim| product.saturating_mul(*dim))
}

/// The steps of a contiguous tensor. Those of one without elements may be cut, as in [`element_count`].
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
