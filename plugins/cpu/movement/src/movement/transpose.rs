//! Ops that permute dimensions: `Transpose`, `DepthToSpace` and `SpaceToDepth`.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{element_bytes, element_bytes_mut};
use oarlock_sdk::{Kernel, KernelCall, Result, TensorView, ensure};

use super::strided::StridedCopy;
use super::{data_operand, shape};

pub(super) fn transpose_kernels() -> Vec<Kernel<Cpu>> {
    let spatial = |kernel: Kernel<Cpu>| {
        kernel.with_inputs([data_operand("input").with_rank(4, 4)]).with_outputs([data_operand("output")])
    };
    vec![
        Kernel::new_prepared("Transpose", |_, call| {
            let given = call.ints_attribute("perm")?.map(<[i64]>::to_vec);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| transpose(cpu, call, given.as_deref())))
        })
        .with_inputs([data_operand("data")])
        .with_outputs([data_operand("transposed")]),
        spatial(Kernel::new_prepared("DepthToSpace", |_, call| {
            let (side, is_depth_first) = (block_side(call)?, is_depth_first(call)?);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
                depth_to_space(cpu, call, side, is_depth_first)
            }))
        })),
        spatial(Kernel::new_prepared("SpaceToDepth", |_, call| {
            let (side, is_depth_first) = (block_side(call)?, is_depth_first(call)?);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
                space_to_depth(cpu, call, side, is_depth_first)
            }))
        })),
    ]
}

fn block_side(call: &KernelCall<'_>) -> Result<usize> {
    let side = call.int_attribute("blocksize")?.unwrap_or(0);
    // The limit keeps the square of the side from overflowing.
    ensure!(
        (1..1 << 16).contains(&side),
        invalid_argument,
        "expected a `blocksize` of 1 or more, found {side}"
    );
    Ok(side as usize)
}

/// True if the blocks come before the channels in the depth.
fn is_depth_first(call: &KernelCall<'_>) -> Result<bool> {
    let mode = call.string_attribute("mode")?.unwrap_or("DCR");
    ensure!(
        matches!(mode, "DCR" | "CRD"),
        invalid_argument,
        "expected `mode` to be `DCR` or `CRD`, found `{mode}`"
    );
    Ok(mode == "DCR")
}

fn transpose(cpu: &Cpu, call: &KernelCall<'_>, order: Option<&[i64]>) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let order = match order {
        Some(order) => {
            shape::expect_length(order, "perm", dims.len())?;
            shape::resolve_axes(order, dims.len())?
        }
        // Without `perm`, ONNX reverses the dimensions.
        None => (0..dims.len()).rev().collect(),
    };
    let reordered: Vec<_> = order.iter().map(|axis| dims[*axis]).collect();
    shape::expect_shape(&output, "transposed", &reordered)?;
    copy_transposed(cpu, &input, &output, &dims, &order)
}

/// [batch, depth, height, width] becomes blocks of `side` by `side`, over which the depth is spread.
fn depth_to_space(cpu: &Cpu, call: &KernelCall<'_>, side: usize, is_depth_first: bool) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let [batch, depth, height, width] = dims[..] else {
        // Four dimensions are what is expected, so this is always the error.
        return shape::expect_shape(&input, "input", &[0; 4]);
    };
    ensure!(
        depth % (side * side) == 0,
        invalid_argument,
        "expected a depth that is a multiple of {}, found {depth}",
        side * side
    );
    let channels = depth / (side * side);
    shape::expect_shape(&output, "output", &[batch, channels, height * side, width * side])?;
    // In DCR the place in the block is the slow part of the depth; in CRD the channel is.
    if is_depth_first {
        copy_transposed(
            cpu,
            &input,
            &output,
            &[batch, side, side, channels, height, width],
            &[0, 3, 4, 1, 5, 2],
        )
    } else {
        copy_transposed(
            cpu,
            &input,
            &output,
            &[batch, channels, side, side, height, width],
            &[0, 1, 4, 2, 5, 3],
        )
    }
}

fn space_to_depth(cpu: &Cpu, call: &KernelCall<'_>, side: usize, is_depth_first: bool) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let [batch, channels, height, width] = dims[..] else {
        return shape::expect_shape(&input, "input", &[0; 4]);
    };
    ensure!(
        height % side == 0 && width % side == 0,
        invalid_argument,
        "expected a height and a width that are multiples of {side}, found {height} and {width}"
    );
    let (height, width) = (height / side, width / side);
    let channels_and_block = [channels, side, side];
    shape::expect_shape(
        &output,
        "output",
        &[batch, shape::element_count(&channels_and_block)?, height, width],
    )?;
    // In either mode the inverse of `depth_to_space`.
    let order = if is_depth_first { [0, 3, 5, 1, 2, 4] } else { [0, 1, 3, 5, 2, 4] };
    copy_transposed(cpu, &input, &output, &[batch, channels, height, side, width, side], &order)
}

/// Copies an input, seen with the given dimensions, with its axes permuted.
fn copy_transposed(
    cpu: &Cpu,
    input: &TensorView<'_>,
    output: &TensorView<'_>,
    dims: &[usize],
    order: &[usize],
) -> Result<()> {
    // Permuted strides say where each element of the output comes from, so one loop serves all orders.
    let steps = shape::contiguous_strides(dims);
    let strides: Vec<_> = order.iter().map(|axis| steps[*axis] as isize).collect();
    let dims: Vec<_> = order.iter().map(|axis| dims[*axis]).collect();
    by_size!(input.dtype(), N => {
        let (from, to) = (element_bytes::<N>(input)?, element_bytes_mut::<N>(output)?);
        StridedCopy::new(0, &dims, &strides, from.len())?.copy_into(cpu, from, to)
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::{Complex, Dtype};

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn dimensions_come_in_the_order_of_perm() {
        let (rows, middle, columns) = (37, 3, 41);
        let values: Vec<u16> = (0..rows * middle * columns).map(|value| value as u16).collect();
        let input = TestArray::from_values(&[rows, middle, columns], &values);
        for perm in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let sizes = [rows, middle, columns];
            let dims = perm.map(|axis| sizes[axis as usize]);
            let perm_attribute = [("perm", TestAttribute::Ints(&perm))];
            let results = KERNELS
                .run_kernel("Transpose", 13, &perm_attribute, &[Some(&input)], &[Some((Dtype::U16, &dims))])
                .unwrap();
            let found = results[0].as_ref().unwrap().values::<u16>();
            let steps = [middle * columns, columns, 1];
            let mut expected = Vec::new();
            for i in 0..dims[0] {
                for j in 0..dims[1] {
                    for k in 0..dims[2] {
                        let place =
                            [i, j, k].into_iter().zip(perm).map(|(at, axis)| at * steps[axis as usize]);
                        expected.push(place.sum::<i64>() as u16);
                    }
                }
            }
            assert_eq!(found, expected, "{perm:?}");
        }
    }

    #[test]
    fn a_large_transpose_is_the_same_in_pieces() {
        let values: Vec<u32> = (0..300 * 513).collect();
        let input = TestArray::from_values(&[300, 513], &values);
        let results = KERNELS
            .run_kernel("Transpose", 13, &[], &[Some(&input)], &[Some((Dtype::U32, &[513, 300]))])
            .unwrap();
        let found = results[0].as_ref().unwrap().values::<u32>();
        assert!((0..513 * 300).all(|at| found[at] == ((at % 300) * 513 + at / 300) as u32));
    }

    #[test]
    fn elements_of_sixteen_bytes_and_scalars_are_transposed() {
        let values: Vec<_> = (0..6).map(|value| Complex::new(f64::from(value), -1.0)).collect();
        let input = TestArray::from_values(&[2, 3], &values);
        let results = KERNELS
            .run_kernel("Transpose", 13, &[], &[Some(&input)], &[Some((Dtype::C128, &[3, 2]))])
            .unwrap();
        let real: Vec<_> =
            results[0].as_ref().unwrap().values::<Complex<f64>>().iter().map(|value| value.re).collect();
        assert_eq!(real, [0., 3., 1., 4., 2., 5.]);
        let scalar = TestArray::from_values(&[], &[true]);
        let results =
            KERNELS.run_kernel("Transpose", 13, &[], &[Some(&scalar)], &[Some((Dtype::BOOL, &[]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<bool>(), [true]);
    }

    #[test]
    fn an_order_that_is_none_is_refused() {
        let input = TestArray::from_values(&[2, 3], &[0u8; 6]);
        for perm in [&[0, 0][..], &[0], &[0, 2], &[1, i64::MIN]] {
            let perm = [("perm", TestAttribute::Ints(perm))];
            assert!(
                KERNELS
                    .run_kernel("Transpose", 13, &perm, &[Some(&input)], &[Some((Dtype::U8, &[3, 2]))])
                    .is_err()
            );
        }
    }

    #[test]
    fn depth_is_spread_over_space_in_both_modes_and_back() {
        let values: Vec<i8> = (0..8).collect();
        let input = TestArray::from_values(&[1, 8, 1, 1], &values);
        for (mode, expected) in [("DCR", [0, 2, 4, 6, 1, 3, 5, 7]), ("CRD", [0, 1, 2, 3, 4, 5, 6, 7])] {
            let attributes = [("blocksize", TestAttribute::Int(2)), ("mode", TestAttribute::Text(mode))];
            let results = KERNELS.run_kernel(
                "DepthToSpace",
                13,
                &attributes,
                &[Some(&input)],
                &[Some((Dtype::I8, &[1, 2, 2, 2]))],
            );
            let spread = results.unwrap().remove(0).unwrap();
            assert_eq!(spread.values::<i8>(), expected, "{mode}");
            let outputs = [Some((Dtype::I8, &[1, 8, 1, 1][..]))];
            let results =
                KERNELS.run_kernel("SpaceToDepth", 28, &attributes, &[Some(&spread)], &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<i8>(), values, "{mode}");
        }
    }
}
