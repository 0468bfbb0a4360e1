//! `Equal` and `Where` on text.

use oarlock_sdk::{DtypeSet, Error, Kernel, Operand, Result, ensure};

use super::operand::{texts, write};
use crate::device::Cpu;
use crate::kernels::rows::axis::count;
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let (text, truth) = (Operand::new(DtypeSet::STRING), Operand::new(DtypeSet::BOOL));
    vec![
        kernel("Equal", |_| Ok(()), |_, (), operands| equal(operands))
            .since(19)
            .inputs([text.named("A"), text.named("B")])
            .outputs([truth.named("C")]),
        kernel("Where", |_| Ok(()), |_, (), operands| choose(operands))
            .since(9)
            .inputs([truth.named("condition"), text.named("X"), text.named("Y")])
            .outputs([text.named("output")]),
    ]
}

fn equal(operands: &Operands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (left, right, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let places = [left.dims(), right.dims()].map(|dims| Repeated::new(dims, output.dims()));
    let [left_places, right_places] = places;
    let (left, right) = (texts(&left)?, texts(&right)?);
    let places = left_places?.zip(right_places?);
    for (out, (at, other)) in operands.write::<bool>(0)?.iter_mut().zip(places) {
        *out = left[at] == right[other];
    }
    Ok(())
}

fn choose(operands: &Operands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (condition, x, y, output) = (call.input(0)?, call.input(1)?, call.input(2)?, call.output(0)?);
    let [conditions, xs, ys] =
        [condition.dims(), x.dims(), y.dims()].map(|dims| Repeated::new(dims, output.dims()));
    let (condition, x, y) = (operands.read::<bool>(0)?, texts(&x)?, texts(&y)?);
    let chosen: Vec<&str> = conditions?
        .zip(xs?.zip(ys?))
        .map(|(at, (x_at, y_at))| if condition[at] { x[x_at] } else { y[y_at] })
        .collect();
    write(&output, chosen.into_iter())
}

/// The places of an operand's elements in the order of a shape that it is repeated to.
pub(super) struct Repeated {
    dims: Vec<usize>,
    steps: Vec<usize>,
    counter: Vec<usize>,
    left: usize,
}

impl Repeated {
    pub(super) fn new(dims: &[i64], to: &[i64]) -> Result<Self> {
        let unfit = || {
            Error::invalid_argument(format!(
                "expected a shape that can be repeated to {to:?}, found {dims:?}"
            ))
        };
        let added = to.len().checked_sub(dims.len()).ok_or_else(unfit)?;
        let mut steps = vec![0; to.len()];
        let mut step = 1;
        for axis in (added..to.len()).rev() {
            let dim = dims[axis - added];
            ensure!(dim == 1 || dim == to[axis], invalid_argument, "{}", unfit().message());
            if dim != 1 {
                steps[axis] = step;
                step *= dim as usize;
            }
        }
        let left = count(to)?;
        Ok(Self {
            dims: to.iter().map(|dim| *dim as usize).collect(),
            steps,
            counter: vec![0; to.len()],
            left,
        })
    }
}

impl Iterator for Repeated {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let place = self.counter.iter().zip(&self.steps).map(|(index, step)| index * step).sum();
        for (index, dim) in self.counter.iter_mut().zip(&self.dims).rev() {
            *index += 1;
            if *index < *dim {
                break;
            }
            *index = 0;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operand_is_repeated_along_dimensions_of_one() {
        let places = |dims: &[i64], to: &[i64]| Repeated::new(dims, to).unwrap().collect::<Vec<_>>();
        assert_eq!(places(&[2, 1], &[2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(places(&[3], &[2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(places(&[], &[2]), [0, 0]);
        assert!(places(&[1], &[0]).is_empty());
        assert!(Repeated::new(&[2], &[3]).is_err() && Repeated::new(&[1, 1], &[3]).is_err());
    }
}
