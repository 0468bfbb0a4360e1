//! `MatMul` of the domain `oarlock`: products with all that often follows them, done while the results are in the cache.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod rounded;

use std::sync::Arc;

use oarlock_products::{Extent, MatMul};
use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, dtype_set, ensure,
};

use super::finish::{Addend, Finishing};
use super::shape::{sizes, starts};
use super::{form, too_small};
use crate::constants::{self, Constants};
use crate::device::Cpu;
use crate::gemm::{self, FEW, Form, Matrix, Packed, Product, Scratch, Side, Sizes};
use crate::kernels::activation::Activation;
use crate::kernels::precision::Precision;

const FLOATS: DtypeSet = dtype_set(&[Dtype::F32]);

pub(super) fn kernel() -> Kernel<Cpu> {
    let float = Operand::new(FLOATS).group(1);
    let optional = float.flags(OperandFlags::OPTIONAL);
    Kernel::prepared("MatMul", |cpu: &Cpu, call| {
        if Precision::of(call)? == Precision::Bf16 {
            return rounded::prepare(cpu, call);
        }
        let state = State::new(cpu, call)?;
        let run: Arc<Run> = Arc::new(move |cpu: &Cpu, call: &Call<'_>| state.run(cpu, call));
        Ok(run)
    })
    .domain("oarlock")
    .supports(|cpu, call| match Precision::of(call)? {
        Precision::F32 => Ok(()),
        Precision::Bf16 => rounded::product(cpu, &Plan::new(call)?, call).map(drop),
    })
    .workspace(|cpu, call| {
        let plan = Plan::new(call)?;
        if Precision::of(call)? == Precision::Bf16 {
            return Ok(rounded::product(cpu, &plan, call)?.scratch_size());
        }
        let b = call.input(1)?;
        let right = if plan.packs(b.is_constant()) {
            Form::Packed
        } else {
            form::<f32>(plan.right.len(), !plan.turned.1)
        };
        let left = form::<f32>(plan.left.len(), plan.turned.0);
        Ok(gemm::scratch_size::<f32>(cpu, plan.sizes, (left, right), false))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        float.named("A").rank(2, u32::MAX),
        float.named("B").rank(2, u32::MAX).flags(OperandFlags::UNALIGNED),
        optional.named("C").rank(0, 2),
        optional.named("Z").rank(2, u32::MAX),
    ])
    .outputs([float.named("Y").rank(2, u32::MAX)])
}

/// What runs a call that was prepared.
type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

/// What follows from the shapes and attributes of a call.
struct Plan {
    sizes: Sizes,
    /// Where the matrices of each product start; one place when all share it.
    left: Vec<usize>,
    right: Vec<usize>,
    /// Whether the matrices of A and of B are turned.
    turned: (bool, bool),
    /// The rows of each matrix of the output. Those of several may be the rows of one product.
    rows: usize,
    dims: [Vec<i64>; 3],
}

impl Plan {
    fn new(call: &Call<'_>) -> Result<Self> {
        let is_set = |name| Ok::<_, oarlock_sdk::Error>(call.int(name)?.unwrap_or(0) != 0);
        let turned = (is_set("transA")?, is_set("transB")?);
        let (a, b) = (call.input(0)?.dims(), call.input(1)?.dims());
        let upright = |dims: &[i64], turned: bool| {
            let mut dims = dims.to_vec();
            if let ([.., rows, columns], true) = (dims.as_mut_slice(), turned) {
                std::mem::swap(rows, columns);
            }
            dims
        };
        // Turned matrices do not lie one below the other as the rows of one.
        let most_rows = if turned.0 { 0 } else { usize::MAX };
        let a_upright = upright(a, turned.0);
        let MatMul { extent, batch, output } = MatMul::new(&a_upright, &upright(b, turned.1), most_rows)?;
        let rows = a_upright.iter().rev().nth(1).map_or(1, |rows| *rows as usize);
        let (left, right) = starts(&batch)?;
        let dims = [a.to_vec(), b.to_vec(), output];
        Ok(Self { sizes: sizes(extent, batch.count), left, right, turned, rows, dims })
    }

    /// Checks that operands have the shapes that were prepared for.
    fn expect_shapes(&self, call: &Call<'_>) -> Result<()> {
        let y = call.output(0)?;
        let found = [call.input(0)?.dims(), call.input(1)?.dims(), y.dims()];
        ensure!(
            self.dims == found,
            invalid_argument,
            "expected operands of the shapes {:?} that were prepared for, found {found:?}",
            self.dims
        );
        if let Some(z) = call.optional_input(3)? {
            ensure!(
                z.dims() == y.dims(),
                invalid_argument,
                "expected Z of shape {:?}, found {:?}",
                y.dims(),
                z.dims()
            );
        }
        Ok(())
    }

    /// Whether B is worth a packed copy: a single matrix that does not change and is not read in one pass.
    fn packs(&self, is_constant: bool) -> bool {
        is_constant && self.right.len() == 1 && (self.sizes.rows > FEW || self.sizes.items > 1)
    }

    fn left<'a>(&self, elements: &'a [f32]) -> Result<Matrix<'a, f32>> {
        let Sizes { rows, depth, .. } = self.sizes;
        let (lane, step) = if self.turned.0 { (1, rows) } else { (depth, 1) };
        Matrix::new(elements, self.left.clone(), (rows, lane), (depth, step)).ok_or_else(too_small)
    }

    /// Whether B is read in one pass for certain, from whatever address.
    fn streams(&self) -> bool {
        let Sizes { items, rows, columns, depth } = self.sizes;
        items == 1 && rows <= FEW && columns > 1 && depth > 0 && !(self.turned.0 && self.turned.1)
    }

    fn right<'a, E>(&self, elements: &'a [E]) -> Result<Matrix<'a, E>> {
        let Sizes { columns, depth, .. } = self.sizes;
        let (lane, step) = if self.turned.1 { (depth, 1) } else { (1, columns) };
        Matrix::new(elements, self.right.clone(), (columns, lane), (depth, step)).ok_or_else(too_small)
    }
}

/// What decides how a constant is packed: whether it is turned, its columns and its rows, and how wide panels are.
type Key = (bool, usize, usize, usize);

static PACKED: Constants<Key, Packed<f32>> = Constants::new();

/// Constants that are read where they lie, but lie where they cannot be.
static ALIGNED: Constants<(), Vec<f32>> = Constants::new();

struct State {
    plan: Plan,
    right: Right,
    alpha: f32,
    activation: Activation,
}

/// Where B is read.
enum Right {
    /// Where the call has it.
    InPlace,
    /// There too, but as bytes: a constant may lie at any address.
    Anywhere,
    /// From a copy, as its address fits no element.
    Aligned(Arc<Vec<f32>>),
    Packed(Arc<Packed<f32>>),
}

impl State {
    fn new(cpu: &Cpu, call: &Call<'_>) -> Result<Self> {
        let plan = Plan::new(call)?;
        let b = call.input(1)?;
        let Sizes { columns, depth, .. } = plan.sizes;
        // SAFETY: the device's memory is the host's, and the operand is constant where this is asked for.
        let elements = || unsafe { b.constant_elements::<f32>() };
        let place = constants::place(&b);
        let right = if plan.packs(b.is_constant()) {
            let key = (plan.turned.1, columns, depth, Packed::<f32>::right_width(cpu));
            let pack = || Ok(Packed::right(cpu, &plan.right(&elements()?)?, columns, depth));
            Right::Packed(PACKED.get_or_make_at(place, key, pack)?)
        } else if place.0.is_multiple_of(align_of::<f32>()) || !b.is_constant() {
            Right::InPlace
        } else if plan.streams() {
            Right::Anywhere
        } else {
            Right::Aligned(ALIGNED.get_or_make_at(place, (), || Ok(elements()?.into_owned()))?)
        };
        let way = match right {
            Right::Packed(_) => "GEMM, constant packed",
            Right::Anywhere | Right::Aligned(_) | Right::InPlace if plan.streams() => {
                "matrix read in one pass"
            }
            Right::Anywhere | Right::Aligned(_) | Right::InPlace => "GEMM",
        };
        call.describe(&format!("{way}, {}", cpu.isa().without_tiles()));
        let alpha = call.float("alpha")?.unwrap_or(1.0) as f32;
        Ok(Self { plan, right, alpha, activation: Activation::of(call)? })
    }

    fn run(&self, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
        let plan = &self.plan;
        let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
        let (c, z) = (call.optional_input(2)?, call.optional_input(3)?);
        plan.expect_shapes(call)?;
        let Sizes { columns, depth, .. } = plan.sizes;
        let extent = Extent { rows: plan.rows, columns, depth };
        // SAFETY: the device's memory is the host's, and the call vouches for its operands.
        let (addend, residual) = unsafe {
            let addend =
                c.map(|c| Ok(Addend::new(c.elements()?, extent.addend_steps(c.dims())?))).transpose();
            (addend?, z.map(|z| z.elements::<f32>()).transpose()?)
        };
        // SAFETY: as above.
        let (a, y) = unsafe { (a.elements()?, y.elements_mut::<f32>()?) };
        if y.is_empty() {
            return Ok(());
        }
        let left = plan.left(a)?;
        let (matrix, bytes);
        let right = match &self.right {
            Right::Packed(packed) => Side::Packed(&**packed),
            Right::Aligned(elements) => {
                matrix = plan.right(elements)?;
                Side::Operand(&matrix)
            }
            Right::Anywhere => {
                // SAFETY: as above.
                bytes = plan.right(unsafe { b.element_bytes::<f32>()? }.as_chunks::<4>().0)?;
                Side::Operand(&bytes)
            }
            Right::InPlace => {
                // SAFETY: as above.
                matrix = plan.right(unsafe { b.elements()? })?;
                Side::Operand(&matrix)
            }
        };
        let finishing = Finishing {
            isa: cpu.isa(),
            rows_of_product: plan.sizes.rows,
            rows: plan.rows,
            columns,
            alpha: self.alpha,
            addend,
            residual,
            activation: self.activation,
        };
        let finish = &|part: gemm::Finished<'_, f32>| finishing.finish(part);
        let product = Product {
            sizes: plan.sizes,
            left: Side::Operand(&left),
            right,
            output: Some(y),
            finish: (!finishing.is_empty()).then_some(finish),
        };
        product.compute(cpu, &mut Scratch::of(call));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
