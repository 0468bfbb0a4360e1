//! `RotaryEmbedding`: rotates pairs of elements of each head by an angle that depends on the position of their row.

#![expect(unsafe_code, reason = "threads write disjoint rows of one output")]

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_gemm::{DisjointSlice, StoredElement};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, bf16, dtype_set,
    ensure, f16,
};

use super::geometry::HeadsLayout;
use super::optional_input_elements;

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

pub(super) fn rotary_embedding_kernel() -> Kernel<Cpu> {
    let float = OperandSpec::new(FLOATS).with_dtype_group(1);
    let places = OperandSpec::new(DtypeSet::I64).with_flags(OperandFlags::OPTIONAL);
    Kernel::new_prepared("RotaryEmbedding", |_: &Cpu, call| {
        let is_interleaved = call.int_attribute("interleaved")?.unwrap_or(0) != 0;
        let rotated = call.int_attribute("rotary_embedding_dim")?.unwrap_or(0);
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let form = (is_interleaved, usize::try_from(rotated).unwrap_or(0));
            match call.input(0)?.dtype() {
                Dtype::F32 => rotate_heads::<f32>(cpu, call, form),
                Dtype::F16 => rotate_heads::<f16>(cpu, call, form),
                _ => rotate_heads::<bf16>(cpu, call, form),
            }
        }))
    })
    .since_version(23)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        float.with_name("X").with_rank(3, 4),
        float.with_name("cos_cache").with_rank(2, 3),
        float.with_name("sin_cache").with_rank(2, 3),
        places.with_name("position_ids").with_rank(2, 2),
    ])
    .with_outputs([float.with_name("Y").with_rank(3, 4)])
}

fn rotate_heads<E: StoredElement<ComputeType = f32>>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    (is_interleaved, rotated): (bool, usize),
) -> Result<()> {
    let (x, cos, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let heads = HeadsLayout::new(call, &x, "num_heads")?;
    if x.dims() == y.dims() && x.dims().contains(&0) {
        return Ok(());
    }
    // 0, the default, means the whole head.
    let rotated = if rotated == 0 { heads.size } else { rotated };
    let half = rotated / 2;
    let places: Option<&[i64]> = match call.optional_input(3)? {
        Some(_) => Some(optional_input_elements(call, 3)?),
        None => None,
    };
    // With positions, the caches are tables of any length; otherwise they have a line for each row.
    let lines = match places {
        Some(_) => cos.dims().first().map_or(0, |count| *count as usize),
        None => heads.batches * heads.rows,
    };
    let (cos, sin) = (optional_input_elements::<E>(call, 1)?, optional_input_elements::<E>(call, 2)?);
    let fits = rotated.is_multiple_of(2)
        && rotated <= heads.size
        && cos.len() == lines * half
        && sin.len() == cos.len()
        && places.is_none_or(|places| places.len() == heads.batches * heads.rows)
        && y.dims() == x.dims();
    ensure!(
        fits,
        invalid_argument,
        "expected caches of {half} angles for each of {lines} places, a place for each of {} rows, and an output of the \
         shape {:?}, found others",
        heads.batches * heads.rows,
        x.dims()
    );
    // Positions are data, so they are checked before they index the caches.
    if let Some(place) = places.into_iter().flatten().find(|place| !(0..lines as i64).contains(*place)) {
        return Err(oarlock_sdk::PluginError::out_of_range(format!(
            "expected places from 0 to before {lines}, found {place}"
        )));
    }
    let x = optional_input_elements::<E>(call, 0)?;
    // SAFETY: device memory is host memory, and the call guarantees that outputs touch no other operand.
    let y = DisjointSlice::new(unsafe { y.elements_mut::<E>() }?);
    // One item per row of a head: rows are independent, whatever their layout.
    let count = heads.batches * heads.count * heads.rows;
    cpu.parallel_for(count, grain_for(heads.size), |begin, end| {
        for number in begin..end {
            let (head, row) = (number / heads.rows, number % heads.rows);
            let batch = head / heads.count;
            let start = heads.steps.row_start(batch, head % heads.count, row);
            let place = batch * heads.rows + row;
            let line = places.map_or(place, |places| places[place] as usize) * half;
            // SAFETY: each row of each head is written once.
            let to = unsafe { y.range_mut(start..start + heads.size) };
            let from = &x[start..start + heads.size];
            let (cos, sin) = (&cos[line..line + half], &sin[line..line + half]);
            for (index, (cos, sin)) in cos.iter().zip(sin).enumerate() {
                let (first, second) =
                    // A model pairs either neighbors or the two halves of a head; weights that were trained with one pairing do not
                    // work with the other.
                    if is_interleaved { (2 * index, 2 * index + 1) } else { (index, half + index) };
                let (cos, sin) = (cos.convert(), sin.convert());
                // Computed in `f32` and rounded once, even for 16-bit elements.
                let (a, b) = (from[first].convert(), from[second].convert());
                to[first] = E::from_computed(cos * a - sin * b);
                to[second] = E::from_computed(sin * a + cos * b);
            }
            // Elements past the rotated part are copied unchanged (partial rotary embedding).
            to[rotated..].copy_from_slice(&from[rotated..]);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn pairs_are_turned_by_the_angle_of_their_place() {
        let x = TestArray::from_values(&[1, 1, 2, 5], &[1f32, 2., 3., 4., 5., 1., 2., 3., 4., 5.]);
        let (cos, sin) = (
            TestArray::from_values(&[2, 2], &[1f32, 1., 0., 0.]),
            TestArray::from_values(&[2, 2], &[0f32, 0., 1., 1.]),
        );
        let places = TestArray::from_values(&[1, 2], &[1i64, 0]);
        let inputs = [Some(&x), Some(&cos), Some(&sin), Some(&places)];
        for (is_interleaved, turned) in [(0, [-3f32, -4., 1., 2., 5.]), (1, [-2., 1., -4., 3., 5.])] {
            let attributes = [
                ("interleaved", TestAttribute::Int(is_interleaved)),
                ("rotary_embedding_dim", TestAttribute::Int(4)),
            ];
            let found = KERNELS
                .run_kernel("RotaryEmbedding", 23, &attributes, &inputs, &[Some((Dtype::F32, &[1, 1, 2, 5]))])
                .unwrap();
            let found = found[0].as_ref().unwrap().values::<f32>();
            assert_eq!((&found[..5], &found[5..]), (&turned[..], &[1., 2., 3., 4., 5.][..]));
        }
    }

    #[test]
    fn a_place_without_an_angle_is_refused() {
        let x = TestArray::from_values(&[1, 1, 1, 2], &[1f32, 2.]);
        let (cache, places) =
            (TestArray::from_values(&[3, 1], &[1f32; 3]), TestArray::from_values(&[1, 1], &[3i64]));
        let inputs = [Some(&x), Some(&cache), Some(&cache), Some(&places)];
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1, 1, 2]))];
        let message = KERNELS.run_kernel("RotaryEmbedding", 23, &[], &inputs, &outputs).unwrap_err();
        assert!(message.contains("before 3, found 3"), "{message}");
    }
}
