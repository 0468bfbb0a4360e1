//! `ReverseSequence` and `Trilu`: ops that keep the shape and treat rows by where they stand.

use std::sync::Arc;

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, Operand, Result, ensure};

use super::operand::{by_size, cells, cells_mut, in_pieces, optional_integers, values};
use super::{data, optional_host, shape};
use crate::device::Cpu;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![
        Kernel::prepared("ReverseSequence", |_, call| {
            let (batch, time) = (call.int("batch_axis")?.unwrap_or(1), call.int("time_axis")?.unwrap_or(0));
            ensure!(
                matches!((batch, time), (0, 1) | (1, 0)),
                invalid_argument,
                "expected `batch_axis` and `time_axis` to be 0 and 1 in some order, found {batch} and {time}"
            );
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| reverse_sequence(cpu, call, time == 0)))
        })
        .since(10)
        .inputs([data("input").rank(2, u32::MAX), Operand::new(DtypeSet::I64).named("sequence_lens")])
        .outputs([data("Y")]),
        Kernel::prepared("Trilu", |_, call| {
            let is_upper = call.int("upper")?.unwrap_or(1) != 0;
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| trilu(cpu, call, is_upper)))
        })
        .since(14)
        .inputs([data("input").rank(2, u32::MAX), optional_host("k", DtypeSet::I64)])
        .outputs([data("output")]),
    ]
}

fn reverse_sequence(cpu: &Cpu, call: &Call<'_>, is_time_first: bool) -> Result<()> {
    let (input, lengths, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let dims = shape::dims(&input)?;
    let [first, second, rest @ ..] = &dims[..] else {
        return Err(Error::invalid_argument(format!("expected two dimensions or more, found {dims:?}")));
    };
    let (times, batches) = if is_time_first { (*first, *second) } else { (*second, *first) };
    shape::expect(&output, "Y", &dims)?;
    shape::expect(&lengths, "sequence_lens", &[batches])?;
    let lengths = values::<i64>(&lengths)?;
    if let Some(found) = lengths.iter().find(|length| !(0..=times as i64).contains(*length)) {
        return Err(Error::out_of_range(format!(
            "expected `sequence_lens` from 0 to {times}, found {found}"
        )));
    }
    let (second, inner) = (*second, rest.iter().product());
    by_size!(input.dtype(), N => {
        let from = cells::<N>(&input)?;
        in_pieces(cpu, cells_mut::<N>(&output)?, inner, |begin, out| {
            for (row, out) in out.chunks_mut(inner).enumerate() {
                let (i, j) = ((begin + row) / second, (begin + row) % second);
                let (time, batch) = if is_time_first { (i, j) } else { (j, i) };
                let length = lengths[batch] as usize;
                let time = if time < length { length - 1 - time } else { time };
                let source = if is_time_first { time * second + batch } else { batch * second + time };
                out.copy_from_slice(&from[source * inner..][..inner]);
            }
        });
        Ok(())
    })
}

fn trilu(cpu: &Cpu, call: &Call<'_>, is_upper: bool) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::dims(&input)?;
    let [.., rows, columns] = dims[..] else {
        return Err(Error::invalid_argument(format!("expected two dimensions or more, found {dims:?}")));
    };
    shape::expect(&output, "output", &dims)?;
    let diagonal = match optional_integers(call, 1)?.as_deref() {
        None => 0,
        Some([diagonal]) => *diagonal,
        Some(others) => return shape::expect_length(others, "k", 1),
    };
    by_size!(input.dtype(), N => {
        let from = cells::<N>(&input)?;
        in_pieces(cpu, cells_mut::<N>(&output)?, columns, |begin, out| {
            for (index, out) in out.chunks_mut(columns).enumerate() {
                let from = &from[(begin + index) * columns..][..columns];
                let row = ((begin + index) % rows) as i64;
                // The first column on or right of the diagonal, and for the lower part the first right of it.
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

    use crate::testing::{Array, Attribute, run};

    #[test]
    fn the_start_of_each_sequence_is_reversed() {
        let values: Vec<u8> = (0..12).collect();
        let (input, lengths) = (Array::of(&[3, 4], &values), Array::of(&[4], &[3i64, 2, 1, 0]));
        let outputs = [Some((Dtype::U8, &[3, 4][..]))];
        let results = run("ReverseSequence", 10, &[], &[Some(&input), Some(&lengths)], &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [8, 5, 2, 3, 4, 1, 6, 7, 0, 9, 10, 11]);
        let axes = [("batch_axis", Attribute::Int(0)), ("time_axis", Attribute::Int(1))];
        let lengths = Array::of(&[3], &[4i64, 1, 2]);
        let results = run("ReverseSequence", 10, &axes, &[Some(&input), Some(&lengths)], &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [3, 2, 1, 0, 4, 5, 6, 7, 9, 8, 10, 11]);
    }

    #[test]
    fn lengths_beyond_the_input_are_refused() {
        let input = Array::of(&[1, 2], &[1u8, 2]);
        for length in [2, -1, i64::MAX] {
            let lengths = Array::of(&[2], &[1, length]);
            let outputs = [Some((Dtype::U8, &[1, 2][..]))];
            let inputs = [Some(&input), Some(&lengths)];
            assert!(run("ReverseSequence", 10, &[], &inputs, &outputs).is_err());
        }
    }

    #[test]
    fn one_side_of_a_diagonal_stays() {
        let input = Array::of(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
        for (upper, k, expected) in [
            (1, 0, [1, 2, 3, 0, 5, 6]),
            (0, 0, [1, 0, 0, 4, 5, 0]),
            (1, 1, [0, 2, 3, 0, 0, 6]),
            (0, -1, [0, 0, 0, 4, 0, 0]),
            (1, i64::MIN, [1, 2, 3, 4, 5, 6]),
            (0, i64::MAX, [1, 2, 3, 4, 5, 6]),
        ] {
            let (upper, k) = ([("upper", Attribute::Int(upper))], Array::of(&[], &[k]));
            let outputs = [Some((Dtype::I32, &[2, 3][..]))];
            let results = run("Trilu", 14, &upper, &[Some(&input), Some(&k)], &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<i32>(), expected);
        }
    }
}
