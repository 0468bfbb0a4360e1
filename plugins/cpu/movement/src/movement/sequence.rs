//! `ReverseSequence` and `Trilu`: ops that keep the shape and treat rows by their position.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    element_bytes, element_bytes_mut, for_parallel_pieces, read_optional_integers, typed_values,
};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, ensure};

use super::{data_operand, optional_host_operand, shape};

pub(super) fn sequence_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        Kernel::new_prepared("ReverseSequence", |_, call| {
            let (batch, time) = (
                call.int_attribute("batch_axis")?.unwrap_or(1),
                call.int_attribute("time_axis")?.unwrap_or(0),
            );
            ensure!(
                // The schema allows no other axes.
                matches!((batch, time), (0, 1) | (1, 0)),
                invalid_argument,
                "expected `batch_axis` and `time_axis` to be 0 and 1 in some order, found {batch} and {time}"
            );
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| reverse_sequence(cpu, call, time == 0)))
        })
        .since_version(10)
        .with_inputs([
            data_operand("input").with_rank(2, u32::MAX),
            OperandSpec::new(DtypeSet::I64).with_name("sequence_lens"),
        ])
        .with_outputs([data_operand("Y")]),
        Kernel::new_prepared("Trilu", |_, call| {
            let is_upper = call.int_attribute("upper")?.unwrap_or(1) != 0;
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| trilu(cpu, call, is_upper)))
        })
        .since_version(14)
        .with_inputs([
            data_operand("input").with_rank(2, u32::MAX),
            optional_host_operand("k", DtypeSet::I64),
        ])
        .with_outputs([data_operand("output")]),
    ]
}

fn reverse_sequence(cpu: &Cpu, call: &KernelCall<'_>, is_time_first: bool) -> Result<()> {
    let (input, lengths, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let [first, second, rest @ ..] = &dims[..] else {
        return Err(PluginError::invalid_argument(format!(
            "expected two dimensions or more, found {dims:?}"
        )));
    };
    let (times, batches) = if is_time_first { (*first, *second) } else { (*second, *first) };
    shape::expect_shape(&output, "Y", &dims)?;
    shape::expect_shape(&lengths, "sequence_lens", &[batches])?;
    let lengths = typed_values::<i64>(&lengths)?;
    // Checked before the loop, whose body cannot return an error. A longer sequence would read those of
    // others.
    if let Some(found) = lengths.iter().find(|length| !(0..=times as i64).contains(*length)) {
        return Err(PluginError::out_of_range(format!(
            "expected `sequence_lens` from 0 to {times}, found {found}"
        )));
    }
    // Both axes lead, so a step of a sequence is contiguous.
    let (second, inner) = (*second, rest.iter().product());
    by_size!(input.dtype(), N => {
        let from = element_bytes::<N>(&input)?;
        for_parallel_pieces(cpu, element_bytes_mut::<N>(&output)?, inner, |begin, out| {
            for (row, out) in out.chunks_mut(inner).enumerate() {
                let (i, j) = ((begin + row) / second, (begin + row) % second);
                let (time, batch) = if is_time_first { (i, j) } else { (j, i) };
                let length = lengths[batch] as usize;
                // What follows a sequence, such as padding, stays in place.
                let time = if time < length { length - 1 - time } else { time };
                let source = if is_time_first { time * second + batch } else { batch * second + time };
                out.copy_from_slice(&from[source * inner..][..inner]);
            }
        });
        Ok(())
    })
}

fn trilu(cpu: &Cpu, call: &KernelCall<'_>, is_upper: bool) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let [.., rows, columns] = dims[..] else {
        return Err(PluginError::invalid_argument(format!(
            "expected two dimensions or more, found {dims:?}"
        )));
    };
    shape::expect_shape(&output, "output", &dims)?;
    let diagonal = match read_optional_integers(call, 1)?.as_deref() {
        None => 0,
        Some([diagonal]) => *diagonal,
        Some(others) => return shape::expect_length(others, "k", 1),
    };
    by_size!(input.dtype(), N => {
        let from = element_bytes::<N>(&input)?;
        for_parallel_pieces(cpu, element_bytes_mut::<N>(&output)?, columns, |begin, out| {
            for (index, out) in out.chunks_mut(columns).enumerate() {
                let from = &from[(begin + index) * columns..][..columns];
                // Leading dimensions are a batch, so rows are counted within one matrix.
                let row = ((begin + index) % rows) as i64;
                // The first column on or right of the diagonal; for the lower part, the first right of it.
                // `k` may be any integer. One that wrapped around would end on the wrong side of the matrix.
                let edge = row.saturating_add(diagonal).saturating_add(i64::from(!is_upper));
                let edge = edge.clamp(0, columns as i64) as usize;
                let (kept, cleared) = if is_upper { (edge..columns, 0..edge) } else { (0..edge, edge..columns) };
                out[kept.clone()].copy_from_slice(&from[kept]);
                out[cleared].fill([0; N]);
            }
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn the_start_of_each_sequence_is_reversed() {
        let values: Vec<u8> = (0..12).collect();
        let (input, lengths) =
            (TestArray::from_values(&[3, 4], &values), TestArray::from_values(&[4], &[3i64, 2, 1, 0]));
        let outputs = [Some((Dtype::U8, &[3, 4][..]))];
        let results = KERNELS
            .run_kernel("ReverseSequence", 10, &[], &[Some(&input), Some(&lengths)], &outputs)
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [8, 5, 2, 3, 4, 1, 6, 7, 0, 9, 10, 11]);
        let axes = [("batch_axis", TestAttribute::Int(0)), ("time_axis", TestAttribute::Int(1))];
        let lengths = TestArray::from_values(&[3], &[4i64, 1, 2]);
        let results = KERNELS
            .run_kernel("ReverseSequence", 10, &axes, &[Some(&input), Some(&lengths)], &outputs)
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [3, 2, 1, 0, 4, 5, 6, 7, 9, 8, 10, 11]);
    }

    #[test]
    fn lengths_beyond_the_input_are_refused() {
        let input = TestArray::from_values(&[1, 2], &[1u8, 2]);
        for length in [2, -1, i64::MAX] {
            let lengths = TestArray::from_values(&[2], &[1, length]);
            let outputs = [Some((Dtype::U8, &[1, 2][..]))];
            let inputs = [Some(&input), Some(&lengths)];
            assert!(KERNELS.run_kernel("ReverseSequence", 10, &[], &inputs, &outputs).is_err());
        }
    }

    #[test]
    fn one_side_of_a_diagonal_stays() {
        let input = TestArray::from_values(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
        for (upper, k, expected) in [
            (1, 0, [1, 2, 3, 0, 5, 6]),
            (0, 0, [1, 0, 0, 4, 5, 0]),
            (1, 1, [0, 2, 3, 0, 0, 6]),
            (0, -1, [0, 0, 0, 4, 0, 0]),
            (1, i64::MIN, [1, 2, 3, 4, 5, 6]),
            (0, i64::MAX, [1, 2, 3, 4, 5, 6]),
        ] {
            let (upper, k) = ([("upper", TestAttribute::Int(upper))], TestArray::from_values(&[], &[k]));
            let outputs = [Some((Dtype::I32, &[2, 3][..]))];
            let results =
                KERNELS.run_kernel("Trilu", 14, &upper, &[Some(&input), Some(&k)], &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<i32>(), expected);
        }
    }
}
