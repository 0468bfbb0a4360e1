//! `Einsum`: contracts operands from left to right, each time by one batched matrix product.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod equation;
mod labeled_array;

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{GemmElement, StoredElement};
use oarlock_sdk::{
    Dtype, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, TensorView,
    dispatch, dtype_set, ensure,
};

use self::equation::{EinsumEquation, EinsumLabels};
use self::labeled_array::LabeledArray;
use super::MATMUL_DTYPES;

pub(super) fn einsum_kernel() -> Kernel<Cpu> {
    let narrow = dtype_set(&[Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16]);
    let number = OperandSpec::new(MATMUL_DTYPES | narrow).with_dtype_group(1);
    Kernel::new_prepared("Einsum", |_: &Cpu, call| {
        let text = call.string_attribute("equation")?;
        let text = text.ok_or_else(|| PluginError::invalid_argument("expected an attribute `equation`, found none"))?;
        // Parsed once; shapes are only known in a call.
        let equation = EinsumEquation::new(text)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let dtype = call.output(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16 + i8 + u8 + i16 + u16 + i32 + i64 + u32 + u64, T => run_einsum::<T>(cpu, call, &equation))
        }))
    })
    .since_version(12)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([number.with_name("Inputs").with_flags(OperandFlags::VARIADIC)])
    .with_outputs([number.with_name("Output")])
}

fn run_einsum<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>, equation: &EinsumEquation) -> Result<()> {
    // Copied to the compute type, since contraction reorders dimensions anyway.
    let read_numbers = |input: &TensorView<'_>| {
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        Ok(unsafe { input.elements::<E>() }?.iter().map(|element| element.convert()).collect())
    };
    let numbers = contract_inputs(cpu, call, equation, &read_numbers)?;
    // SAFETY: as above.
    let y = unsafe { call.output(0)?.elements_mut::<E>() }?;
    for (element, number) in y.iter_mut().zip(numbers) {
        *element = E::from_computed(number);
    }
    Ok(())
}

/// Computes the output in the type of sums.
fn contract_inputs<T: GemmElement>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    equation: &EinsumEquation,
    read_numbers: &dyn Fn(&TensorView<'_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let labels = resolve_labels(call, equation)?;
    let mut result: Option<LabeledArray<T>> = None;
    for (index, names) in labels.inputs.iter().enumerate() {
        let input = call.input(index)?;
        let operand =
            LabeledArray::new(read_numbers(&input)?, input.dims(), names, |label| labels.label_size(label));
        // A label that is not used later is summed now, which keeps the intermediate arrays small.
        let is_needed = |label| {
            labels.output.contains(&label)
                || labels.inputs[index + 1..].iter().any(|names| names.contains(&label))
        };
        result = Some(match result {
            None => operand,
            Some(before) => before.contract_with(&operand, &is_needed, cpu)?,
        });
    }
    let Some(result) = result else {
        return Err(PluginError::invalid_argument("expected inputs, found none"));
    };
    result.sum_to(&labels.output)
}

/// The labels of an equation for the shapes of the inputs, which give the shape of the output.
fn resolve_labels(call: &KernelCall<'_>, equation: &EinsumEquation) -> Result<EinsumLabels> {
    let shapes: Vec<_> = (0..call.input_count())
        .map(|index| call.input(index).map(|input| input.dims()))
        .collect::<Result<_>>()?;
    let labels = equation.resolve_labels(&shapes)?;
    let expected: Vec<i64> = labels.output.iter().map(|label| labels.label_size(*label) as i64).collect();
    let y = call.output(0)?;
    ensure!(
        y.dims() == expected,
        invalid_argument,
        "expected an output of shape {expected:?} for `{}`, found {:?}",
        equation.text(),
        y.dims()
    );
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute, TestResults};

    fn run_equation(equation: &str, inputs: &[&TestArray], dims: &[i64]) -> TestResults {
        let inputs: Vec<_> = inputs.iter().map(|input| Some(*input)).collect();
        KERNELS.run_kernel(
            "Einsum",
            12,
            &[("equation", TestAttribute::Text(equation))],
            &inputs,
            &[Some((Dtype::F32, dims))],
        )
    }

    fn counting_array(dims: &[i64]) -> TestArray {
        let count = dims.iter().product::<i64>();
        TestArray::from_values(dims, &(0..count).map(|value| value as f32).collect::<Vec<_>>())
    }

    fn output_values(run: TestResults) -> Vec<f32> {
        run.unwrap()[0].as_ref().unwrap().values::<f32>().to_vec()
    }

    #[test]
    fn one_operand_is_transposed_summed_and_its_diagonal_taken() {
        let matrix = counting_array(&[2, 3]);
        assert_eq!(output_values(run_equation("ij->ji", &[&matrix], &[3, 2])), [0., 3., 1., 4., 2., 5.]);
        assert_eq!(output_values(run_equation("ij->i", &[&matrix], &[2])), [3., 12.]);
        assert_eq!(output_values(run_equation("ii", &[&counting_array(&[3, 3])], &[])), [12.]);
        assert_eq!(
            output_values(run_equation("...ii ->...i", &[&counting_array(&[2, 2, 2])], &[2, 2])),
            [0., 3., 4., 7.]
        );
    }

    #[test]
    fn sums_of_bytes_keep_their_lowest_bits() {
        let bytes = TestArray::from_values(&[2, 2], &[200u8, 100, 3, 4]);
        let output = [Some((Dtype::U8, &[2, 2][..]))];
        let inputs = [Some(&bytes), Some(&bytes)];
        let made = KERNELS
            .run_kernel("Einsum", 12, &[("equation", TestAttribute::Text("ij,jk->ik"))], &inputs, &output)
            .unwrap();
        assert_eq!(made[0].as_ref().unwrap().values::<u8>(), [108, 176, 100, 60]);
    }

    #[test]
    fn operands_are_multiplied_over_their_common_labels() {
        let (a, b) = (counting_array(&[2, 3]), counting_array(&[3, 2]));
        assert_eq!(output_values(run_equation("ij, jk", &[&a, &b], &[2, 2])), [10., 13., 28., 40.]);
        assert_eq!(
            output_values(run_equation("i,i", &[&counting_array(&[4]), &counting_array(&[4])], &[])),
            [14.]
        );
        let (a, b) = (counting_array(&[2, 1, 2]), counting_array(&[1, 2, 2]));
        let expected = [1., 3., 3., 13.];
        assert_eq!(output_values(run_equation("bij,bjk->bik", &[&a, &b], &[2, 1, 2]))[..2], [2., 3.]);
        assert_eq!(output_values(run_equation("...ij,...kj->...ik", &[&a, &b], &[2, 1, 2])), expected);
    }

    #[test]
    fn three_operands_are_contracted_in_turn() {
        let (a, b, c) = (counting_array(&[2, 2]), counting_array(&[2, 2]), counting_array(&[2]));
        assert_eq!(output_values(run_equation("ij,jk,k->i", &[&a, &b, &c], &[2])), [3., 11.]);
    }

    #[test]
    fn equations_that_do_not_fit_are_refused() {
        let a = counting_array(&[2, 3]);
        for (equation, reason) in [
            ("ij,jk->ik", "2 operands"),
            ("ijk->ik", "[2, 3]"),
            ("ij->ik", "`k`"),
            ("i1->i", "`1`"),
            ("ij->ii", "twice"),
        ] {
            let message = run_equation(equation, &[&a], &[2, 2]).unwrap_err();
            assert!(message.contains(reason), "{equation}: {message}");
        }
    }
}
