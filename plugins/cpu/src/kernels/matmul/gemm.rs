//! `Gemm`: alpha times a product of two matrices, either of which may be turned, plus beta times a third.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_products::{Extent, Gemm};
use oarlock_sdk::{Call, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, dispatch};

use super::shape::sizes;
use super::{NUMBERS, form, too_small};
use crate::device::Cpu;
use crate::gemm::{
    self, FEW, Finish, Form, Matrix, Number, Packed, Scratch, Side, Sizes, Stored, compute_stored,
};

pub(super) fn kernel() -> Kernel<Cpu> {
    let number = Operand::new(NUMBERS).group(1);
    Kernel::prepared("Gemm", |cpu: &Cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => prepare::<T>(cpu, call))
    })
    .workspace(|cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => workspace::<T>(cpu, call))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        number.named("A").rank(2, 2),
        number.named("B").rank(2, 2),
        number.named("C").rank(0, 2).flags(OperandFlags::OPTIONAL),
    ])
    .outputs([number.named("Y").rank(2, 2)])
}

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

fn right<'a, E>(settings: &Gemm, elements: &'a [E], sizes: &Sizes) -> Result<Matrix<'a, E>> {
    let (lane, step) = if settings.b_turned { (sizes.depth, 1) } else { (1, sizes.columns) };
    Matrix::new(elements, vec![0], (sizes.columns, lane), (sizes.depth, step)).ok_or_else(too_small)
}

fn prepare<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<Arc<Run>> {
    let settings = Gemm::new(call)?;
    let b = call.input(1)?;
    let sizes = sizes(settings.extent(call.input(0)?.dims(), b.dims())?, 1);
    let packed = if packs(&sizes, &b) {
        // SAFETY: the device's memory is the host's, and a constant is never written.
        let right = right::<E>(&settings, unsafe { b.elements() }?, &sizes)?;
        Some(Packed::right(cpu, &right, sizes.columns, sizes.depth))
    } else {
        None
    };
    super::describe(cpu, call, packed.is_some());
    Ok(Arc::new(move |cpu, call| multiply::<E>(cpu, call, settings, packed.as_ref())))
}

/// Whether a constant right operand is worth a packed copy: few rows read it once, as it lies.
fn packs(sizes: &Sizes, b: &Tensor<'_>) -> bool {
    b.is_constant() && sizes.rows > FEW
}

fn workspace<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<u64> {
    let settings = Gemm::new(call)?;
    let b = call.input(1)?;
    let sizes = sizes(settings.extent(call.input(0)?.dims(), b.dims())?, 1);
    let right = if packs(&sizes, &b) { Form::Packed } else { form::<E>(1, !settings.b_turned) };
    let left = form::<E>(1, settings.a_turned);
    let buffered = matches!(left, Form::Anew { .. });
    Ok(gemm::scratch_size::<E::Computed>(cpu, sizes, (left, right), buffered))
}

fn multiply<E: Stored>(
    cpu: &Cpu,
    call: &Call<'_>,
    settings: Gemm,
    packed: Option<&Packed<E::Computed>>,
) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let extent = settings.extent(a.dims(), b.dims())?;
    extent.check_output(y.dims())?;
    let sizes = sizes(extent, 1);
    let addend = call.optional_input(2)?.map(|c| Addend::<E>::new(&c, &extent)).transpose()?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (a, b, y) = unsafe { (a.elements::<E>()?, b.elements::<E>()?, y.elements_mut::<E>()?) };
    let (lane, step) = if settings.a_turned { (1, sizes.rows) } else { (sizes.depth, 1) };
    let left = Matrix::new(a, vec![0], (sizes.rows, lane), (sizes.depth, step)).ok_or_else(too_small)?;
    let right = right(&settings, b, &sizes)?;
    let fits = |packed: &&Packed<_>| (packed.lanes(), packed.depth()) == (sizes.columns, sizes.depth);
    let right = match packed.filter(fits) {
        Some(packed) => Side::Packed(packed),
        None => Side::Operand(&right),
    };
    let scale_and_add: &Finish<'_, E::Computed> = &|mut part| {
        let columns = part.columns.clone();
        for (row, numbers) in part.each_row() {
            for (column, number) in columns.clone().zip(numbers) {
                let scaled = E::scale(*number, settings.alpha);
                *number = match &addend {
                    Some(addend) => scaled.plus(E::scale(addend.at(row, column), settings.beta)),
                    None => scaled,
                };
            }
        }
    };
    let finish = (settings.alpha != 1.0 || addend.is_some()).then_some(scale_and_add);
    compute_stored(cpu, sizes, (Side::Operand(&left), right), y, finish, &mut Scratch::of(call));
    Ok(())
}

/// The third matrix, which is repeated along dimensions of 1.
struct Addend<'a, E> {
    elements: &'a [E],
    row: usize,
    column: usize,
}

impl<'a, E: Stored> Addend<'a, E> {
    fn new(c: &Tensor<'a>, extent: &Extent) -> Result<Self> {
        let [row, column] = extent.addend_steps(c.dims())?;
        // SAFETY: the device's memory is the host's, and the call vouches for its operands.
        Ok(Self { elements: unsafe { c.elements() }?, row, column })
    }

    fn at(&self, row: usize, column: usize) -> E::Computed {
        self.elements[row * self.row + column * self.column].convert()
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    #[test]
    fn operands_are_turned_scaled_and_added() {
        let a = Array::of(&[3, 2], &[1f32, 2., 3., 4., 5., 6.]);
        let b = Array::of(&[2, 3], &[1f32, 0., 1., 0., 1., 1.]);
        let c = Array::of(&[2, 1], &[10f32, 20.]);
        let attributes = [
            ("transA", Attribute::Int(1)),
            ("transB", Attribute::Int(1)),
            ("alpha", Attribute::Float(2.0)),
            ("beta", Attribute::Float(0.5)),
        ];
        let inputs = [Some(&a), Some(&b), Some(&c)];
        let results = run("Gemm", 13, &attributes, &inputs, &[Some((Dtype::F32, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [17., 21., 26., 30.]);
    }

    #[test]
    fn an_empty_depth_leaves_the_addend() {
        let (a, b) = (Array::of::<f32>(&[2, 0], &[]), Array::of::<f32>(&[0, 2], &[]));
        let c = Array::of(&[2], &[1f32, 2.]);
        let inputs = [Some(&a), Some(&b), Some(&c)];
        let results = run("Gemm", 13, &[], &inputs, &[Some((Dtype::F32, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [1., 2., 1., 2.]);
    }

    #[test]
    fn an_addend_that_cannot_be_repeated_is_refused() {
        let (a, c) = (Array::of(&[2, 2], &[1f32; 4]), Array::of(&[3], &[1f32; 3]));
        let inputs = [Some(&a), Some(&a), Some(&c)];
        let message = run("Gemm", 13, &[], &inputs, &[Some((Dtype::F32, &[2, 2]))]).unwrap_err();
        assert!(message.contains("found shape [3]"), "{message}");
    }
}
