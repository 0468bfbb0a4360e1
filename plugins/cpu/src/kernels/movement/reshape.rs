//! Ops that keep all elements in their order and change at most the shape. The host works out the shape; a kernel has only
//! to see that the elements fit, and copies nothing where output and input are the same memory.

use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Operand, OperandFlags, Result, dtype_set, ensure};

use super::operand::{WHOLE_BYTES, by_size, cells_mut, cells_with_gaps, copy_all, copy_bits};
use super::strided::Strided;
use super::{host, optional_host, shape};
use crate::device::Cpu;

/// What can be seen as other elements of the same size.
const BITS: DtypeSet = DtypeSet(ANY.0 & !DtypeSet::STRING.0);
const ANY: DtypeSet =
    WHOLE_BYTES.union(dtype_set(&[Dtype::I2, Dtype::U2, Dtype::I4, Dtype::U4, Dtype::F4E2M1]));

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let input = Operand::new(ANY).group(1);
    let strided = Operand::new(WHOLE_BYTES).group(1).flags(OperandFlags::STRIDED);
    let output = Operand::new(ANY).group(1);
    let same = |op: &str| Kernel::new(op, reshape).outputs([output]).in_place(0, 0);
    vec![
        same("Identity").inputs([input]),
        Kernel::new("Identity", identity).score(90).inputs([strided]).outputs([output]),
        same("Reshape").until(4).inputs([input]),
        same("Reshape").since(5).inputs([input, host("shape", DtypeSet::I64)]),
        same("Flatten").inputs([input]),
        same("Squeeze").until(12).inputs([input]),
        same("Squeeze").since(13).inputs([input, optional_host("axes", DtypeSet::I64)]),
        Kernel::prepared("Unsqueeze", |_, call| {
            let axes = call.ints("axes")?.map(<[i64]>::to_vec);
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
                shape::axes(axes.as_deref().unwrap_or_default(), call.output(0)?.dims().len())?;
                reshape(cpu, call)
            }))
        })
        .until(12)
        .inputs([input])
        .outputs([output])
        .in_place(0, 0),
        same("Unsqueeze").since(13).inputs([input, host("axes", DtypeSet::I64)]),
        Kernel::new("BitCast", |cpu: &Cpu, call: &Call<'_>| {
            copy_bits(cpu, &call.input(0)?, &call.output(0)?)
        })
        .since(26)
        .inputs([Operand::new(BITS)])
        .outputs([Operand::new(BITS)])
        .in_place(0, 0),
    ]
}

fn reshape(cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    copy_all(cpu, &call.input(0)?, &call.output(0)?)
}

fn identity(cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    if input.strides().is_empty() {
        return copy_all(cpu, &input, &output);
    }
    ensure!(
        input.dims() == output.dims(),
        invalid_argument,
        "expected an output of shape {:?}, found {:?}",
        input.dims(),
        output.dims()
    );
    let strides: Vec<_> = input.strides().iter().map(|stride| *stride as isize).collect();
    by_size!(input.dtype(), N => {
        let (from, to) = (cells_with_gaps::<N>(&input)?, cells_mut::<N>(&output)?);
        Strided::new(0, &shape::dims(&input)?, &strides, from.len())?.copy(cpu, from, to)
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    #[test]
    fn reshaping_keeps_all_elements_in_order() {
        let input = Array::of(&[2, 3], &[1i16, 2, 3, 4, 5, 6]);
        let shape = Array::of(&[2], &[3i64, -1]);
        let results = run("Reshape", 14, &[], &[Some(&input), Some(&shape)], &[Some((Dtype::I16, &[3, 2]))]);
        assert_eq!(results.unwrap()[0].as_ref().unwrap().values::<i16>(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn bits_are_seen_as_elements_of_the_same_size_only() {
        let input = Array::of(&[2], &[1f32, -0.0]);
        let results = run("BitCast", 26, &[], &[Some(&input)], &[Some((Dtype::U32, &[2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<u32>(), [0x3f80_0000, 0x8000_0000]);
        let packed = Array::of_bytes(Dtype::I4, &[3], &[0x1f, 0x0e]);
        let results = run("BitCast", 26, &[], &[Some(&packed)], &[Some((Dtype::U4, &[3]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [0x1f, 0x0e]);
        for wrong in [(Dtype::U16, &[2][..]), (Dtype::U32, &[1]), (Dtype::U4, &[2])] {
            assert!(run("BitCast", 26, &[], &[Some(&input)], &[Some(wrong)]).is_err());
        }
    }

    #[test]
    fn every_op_that_keeps_elements_takes_scalars_and_empty_tensors() {
        for op in ["Identity", "Flatten", "Squeeze", "Reshape"] {
            let scalar = Array::of(&[], &[7u8]);
            let results = run(op, 1, &[], &[Some(&scalar)], &[Some((Dtype::U8, &[]))]).unwrap();
            assert_eq!(results[0].as_ref().unwrap().bytes(), [7], "{op}");
            let empty = Array::of::<f32>(&[0, 3], &[]);
            let results = run(op, 1, &[], &[Some(&empty)], &[Some((Dtype::F32, &[3, 0]))]).unwrap();
            assert!(results[0].as_ref().unwrap().bytes().is_empty(), "{op}");
        }
    }

    #[test]
    fn packed_elements_are_copied_when_contiguous() {
        let input = Array::of_bytes(Dtype::U4, &[3], &[0x21, 0x03]);
        let axes = Array::of(&[1], &[0i64]);
        let results = run("Unsqueeze", 21, &[], &[Some(&input), Some(&axes)], &[Some((Dtype::U4, &[1, 3]))]);
        assert_eq!(results.unwrap()[0].as_ref().unwrap().bytes(), [0x21, 0x03]);
    }

    #[test]
    fn a_strided_input_becomes_contiguous() {
        let values: Vec<i32> = (0..24).collect();
        let input = Array::of(&[24], &values).strided(&[3, 2], &[4, 12], 1);
        let results = run("Identity", 19, &[], &[Some(&input)], &[Some((Dtype::I32, &[3, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [1, 13, 5, 17, 9, 21]);
    }

    #[test]
    fn strides_that_lead_out_of_the_input_are_refused() {
        for strides in [[4, 24], [-1, 1]] {
            let input = Array::of(&[24], &[0f64; 24]).strided(&[3, 2], &strides, 0);
            let message =
                run("Identity", 19, &[], &[Some(&input)], &[Some((Dtype::F64, &[3, 2]))]).unwrap_err();
            assert!(message.contains("inside of the 24"), "{message}");
        }
    }

    #[test]
    fn an_output_that_does_not_fit_is_refused() {
        let input = Array::of(&[2], &[1u8, 2]);
        let axes = [("axes", Attribute::Ints(&[0]))];
        let message = run("Squeeze", 11, &axes, &[Some(&input)], &[Some((Dtype::U8, &[3]))]).unwrap_err();
        assert!(message.contains("2 elements") && message.contains("[3]"), "{message}");
    }
}
