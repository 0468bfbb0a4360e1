//! `Einsum`: operands are contracted from left to right, each time as one product of matrices.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod equation;
mod labelled;

use std::sync::Arc;

use oarlock_sdk::{
    Call, Dtype, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, dispatch, dtype_set, ensure,
};

use self::equation::Equation;
use self::labelled::Labelled;
use super::NUMBERS;
use crate::device::Cpu;
use crate::gemm::Stored;

pub(super) fn kernel() -> Kernel<Cpu> {
    let narrow = dtype_set(&[Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16]);
    let number = Operand::new(NUMBERS | narrow).group(1);
    Kernel::prepared("Einsum", |_: &Cpu, call| {
        let text = call.string("equation")?;
        let text = text.ok_or_else(|| Error::invalid_argument("expected an attribute `equation`, found none"))?;
        let equation = Equation::new(text)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            let dtype = call.output(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16 + i8 + u8 + i16 + u16 + i32 + i64 + u32 + u64, T => einsum::<T>(cpu, call, &equation))
        }))
    })
    .since(12)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([number.named("Inputs").flags(OperandFlags::VARIADIC)])
    .outputs([number.named("Output")])
}

fn einsum<E: Stored>(cpu: &Cpu, call: &Call<'_>, equation: &Equation) -> Result<()> {
    let shapes: Vec<_> = (0..call.input_count())
        .map(|index| call.input(index).map(|input| input.dims()))
        .collect::<Result<_>>()?;
    let labels = equation.labels(&shapes)?;
    let expected: Vec<i64> = labels.output.iter().map(|label| labels.size(*label) as i64).collect();
    let y = call.output(0)?;
    ensure!(
        y.dims() == expected,
        invalid_argument,
        "expected an output of shape {expected:?} for `{}`, found {:?}",
        equation.text(),
        y.dims()
    );
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let y = unsafe { y.elements_mut::<E>() }?;
    let mut result: Option<Labelled<E::Computed>> = None;
    for (index, names) in labels.inputs.iter().enumerate() {
        let input = call.input(index)?;
        // SAFETY: as above.
        let elements = unsafe { input.elements::<E>() }?.iter().map(|element| element.convert()).collect();
        let operand = Labelled::new(elements, input.dims(), names, |label| labels.size(label));
        let is_needed = |label| {
            labels.output.contains(&label)
                || labels.inputs[index + 1..].iter().any(|names| names.contains(&label))
        };
        result = Some(match result {
            None => operand,
            Some(before) => before.contracted(&operand, &is_needed, cpu)?,
        });
    }
    let Some(result) = result else { return Err(Error::invalid_argument("expected inputs, found none")) };
    for (element, number) in y.iter_mut().zip(result.summed_to(&labels.output)?) {
        *element = E::store(number);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, Run, run};

    fn einsum(equation: &str, inputs: &[&Array], dims: &[i64]) -> Run {
        let inputs: Vec<_> = inputs.iter().map(|input| Some(*input)).collect();
        run("Einsum", 12, &[("equation", Attribute::Text(equation))], &inputs, &[Some((Dtype::F32, dims))])
    }

    fn counting(dims: &[i64]) -> Array {
        let count = dims.iter().product::<i64>();
        Array::of(dims, &(0..count).map(|value| value as f32).collect::<Vec<_>>())
    }

    fn values(run: Run) -> Vec<f32> {
        run.unwrap()[0].as_ref().unwrap().values::<f32>().to_vec()
    }

    #[test]
    fn one_operand_is_turned_summed_and_its_diagonal_taken() {
        let matrix = counting(&[2, 3]);
        assert_eq!(values(einsum("ij->ji", &[&matrix], &[3, 2])), [0., 3., 1., 4., 2., 5.]);
        assert_eq!(values(einsum("ij->i", &[&matrix], &[2])), [3., 12.]);
        assert_eq!(values(einsum("ii", &[&counting(&[3, 3])], &[])), [12.]);
        assert_eq!(values(einsum("...ii ->...i", &[&counting(&[2, 2, 2])], &[2, 2])), [0., 3., 4., 7.]);
    }

    #[test]
    fn sums_of_bytes_keep_their_lowest_bits() {
        let bytes = Array::of(&[2, 2], &[200u8, 100, 3, 4]);
        let output = [Some((Dtype::U8, &[2, 2][..]))];
        let inputs = [Some(&bytes), Some(&bytes)];
        let made =
            run("Einsum", 12, &[("equation", Attribute::Text("ij,jk->ik"))], &inputs, &output).unwrap();
        assert_eq!(made[0].as_ref().unwrap().values::<u8>(), [108, 176, 100, 60]);
    }

    #[test]
    fn operands_are_multiplied_over_their_common_labels() {
        let (a, b) = (counting(&[2, 3]), counting(&[3, 2]));
        assert_eq!(values(einsum("ij, jk", &[&a, &b], &[2, 2])), [10., 13., 28., 40.]);
        assert_eq!(values(einsum("i,i", &[&counting(&[4]), &counting(&[4])], &[])), [14.]);
        let (a, b) = (counting(&[2, 1, 2]), counting(&[1, 2, 2]));
        let expected = [1., 3., 3., 13.];
        assert_eq!(values(einsum("bij,bjk->bik", &[&a, &b], &[2, 1, 2]))[..2], [2., 3.]);
        assert_eq!(values(einsum("...ij,...kj->...ik", &[&a, &b], &[2, 1, 2])), expected);
    }

    #[test]
    fn three_operands_are_contracted_in_turn() {
        let (a, b, c) = (counting(&[2, 2]), counting(&[2, 2]), counting(&[2]));
        assert_eq!(values(einsum("ij,jk,k->i", &[&a, &b, &c], &[2])), [3., 11.]);
    }

    #[test]
    fn equations_that_do_not_fit_are_refused() {
        let a = counting(&[2, 3]);
        for (equation, reason) in [
            ("ij,jk->ik", "2 operands"),
            ("ijk->ik", "[2, 3]"),
            ("ij->ik", "`k`"),
            ("i1->i", "`1`"),
            ("ij->ii", "twice"),
        ] {
            let message = einsum(equation, &[&a], &[2, 2]).unwrap_err();
            assert!(message.contains(reason), "{equation}: {message}");
        }
    }
}
