//! `Concat` and `Split`: several tensors one after another along an axis.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    element_bytes, element_bytes_mut, for_parallel_pieces, read_optional_integers,
};
use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandFlags, PluginError, Result, ensure};

use super::{data_operand, optional_host_operand, shape};

pub(super) fn concat_and_split_kernels() -> Vec<Kernel<Cpu>> {
    let split = || {
        Kernel::new_prepared("Split", |_, call| {
            let (axis, parts) = (
                call.int_attribute("axis")?.unwrap_or(0),
                call.ints_attribute("split")?.map(<[i64]>::to_vec),
            );
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| split(cpu, call, axis, parts.clone())))
        })
        .with_outputs([data_operand("outputs").with_flags(OperandFlags::VARIADIC)])
    };
    vec![
        Kernel::new_prepared("Concat", |_, call| {
            // Up to version 3 the attribute may be missing, and means 1.
            let axis = call.int_attribute("axis")?.unwrap_or(1);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| concat(cpu, call, axis)))
        })
        .with_inputs([data_operand("inputs").with_flags(OperandFlags::VARIADIC)])
        .with_outputs([data_operand("concat_result")]),
        split().since_version(2).until_version(12).with_inputs([data_operand("input")]),
        split()
            .since_version(13)
            .with_inputs([data_operand("input"), optional_host_operand("split", DtypeSet::I64)]),
    ]
}

fn concat(cpu: &Cpu, call: &KernelCall<'_>, axis: i64) -> Result<()> {
    let output = call.output(0)?;
    let inputs = (0..call.input_count()).map(|index| call.input(index)).collect::<Result<Vec<_>>>()?;
    let first =
        inputs.first().ok_or_else(|| PluginError::invalid_argument("expected an input, found none"))?;
    let mut expected = shape::shape_dims(first)?;
    let axis = resolve_axis(axis, expected.len())?;
    let mut lengths = Vec::new();
    for input in &inputs {
        let mut dims = shape::shape_dims(input)?;
        ensure!(
            dims.len() == expected.len(),
            invalid_argument,
            "expected inputs of one rank, found {expected:?} and {dims:?}"
        );
        // With the one difference that is allowed taken out, a single comparison checks the rest.
        lengths.push(std::mem::replace(&mut dims[axis], expected[axis]));
        ensure!(
            dims == expected,
            invalid_argument,
            "expected inputs that differ along axis {axis} alone, found {expected:?} and {dims:?}"
        );
    }
    expected[axis] = lengths.iter().sum();
    shape::expect_shape(&output, "concat_result", &expected)?;
    let (_, length, inner) = shape::split_at_axis(&expected, axis);
    let row = length * inner;
    by_size!(output.dtype(), N => {
        let from = inputs.iter().map(element_bytes::<N>).collect::<Result<Vec<_>>>()?;
        if inner == 1 && lengths.iter().all(|length| *length == 1) {
            interleave(cpu, &from, element_bytes_mut::<N>(&output)?);
            return Ok(());
        }
        // Pieces may begin anywhere in a row, since all of the output may be a single row.
        for_parallel_pieces(cpu, element_bytes_mut::<N>(&output)?, 1, |begin, mut out| {
            let (mut at, mut column) = (begin / row, begin % row);
            while !out.is_empty() {
                for (from, length) in from.iter().zip(&lengths) {
                    // Only the first row of a piece begins in the middle; from the second on `column` is 0.
                    let width = length * inner;
                    let skipped = column.min(width);
                    column -= skipped;
                    let taken = (width - skipped).min(out.len());
                    let (part, rest) = out.split_at_mut(taken);
                    let first = at * width + skipped;
                    part.copy_from_slice(&from[first..first + taken]);
                    out = rest;
                }
                at += 1;
            }
        });
        Ok(())
    })
}

/// Writes the first elements of all slices, then the second ones, and so on.
fn interleave<const N: usize>(cpu: &Cpu, from: &[&[[u8; N]]], output: &mut [[u8; N]]) {
    match from {
        [a, b] => interleave_arrays(cpu, [*a, *b], output),
        [a, b, c] => interleave_arrays(cpu, [*a, *b, *c], output),
        [a, b, c, d] => interleave_arrays(cpu, [*a, *b, *c, *d], output),
        _ => for_parallel_pieces(cpu, output, from.len(), |begin, out| {
            let (width, count) = (from.len(), out.len() / from.len());
            for (column, from) in from.iter().enumerate() {
                let column = out[column..].iter_mut().step_by(width);
                column.zip(&from[begin..begin + count]).for_each(|(out, element)| *out = *element);
            }
        }),
    }
}

/// Like `interleave` for a known number of slices, which the compiler turns into shuffles.
fn interleave_arrays<const N: usize, const COUNT: usize>(
    cpu: &Cpu,
    from: [&[[u8; N]]; COUNT],
    output: &mut [[u8; N]],
) {
    for_parallel_pieces(cpu, output, COUNT, |begin, out| {
        let rows = out.as_chunks_mut::<COUNT>().0;
        let from = from.map(|from| &from[begin..begin + rows.len()]);
        for (index, row) in rows.iter_mut().enumerate() {
            *row = from.map(|from| from[index]);
        }
    });
}

fn split(cpu: &Cpu, call: &KernelCall<'_>, axis: i64, parts: Option<Vec<i64>>) -> Result<()> {
    let input = call.input(0)?;
    let dims = shape::shape_dims(&input)?;
    let axis = resolve_axis(axis, dims.len())?;
    let outputs = (0..call.output_count()).map(|index| call.output(index)).collect::<Result<Vec<_>>>()?;
    // The host has inferred the parts if they are not given.
    let parts = match read_optional_integers(call, 1)?.or(parts) {
        Some(parts) => parts,
        None => outputs.iter().map(|output| output.dims().get(axis).copied().unwrap_or(0)).collect(),
    };
    shape::expect_length(&parts, "split", outputs.len())?;
    // A negative part becomes a huge one, with which the sum is wrong.
    let parts = parts.iter().map(|part| usize::try_from(*part).unwrap_or(usize::MAX)).collect::<Vec<_>>();
    let sum = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(*part));
    ensure!(
        sum == Some(dims[axis]),
        invalid_argument,
        "expected parts that add up to {} along axis {axis}, found {parts:?}",
        dims[axis]
    );
    let (_, length, inner) = shape::split_at_axis(&dims, axis);
    let mut before = 0;
    for (output, part) in outputs.iter().zip(parts) {
        let mut expected = dims.clone();
        expected[axis] = part;
        shape::expect_shape(output, "outputs", &expected)?;
        let (width, pitch, skipped) = (part * inner, length * inner, before * inner);
        by_size!(input.dtype(), N => {
            let from = element_bytes::<N>(&input)?;
            for_parallel_pieces(cpu, element_bytes_mut::<N>(output)?, width.max(1), |begin, out| {
                if width == 1 {
                    let column = from[begin * pitch + skipped..].iter().step_by(pitch);
                    out.iter_mut().zip(column).for_each(|(out, element)| *out = *element);
                    return;
                }
                for (row, out) in out.chunks_mut(width).enumerate() {
                    let first = (begin + row) * pitch + skipped;
                    out.copy_from_slice(&from[first..first + out.len()]);
                }
            });
        });
        before += part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn tensors_are_joined_along_any_axis() {
        let (a, b) =
            (TestArray::from_values(&[2, 1], &[1i32, 2]), TestArray::from_values(&[2, 2], &[3i32, 4, 5, 6]));
        let empty = TestArray::from_values::<i32>(&[2, 0], &[]);
        let inputs = [Some(&a), Some(&empty), Some(&b)];
        let axis = [("axis", TestAttribute::Int(-1))];
        let results =
            KERNELS.run_kernel("Concat", 13, &axis, &inputs, &[Some((Dtype::I32, &[2, 3]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [1, 3, 4, 2, 5, 6]);
    }

    #[test]
    fn single_elements_of_any_number_of_tensors_alternate() {
        let axis = [("axis", TestAttribute::Int(1))];
        for count in 1..=6u16 {
            let columns = (0..count).map(|column| {
                let elements: Vec<u16> = (0..3000).map(|row| row * count + column).collect();
                TestArray::from_values(&[3000, 1], &elements)
            });
            let columns: Vec<TestArray> = columns.collect();
            let inputs: Vec<_> = columns.iter().map(Some).collect();
            let outputs = [Some((Dtype::U16, &[3000, i64::from(count)][..]))];
            let joined = KERNELS.run_kernel("Concat", 13, &axis, &inputs, &outputs).unwrap();
            let joined = joined[0].as_ref().unwrap();
            assert!(joined.values::<u16>().into_iter().eq(0..3000 * count), "{count}");
            let outputs = vec![Some((Dtype::U16, &[3000, 1][..])); count.into()];
            let parts = KERNELS.run_kernel("Split", 18, &axis, &[Some(joined), None], &outputs).unwrap();
            for (part, column) in parts.iter().flatten().zip(&columns) {
                assert_eq!(part.values::<u16>(), column.values::<u16>(), "{count}");
            }
        }
    }

    #[test]
    fn a_large_join_is_the_same_in_pieces() {
        let (a, b) = (vec![1u8; 700 * 101], vec![2u8; 700 * 57]);
        let (a, b) = (TestArray::from_values(&[700, 101], &a), TestArray::from_values(&[700, 57], &b));
        let axis = [("axis", TestAttribute::Int(1))];
        let outputs = [Some((Dtype::U8, &[700, 158][..]))];
        let results = KERNELS.run_kernel("Concat", 13, &axis, &[Some(&a), Some(&b)], &outputs).unwrap();
        let found = results[0].as_ref().unwrap().values::<u8>();
        assert!((0..found.len()).all(|at| found[at] == if at % 158 < 101 { 1 } else { 2 }));
    }

    #[test]
    fn tensors_that_do_not_fit_together_are_refused() {
        let (a, b) =
            (TestArray::from_values(&[2, 1], &[1u8, 2]), TestArray::from_values(&[3, 1], &[3u8, 4, 5]));
        let axis = [("axis", TestAttribute::Int(1))];
        let outputs = [Some((Dtype::U8, &[2, 2][..]))];
        let message = KERNELS.run_kernel("Concat", 13, &axis, &[Some(&a), Some(&b)], &outputs).unwrap_err();
        assert!(message.contains("[2, 1] and [3, 1]"), "{message}");
    }

    #[test]
    fn a_split_takes_given_parts_or_those_of_its_outputs() {
        let input = TestArray::from_values(&[2, 3], &[1u8, 2, 3, 4, 5, 6]);
        let parts = TestArray::from_values(&[3], &[2i64, 0, 1]);
        let axis = [("axis", TestAttribute::Int(1))];
        let outputs = [2, 0, 1].map(|width| [2, width]);
        let outputs = outputs.each_ref().map(|dims| Some((Dtype::U8, &dims[..])));
        for parts in [Some(&parts), None] {
            let results = KERNELS.run_kernel("Split", 18, &axis, &[Some(&input), parts], &outputs).unwrap();
            let bytes: Vec<_> = results.iter().flatten().map(|array| array.bytes().to_vec()).collect();
            assert_eq!(bytes, [vec![1, 2, 4, 5], vec![], vec![3, 6]]);
        }
    }

    #[test]
    fn parts_that_are_too_many_or_negative_are_refused() {
        let input = TestArray::from_values(&[3], &[1u8, 2, 3]);
        for parts in [[2i64, 2], [4, -1]] {
            let parts = TestArray::from_values(&[2], &parts);
            let outputs = [Some((Dtype::U8, &[2][..])), Some((Dtype::U8, &[2][..]))];
            let message =
                KERNELS.run_kernel("Split", 18, &[], &[Some(&input), Some(&parts)], &outputs).unwrap_err();
            assert!(message.contains("add up to 3"), "{message}");
        }
    }
}
