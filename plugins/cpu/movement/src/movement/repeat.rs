//! `Expand` and `Tile`: elements that appear several times. A repeated dimension has stride 0.

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{element_bytes, element_bytes_mut, read_integers};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, Result, TensorView, ensure};

use super::strided::StridedCopy;
use super::{data_operand, host_operand, shape};

pub(super) fn repeat_kernels() -> Vec<Kernel<Cpu>> {
    let row = |kernel: Kernel<Cpu>, list: &'static str| {
        kernel
            .with_inputs([data_operand("input"), host_operand(list, DtypeSet::I64)])
            .with_outputs([data_operand("output")])
    };
    vec![
        row(Kernel::new("Expand", expand).since_version(8), "shape"),
        row(Kernel::new("Tile", tile).since_version(6), "repeats"),
    ]
}

fn expand(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let (from, wanted, to) =
        (shape::shape_dims(&input)?, read_integers(&call.input(1)?)?, shape::shape_dims(&output)?);
    let rank = from.len().max(wanted.len());
    ensure!(to.len() == rank, invalid_argument, "expected an output of rank {rank}, found {to:?}");
    let steps = shape::contiguous_strides(&from);
    let mut strides = vec![0; rank];
    for (axis, stride) in strides.iter_mut().enumerate() {
        // Shapes are aligned at the last dimension, so a shorter one lacks leading dimensions.
        let at = (axis + from.len()).checked_sub(rank);
        let dim = at.map_or(1, |at| from[at]);
        let wish = (axis + wanted.len()).checked_sub(rank).map_or(1, |at| wanted[at]);
        // `Expand` broadcasts both ways: a 1 in `shape` keeps the size of the input.
        let expected = if wish == 1 { dim as i64 } else { wish };
        ensure!(
            (dim == 1 || expected == dim as i64) && to[axis] as i64 == expected,
            invalid_argument,
            "expected `shape` to broadcast with {from:?} to the output's {to:?}, found {wanted:?}"
        );
        // Any other axis keeps its stride of 0, which repeats the one element there.
        if let Some(at) = at.filter(|_| dim != 1) {
            *stride = steps[at] as isize;
        }
    }
    copy_repeated(cpu, &input, &output, &to, &strides)
}

fn tile(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let (from, repeats) = (shape::shape_dims(&input)?, read_integers(&call.input(1)?)?);
    shape::expect_length(&repeats, "repeats", from.len())?;
    let steps = shape::contiguous_strides(&from);
    let (mut dims, mut strides, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for ((dim, repeat), step) in from.iter().zip(&repeats).zip(steps) {
        // Negative counts become huge ones, and no output with elements has such a shape.
        let repeat = usize::try_from(*repeat).unwrap_or(usize::MAX);
        expected.push(dim.saturating_mul(repeat));
        // Each dimension becomes two: its repetitions, which stay in place in the input, and its elements.
        dims.extend([repeat, *dim]);
        strides.extend([0, step as isize]);
    }
    shape::expect_shape(&output, "output", &expected)?;
    copy_repeated(cpu, &input, &output, &dims, &strides)
}

fn copy_repeated(
    cpu: &Cpu,
    input: &TensorView<'_>,
    output: &TensorView<'_>,
    dims: &[usize],
    strides: &[isize],
) -> Result<()> {
    by_size!(input.dtype(), N => {
        let (from, to) = (element_bytes::<N>(input)?, element_bytes_mut::<N>(output)?);
        StridedCopy::new(0, dims, strides, from.len())?.copy_into(cpu, from, to)
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::TestArray;

    #[test]
    fn dimensions_of_one_are_repeated() {
        let input = TestArray::from_values(&[3, 1], &[1f32, 2., 3.]);
        let shape = TestArray::from_values(&[3], &[2i64, 1, 2]);
        let outputs = [Some((Dtype::F32, &[2, 3, 2][..]))];
        let results = KERNELS.run_kernel("Expand", 13, &[], &[Some(&input), Some(&shape)], &outputs).unwrap();
        let expected = [1., 1., 2., 2., 3., 3., 1., 1., 2., 2., 3., 3.];
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), expected);
    }

    #[test]
    fn shapes_that_do_not_broadcast_are_refused() {
        let input = TestArray::from_values(&[3], &[1u8, 2, 3]);
        let shape = TestArray::from_values(&[1], &[4i64]);
        let message =
            KERNELS.run_kernel("Expand", 13, &[], &[Some(&input), Some(&shape)], &[Some((Dtype::U8, &[4]))]);
        assert!(message.unwrap_err().contains("[4]"));
    }

    #[test]
    fn tiles_stand_beside_and_below_each_other() {
        let input = TestArray::from_values(&[2, 2], &[1u8, 2, 3, 4]);
        let repeats = TestArray::from_values(&[2], &[2i64, 2]);
        let outputs = [Some((Dtype::U8, &[4, 4][..]))];
        let results = KERNELS.run_kernel("Tile", 13, &[], &[Some(&input), Some(&repeats)], &outputs).unwrap();
        let expected = [1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4];
        assert_eq!(results[0].as_ref().unwrap().bytes(), expected);
        let none = TestArray::from_values(&[2], &[0i64, 2]);
        let outputs = [Some((Dtype::U8, &[0, 4][..]))];
        assert!(KERNELS.run_kernel("Tile", 13, &[], &[Some(&input), Some(&none)], &outputs).is_ok());
    }

    #[test]
    fn tiles_of_any_size_are_what_the_remainders_of_their_places_say() {
        let cases: [(&[i64], &[i64]); 8] = [
            (&[5, 1, 7], &[1, 8, 3]),
            (&[3, 2, 1], &[2, 3, 9]),
            (&[2, 3, 5], &[7, 1, 2]),
            (&[1, 1, 3], &[300, 40, 1]),
            (&[40, 1, 100], &[1, 8, 3]),
            (&[2, 9000], &[3, 2]),
            (&[3, 1, 6000, 1], &[2, 3, 1, 2]),
            (&[1, 1], &[3, 20_000]),
        ];
        for (dims, repeats) in cases {
            let values: Vec<u32> = (0..dims.iter().product::<i64>() as u32).collect();
            let tiled: Vec<i64> = dims.iter().zip(repeats).map(|(dim, repeat)| dim * repeat).collect();
            let place = |at: i64| {
                let (mut rest, mut place, mut step) = (at, 0, 1);
                for (dim, tiled) in dims.iter().zip(&tiled).rev() {
                    (place, step, rest) = (place + rest % tiled % dim * step, step * dim, rest / tiled);
                }
                place as u32
            };
            let expected: Vec<u32> = (0..tiled.iter().product()).map(place).collect();
            let (input, repeats) = (
                TestArray::from_values(dims, &values),
                TestArray::from_values(&[dims.len() as i64], repeats),
            );
            let outputs = [Some((Dtype::U32, &tiled[..]))];
            let results =
                KERNELS.run_kernel("Tile", 13, &[], &[Some(&input), Some(&repeats)], &outputs).unwrap();
            assert!(results[0].as_ref().unwrap().values::<u32>() == expected, "{dims:?} to {tiled:?}");
        }
    }

    #[test]
    fn fewer_than_no_repeats_are_refused() {
        let input = TestArray::from_values(&[1], &[1u8]);
        let repeats = TestArray::from_values(&[1], &[-1i64]);
        assert!(
            KERNELS
                .run_kernel("Tile", 13, &[], &[Some(&input), Some(&repeats)], &[Some((Dtype::U8, &[1]))])
                .is_err()
        );
    }
}
