//! `TensorScatter`: what a step of a model adds to a cache, written at each sequence's own place.

use std::sync::Arc;

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, Operand, OperandFlags, Result, ensure};

use super::operand::{by_size, cells, cells_mut, copy_all, optional_integers};
use super::{data, shape};
use crate::device::Cpu;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let places = Operand::new(DtypeSet::I64).named("write_indices").rank(1, 1).flags(OperandFlags::OPTIONAL);
    let kernel = Kernel::prepared("TensorScatter", |_, call| {
        let axis = call.int("axis")?.unwrap_or(-2);
        let wraps = match call.string("mode")?.unwrap_or("linear") {
            "linear" => false,
            "circular" => true,
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `mode` to be `linear` or `circular`, found `{other}`"
                )));
            }
        };
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| write(cpu, call, axis, wraps)))
    });
    vec![
        kernel
            .since(24)
            .inputs([data("past_cache").rank(2, u32::MAX), data("update").rank(2, u32::MAX), places])
            .outputs([data("present_cache")])
            .in_place(0, 0),
    ]
}

fn write(cpu: &Cpu, call: &Call<'_>, axis: i64, wraps: bool) -> Result<()> {
    let (past, update, present) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let (dims, added) = (shape::dims(&past)?, shape::dims(&update)?);
    let axis = shape::axis(axis, dims.len())?;
    ensure!(axis > 0, invalid_argument, "expected `axis` to be another one than the batch's, found 0");
    let same = |other: usize| other == axis || dims[other] == added[other];
    ensure!(
        dims.len() == added.len() && (0..dims.len()).all(same) && added[axis] <= dims[axis],
        invalid_argument,
        "expected an `update` of at most the shape {dims:?}, which differs along axis {axis} only, found {added:?}"
    );
    shape::expect(&present, "present_cache", &dims)?;
    let (outer, length, inner) = shape::around(&dims, axis);
    let count = added[axis];
    let starts = optional_integers(call, 2)?;
    if let Some(starts) = &starts {
        shape::expect_length(starts, "write_indices", dims[0])?;
    }
    let most = if wraps { i64::MAX } else { (length - count) as i64 };
    if let Some(start) = starts.iter().flatten().find(|start| !(0..=most).contains(*start)) {
        return Err(Error::out_of_range(format!("expected `write_indices` from 0 to {most}, found {start}")));
    }
    copy_all(cpu, &past, &present)?;
    if count == 0 || dims.contains(&0) {
        return Ok(());
    }
    by_size!(past.dtype(), N => {
        let (from, to) = (cells::<N>(&update)?, cells_mut::<N>(&present)?);
        if to.is_empty() || inner == 0 {
            return Ok(());
        }
        let per_sequence = outer / dims[0];
        for part in 0..outer {
            let start = starts.as_ref().map_or(0, |starts| starts[part / per_sequence]) as usize % length;
            for step in 0..count {
                let place = part * length + (start + step) % length;
                to[place * inner..][..inner].copy_from_slice(&from[(part * count + step) * inner..][..inner]);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    #[test]
    fn updates_are_written_where_each_sequence_stands() {
        let (cache, update) =
            (Array::of(&[2, 3, 1], &[1u8, 2, 3, 4, 5, 6]), Array::of(&[2, 2, 1], &[7u8, 8, 9, 10]));
        let outputs = [Some((Dtype::U8, &[2, 3, 1][..]))];
        let circular = [("mode", Attribute::Text("circular"))];
        for (starts, mode, expected) in
            [([0, 1], &[][..], [7, 8, 3, 4, 9, 10]), ([2, 4], &circular, [8, 2, 7, 4, 9, 10])]
        {
            let starts = Array::of(&[2], &starts.map(i64::from));
            let inputs = [Some(&cache), Some(&update), Some(&starts)];
            let results = run("TensorScatter", 24, mode, &inputs, &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().bytes(), expected);
        }
    }

    #[test]
    fn places_beyond_the_cache_are_refused() {
        let (cache, update) = (Array::of(&[1, 3, 1], &[1u8, 2, 3]), Array::of(&[1, 2, 1], &[7u8, 8]));
        for start in [2, -1, i64::MAX, i64::MIN] {
            let start = Array::of(&[1], &[start]);
            let inputs = [Some(&cache), Some(&update), Some(&start)];
            let outputs = [Some((Dtype::U8, &[1, 3, 1][..]))];
            let message = run("TensorScatter", 24, &[], &inputs, &outputs).unwrap_err();
            assert!(message.contains("`write_indices` from 0 to 1"), "{message}");
        }
    }
}
