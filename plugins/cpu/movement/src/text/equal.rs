//! `Equal` and `Where` on strings.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::{read_texts, write_texts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{DtypeSet, Kernel, OperandSpec, PluginError, Result, ensure};

pub(super) fn text_equal_kernels() -> Vec<Kernel<Cpu>> {
    let (text, truth) = (OperandSpec::new(DtypeSet::STRING), OperandSpec::new(DtypeSet::BOOL));
    vec![
        operand_kernel("Equal", |_| Ok(()), |_, (), operands| compare_texts(operands))
            .since_version(19)
            .with_inputs([text.with_name("A"), text.with_name("B")])
            .with_outputs([truth.with_name("C")]),
        operand_kernel("Where", |_| Ok(()), |_, (), operands| select_texts(operands))
            .since_version(9)
            .with_inputs([truth.with_name("condition"), text.with_name("X"), text.with_name("Y")])
            .with_outputs([text.with_name("output")]),
    ]
}

fn compare_texts(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (left, right, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let places = [left.dims(), right.dims()].map(|dims| BroadcastPositions::new(dims, output.dims()));
    let [left_places, right_places] = places;
    let (left, right) = (read_texts(&left)?, read_texts(&right)?);
    let places = left_places?.zip(right_places?);
    for (out, (at, other)) in operands.write_output::<bool>(0)?.iter_mut().zip(places) {
        *out = left[at] == right[other];
    }
    Ok(())
}

fn select_texts(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (condition, x, y, output) = (call.input(0)?, call.input(1)?, call.input(2)?, call.output(0)?);
    let [conditions, xs, ys] =
        [condition.dims(), x.dims(), y.dims()].map(|dims| BroadcastPositions::new(dims, output.dims()));
    let (condition, x, y) = (operands.read_input::<bool>(0)?, read_texts(&x)?, read_texts(&y)?);
    let chosen: Vec<&str> = conditions?
        .zip(xs?.zip(ys?))
        .map(|(at, (x_at, y_at))| if condition[at] { x[x_at] } else { y[y_at] })
        .collect();
    write_texts(&output, chosen.into_iter())
}

/// The positions of an operand's elements, in the order of a shape that it is broadcast to.
pub(super) struct BroadcastPositions {
    dims: Vec<usize>,
    steps: Vec<usize>,
    counter: Vec<usize>,
    left: usize,
}

impl BroadcastPositions {
    pub(super) fn new(dims: &[i64], to: &[i64]) -> Result<Self> {
        let unfit = || {
            PluginError::invalid_argument(format!(
                "expected a shape that can be repeated to {to:?}, found {dims:?}"
            ))
        };
        // Shapes are aligned at their last dimension; missing ones count as 1.
        let added = to.len().checked_sub(dims.len()).ok_or_else(unfit)?;
        let mut steps = vec![0; to.len()];
        let mut step = 1;
        for axis in (added..to.len()).rev() {
            let dim = dims[axis - added];
            ensure!(dim == 1 || dim == to[axis], invalid_argument, "{}", unfit().message());
            // A dimension of 1 keeps its step of 0, and so repeats.
            if dim != 1 {
                steps[axis] = step;
                step *= dim as usize;
            }
        }
        let left = element_count(to)?;
        Ok(Self {
            dims: to.iter().map(|dim| *dim as usize).collect(),
            steps,
            counter: vec![0; to.len()],
            left,
        })
    }
}

impl Iterator for BroadcastPositions {
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
        let places =
            |dims: &[i64], to: &[i64]| BroadcastPositions::new(dims, to).unwrap().collect::<Vec<_>>();
        assert_eq!(places(&[2, 1], &[2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(places(&[3], &[2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(places(&[], &[2]), [0, 0]);
        assert!(places(&[1], &[0]).is_empty());
        assert!(
            BroadcastPositions::new(&[2], &[3]).is_err() && BroadcastPositions::new(&[1, 1], &[3]).is_err()
        );
    }
}
