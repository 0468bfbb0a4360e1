//! Ops that keep the order of all elements and change at most the shape. The host infers the shape; a kernel only checks that the
//! elements fit, and copies nothing if output and input are the same memory.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    WHOLE_BYTE_DTYPES, copy_bits, copy_contiguous, element_bytes_mut, strided_element_bytes,
};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, Result, dtype_set, ensure,
};

use super::strided::StridedCopy;
use super::{host_operand, optional_host_operand, shape};

/// Dtypes whose elements can be seen as others of the same size.
const BITCASTABLE_DTYPES: DtypeSet = DtypeSet(ANY_DTYPE.0 & !DtypeSet::STRING.0);
const ANY_DTYPE: DtypeSet =
    WHOLE_BYTE_DTYPES.union(dtype_set(&[Dtype::I2, Dtype::U2, Dtype::I4, Dtype::U4, Dtype::F4E2M1]));

pub(super) fn reshape_kernels() -> Vec<Kernel<Cpu>> {
    let input = OperandSpec::new(ANY_DTYPE).with_dtype_group(1);
    let strided = OperandSpec::new(WHOLE_BYTE_DTYPES).with_dtype_group(1).with_flags(OperandFlags::STRIDED);
    let output = OperandSpec::new(ANY_DTYPE).with_dtype_group(1);
    let same = |op: &str| Kernel::new(op, reshape).with_outputs([output]).with_in_place(0, 0);
    vec![
        same("Identity").with_inputs([input]),
        // Below the default score of 100: for inputs with strides, which the kernel above does not take.
        Kernel::new("Identity", identity).with_score(90).with_inputs([strided]).with_outputs([output]),
        same("Reshape").until_version(4).with_inputs([input]),
        same("Reshape").since_version(5).with_inputs([input, host_operand("shape", DtypeSet::I64)]),
        same("Flatten").with_inputs([input]),
        same("Squeeze").until_version(12).with_inputs([input]),
        same("Squeeze").since_version(13).with_inputs([input, optional_host_operand("axes", DtypeSet::I64)]),
        Kernel::new_prepared("Unsqueeze", |_, call| {
            let axes = call.ints_attribute("axes")?.map(<[i64]>::to_vec);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
                // Axes count in the output, which has the dimensions that they name.
                shape::resolve_axes(axes.as_deref().unwrap_or_default(), call.output(0)?.dims().len())?;
                reshape(cpu, call)
            }))
        })
        .until_version(12)
        .with_inputs([input])
        .with_outputs([output])
        .with_in_place(0, 0),
        same("Unsqueeze").since_version(13).with_inputs([input, host_operand("axes", DtypeSet::I64)]),
        Kernel::new("BitCast", |cpu: &Cpu, call: &KernelCall<'_>| {
            copy_bits(cpu, &call.input(0)?, &call.output(0)?)
        })
        .since_version(26)
        .with_inputs([OperandSpec::new(BITCASTABLE_DTYPES)])
        .with_outputs([OperandSpec::new(BITCASTABLE_DTYPES)])
        .with_in_place(0, 0),
    ]
}

fn reshape(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    copy_contiguous(cpu, &call.input(0)?, &call.output(0)?)
}

fn identity(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    if input.strides().is_empty() {
        return copy_contiguous(cpu, &input, &output);
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
        let (from, to) = (strided_element_bytes::<N>(&input)?, element_bytes_mut::<N>(&output)?);
        StridedCopy::new(0, &shape::shape_dims(&input)?, &strides, from.len())?.copy_into(cpu, from, to)
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn reshaping_keeps_all_elements_in_order() {
        let input = TestArray::from_values(&[2, 3], &[1i16, 2, 3, 4, 5, 6]);
        let shape = TestArray::from_values(&[2], &[3i64, -1]);
        let results = KERNELS.run_kernel(
            "Reshape",
            14,
            &[],
            &[Some(&input), Some(&shape)],
            &[Some((Dtype::I16, &[3, 2]))],
        );
        assert_eq!(results.unwrap()[0].as_ref().unwrap().values::<i16>(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn bits_are_seen_as_elements_of_the_same_size_only() {
        let input = TestArray::from_values(&[2], &[1f32, -0.0]);
        let results =
            KERNELS.run_kernel("BitCast", 26, &[], &[Some(&input)], &[Some((Dtype::U32, &[2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<u32>(), [0x3f80_0000, 0x8000_0000]);
        let packed = TestArray::from_bytes(Dtype::I4, &[3], &[0x1f, 0x0e]);
        let results =
            KERNELS.run_kernel("BitCast", 26, &[], &[Some(&packed)], &[Some((Dtype::U4, &[3]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [0x1f, 0x0e]);
        for wrong in [(Dtype::U16, &[2][..]), (Dtype::U32, &[1]), (Dtype::U4, &[2])] {
            assert!(KERNELS.run_kernel("BitCast", 26, &[], &[Some(&input)], &[Some(wrong)]).is_err());
        }
    }

    #[test]
    fn every_op_that_keeps_elements_takes_scalars_and_empty_tensors() {
        for op in ["Identity", "Flatten", "Squeeze", "Reshape"] {
            let scalar = TestArray::from_values(&[], &[7u8]);
            let results =
                KERNELS.run_kernel(op, 1, &[], &[Some(&scalar)], &[Some((Dtype::U8, &[]))]).unwrap();
            assert_eq!(results[0].as_ref().unwrap().bytes(), [7], "{op}");
            let empty = TestArray::from_values::<f32>(&[0, 3], &[]);
            let results =
                KERNELS.run_kernel(op, 1, &[], &[Some(&empty)], &[Some((Dtype::F32, &[3, 0]))]).unwrap();
            assert!(results[0].as_ref().unwrap().bytes().is_empty(), "{op}");
        }
    }

    #[test]
    fn packed_elements_are_copied_when_contiguous() {
        let input = TestArray::from_bytes(Dtype::U4, &[3], &[0x21, 0x03]);
        let axes = TestArray::from_values(&[1], &[0i64]);
        let results = KERNELS.run_kernel(
            "Unsqueeze",
            21,
            &[],
            &[Some(&input), Some(&axes)],
            &[Some((Dtype::U4, &[1, 3]))],
        );
        assert_eq!(results.unwrap()[0].as_ref().unwrap().bytes(), [0x21, 0x03]);
    }

    #[test]
    fn a_strided_input_becomes_contiguous() {
        let values: Vec<i32> = (0..24).collect();
        let input = TestArray::from_values(&[24], &values).with_strides(&[3, 2], &[4, 12], 1);
        let results =
            KERNELS.run_kernel("Identity", 19, &[], &[Some(&input)], &[Some((Dtype::I32, &[3, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [1, 13, 5, 17, 9, 21]);
    }

    #[test]
    fn strides_that_lead_out_of_the_input_are_refused() {
        for strides in [[4, 24], [-1, 1]] {
            let input = TestArray::from_values(&[24], &[0f64; 24]).with_strides(&[3, 2], &strides, 0);
            let message = KERNELS
                .run_kernel("Identity", 19, &[], &[Some(&input)], &[Some((Dtype::F64, &[3, 2]))])
                .unwrap_err();
            assert!(message.contains("inside of the 24"), "{message}");
        }
    }

    #[test]
    fn an_output_that_does_not_fit_is_refused() {
        let input = TestArray::from_values(&[2], &[1u8, 2]);
        let axes = [("axes", TestAttribute::Ints(&[0]))];
        let message = KERNELS
            .run_kernel("Squeeze", 11, &axes, &[Some(&input)], &[Some((Dtype::U8, &[3]))])
            .unwrap_err();
        assert!(message.contains("2 elements") && message.contains("[3]"), "{message}");
    }
}
