//! `TensorScatter`: writes what a step of a model adds to a cache, at each sequence's own position.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    copy_contiguous, element_bytes, element_bytes_mut, read_optional_integers,
};
use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, ensure};

use super::{data_operand, shape};

pub(super) fn tensor_scatter_kernels() -> Vec<Kernel<Cpu>> {
    let places = OperandSpec::new(DtypeSet::I64)
        .with_name("write_indices")
        .with_rank(1, 1)
        .with_flags(OperandFlags::OPTIONAL);
    let kernel = Kernel::new_prepared("TensorScatter", |_, call| {
        let axis = call.int_attribute("axis")?.unwrap_or(-2);
        let wraps = match call.string_attribute("mode")?.unwrap_or("linear") {
            "linear" => false,
            "circular" => true,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `mode` to be `linear` or `circular`, found `{other}`"
                )));
            }
        };
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| write_to_cache(cpu, call, axis, wraps)))
    });
    vec![
        kernel
            .since_version(24)
            .with_inputs([
                data_operand("past_cache").with_rank(2, u32::MAX),
                data_operand("update").with_rank(2, u32::MAX),
                places,
            ])
            .with_outputs([data_operand("present_cache")])
            .with_in_place(0, 0),
    ]
}

fn write_to_cache(cpu: &Cpu, call: &KernelCall<'_>, axis: i64, wraps: bool) -> Result<()> {
    let (past, update, present) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let (dims, added) = (shape::shape_dims(&past)?, shape::shape_dims(&update)?);
    let axis = resolve_axis(axis, dims.len())?;
    ensure!(axis > 0, invalid_argument, "expected `axis` to be another one than the batch's, found 0");
    let same = |other: usize| other == axis || dims[other] == added[other];
    ensure!(
        dims.len() == added.len() && (0..dims.len()).all(same) && added[axis] <= dims[axis],
        invalid_argument,
        "expected an `update` of at most the shape {dims:?}, which differs along axis {axis} only, found {added:?}"
    );
    shape::expect_shape(&present, "present_cache", &dims)?;
    let (outer, length, inner) = shape::split_at_axis(&dims, axis);
    let count = added[axis];
    let starts = read_optional_integers(call, 2)?;
    if let Some(starts) = &starts {
        shape::expect_length(starts, "write_indices", dims[0])?;
    }
    // If writing wraps around, no start is too large.
    let most = if wraps { i64::MAX } else { (length - count) as i64 };
    if let Some(start) = starts.iter().flatten().find(|start| !(0..=most).contains(*start)) {
        return Err(PluginError::out_of_range(format!(
            "expected `write_indices` from 0 to {most}, found {start}"
        )));
    }
    // If the cache is updated in place, this copies nothing.
    copy_contiguous(cpu, &past, &present)?;
    if count == 0 || dims.contains(&0) {
        return Ok(());
    }
    by_size!(past.dtype(), N => {
        let (from, to) = (element_bytes::<N>(&update)?, element_bytes_mut::<N>(&present)?);
        if to.is_empty() || inner == 0 {
            return Ok(());
        }
        // Dimensions between the batch and the axis, such as heads, share the start of their sequence.
        let per_sequence = outer / dims[0];
        for part in 0..outer {
            let start = starts.as_ref().map_or(0, |starts| starts[part / per_sequence]) as usize % length;
            for step in 0..count {
                // Without wrapping, the check of starts keeps the sum below `length`, so the remainder
                // changes nothing.
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

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn updates_are_written_where_each_sequence_stands() {
        let (cache, update) = (
            TestArray::from_values(&[2, 3, 1], &[1u8, 2, 3, 4, 5, 6]),
            TestArray::from_values(&[2, 2, 1], &[7u8, 8, 9, 10]),
        );
        let outputs = [Some((Dtype::U8, &[2, 3, 1][..]))];
        let circular = [("mode", TestAttribute::Text("circular"))];
        for (starts, mode, expected) in
            [([0, 1], &[][..], [7, 8, 3, 4, 9, 10]), ([2, 4], &circular, [8, 2, 7, 4, 9, 10])]
        {
            let starts = TestArray::from_values(&[2], &starts.map(i64::from));
            let inputs = [Some(&cache), Some(&update), Some(&starts)];
            let results = KERNELS.run_kernel("TensorScatter", 24, mode, &inputs, &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().bytes(), expected);
        }
    }

    #[test]
    fn places_beyond_the_cache_are_refused() {
        let (cache, update) =
            (TestArray::from_values(&[1, 3, 1], &[1u8, 2, 3]), TestArray::from_values(&[1, 2, 1], &[7u8, 8]));
        for start in [2, -1, i64::MAX, i64::MIN] {
            let start = TestArray::from_values(&[1], &[start]);
            let inputs = [Some(&cache), Some(&update), Some(&start)];
            let outputs = [Some((Dtype::U8, &[1, 3, 1][..]))];
            let message = KERNELS.run_kernel("TensorScatter", 24, &[], &inputs, &outputs).unwrap_err();
            assert!(message.contains("`write_indices` from 0 to 1"), "{message}");
        }
    }
}
