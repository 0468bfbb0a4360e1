//! `MatMul` of the domain `oarlock`: products with a fused epilogue, which runs while the results are in cache.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod bf16_product;

use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::constant_cache::{self, ConstantCache};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::product_precision::ProductPrecision;
use oarlock_cpu_gemm::{
    BatchedGemm, FEW_ROWS, GemmOperand, GemmShape, OperandForm, OutputBlock, PackedOperand, ScratchBuffer,
    StridedMatrix, gemm_scratch_size,
};
use oarlock_products::{GemmSize, MatMulProblem};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, dtype_set, ensure,
};

use super::epilogue::{MatmulAddend, MatmulEpilogue};
use super::matmul_shape::{gemm_shape, matrix_starts};
use super::{matrix_form, operand_size_error};

const FLOATS: DtypeSet = dtype_set(&[Dtype::F32]);

pub(super) fn fused_matmul_kernel() -> Kernel<Cpu> {
    let float = OperandSpec::new(FLOATS).with_dtype_group(1);
    let optional = float.with_flags(OperandFlags::OPTIONAL);
    Kernel::new_prepared("MatMul", |cpu: &Cpu, call| {
        // The support check already refused calls for which bf16 does not apply.
        if ProductPrecision::from_attribute(call)? == ProductPrecision::Bf16 {
            return bf16_product::prepare_bf16(cpu, call);
        }
        let state = FusedMatmulState::new(cpu, call)?;
        let run: Arc<PreparedMatmul> = Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| state.run(cpu, call));
        Ok(run)
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(|cpu, call| match ProductPrecision::from_attribute(call)? {
        ProductPrecision::F32 => Ok(()),
        ProductPrecision::Bf16 => bf16_product::plan_bf16(cpu, &FusedMatmulPlan::new(call)?, call).map(drop),
    })
    .with_workspace(|cpu, call| {
        let plan = FusedMatmulPlan::new(call)?;
        if ProductPrecision::from_attribute(call)? == ProductPrecision::Bf16 {
            return Ok(bf16_product::plan_bf16(cpu, &plan, call)?.scratch_size());
        }
        let b = call.input(1)?;
        let right = if plan.is_worth_packing(b.is_constant()) {
            OperandForm::Packed
        } else {
            matrix_form::<f32>(plan.right.len(), !plan.transposed.1)
        };
        let left = matrix_form::<f32>(plan.left.len(), plan.transposed.0);
        Ok(gemm_scratch_size::<f32>(cpu, plan.sizes, (left, right), false))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        float.with_name("A").with_rank(2, u32::MAX),
        float
            .with_name("B")
            .with_rank(2, u32::MAX)
            .with_flags(OperandFlags::UNALIGNED.union(OperandFlags::ON_DEMAND)),
        optional.with_name("C").with_rank(0, 2),
        optional.with_name("Z").with_rank(2, u32::MAX),
    ])
    .with_outputs([float.with_name("Y").with_rank(2, u32::MAX)])
}

/// Runs a prepared call.
type PreparedMatmul = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

/// Everything that is derived from the shapes and attributes of a call.
struct FusedMatmulPlan {
    sizes: GemmShape,
    /// The offset of each product's matrix; a single offset if all products share one matrix.
    left: Vec<usize>,
    right: Vec<usize>,
    /// True if the matrices of A, or of B, are transposed.
    transposed: (bool, bool),
    /// The rows of each output matrix. The rows of several matrices may form one product.
    rows: usize,
    dims: [Vec<i64>; 3],
}

impl FusedMatmulPlan {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let is_set = |name| Ok::<_, oarlock_sdk::PluginError>(call.int_attribute(name)?.unwrap_or(0) != 0);
        let transposed = (is_set("transA")?, is_set("transB")?);
        let (a, b) = (call.input(0)?.dims(), call.input(1)?.dims());
        let upright = |dims: &[i64], transposed: bool| {
            let mut dims = dims.to_vec();
            if let ([.., rows, columns], true) = (dims.as_mut_slice(), transposed) {
                std::mem::swap(rows, columns);
            }
            dims
        };
        // The rows of several transposed matrices cannot be stacked into one matrix.
        let most_rows = if transposed.0 { 0 } else { usize::MAX };
        let a_upright = upright(a, transposed.0);
        let MatMulProblem { extent, batch, output } =
            MatMulProblem::new(&a_upright, &upright(b, transposed.1), most_rows)?;
        let rows = a_upright.iter().rev().nth(1).map_or(1, |rows| *rows as usize);
        let (left, right) = matrix_starts(&batch)?;
        let dims = [a.to_vec(), b.to_vec(), output];
        Ok(Self { sizes: gemm_shape(extent, batch.count), left, right, transposed, rows, dims })
    }

    /// Checks that operands have the prepared shapes.
    fn expect_shapes(&self, call: &KernelCall<'_>) -> Result<()> {
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

    /// True if packing B pays: it is a single constant matrix, and there are enough rows that it is read more than once.
    fn is_worth_packing(&self, is_constant: bool) -> bool {
        is_constant
            && self.right.len() == 1
            && (self.sizes.repays_packing() || self.sizes.items > 1 && self.sizes.columns > 1)
    }

    fn left_matrix<'a>(&self, elements: &'a [f32]) -> Result<StridedMatrix<'a, f32>> {
        let GemmShape { rows, depth, .. } = self.sizes;
        let (lane, step) = if self.transposed.0 { (1, rows) } else { (depth, 1) };
        StridedMatrix::new(elements, self.left.clone(), (rows, lane), (depth, step))
            .ok_or_else(operand_size_error)
    }

    /// True if B is certainly read in place and in one pass, which works at any alignment.
    fn is_streamed(&self) -> bool {
        let GemmShape { items, rows, columns, depth } = self.sizes;
        items == 1
            && rows <= FEW_ROWS
            && columns > 1
            && depth > 0
            // With B transposed, outputs are dot products, for which the rows of A must be contiguous.
            && !(self.transposed.0 && self.transposed.1)
    }

    fn right_matrix<'a, E>(&self, elements: &'a [E]) -> Result<StridedMatrix<'a, E>> {
        let GemmShape { columns, depth, .. } = self.sizes;
        let (lane, step) = if self.transposed.1 { (depth, 1) } else { (1, columns) };
        StridedMatrix::new(elements, self.right.clone(), (columns, lane), (depth, step))
            .ok_or_else(operand_size_error)
    }
}

/// Everything that the packed form of a constant depends on: transposition, columns, rows, and the width of panels.
type PackedMatrixKey = (bool, usize, usize, usize);

static PACKED_MATRICES: ConstantCache<PackedMatrixKey, PackedOperand<f32>> = ConstantCache::new();

/// Aligned copies of constants that are read in place but lie at unaligned addresses.
static ALIGNED_MATRICES: ConstantCache<(), Vec<f32>> = ConstantCache::new();

struct FusedMatmulState {
    plan: FusedMatmulPlan,
    right: RightMatrix,
    alpha: f32,
    activation: FusedActivation,
}

enum RightMatrix {
    /// In the operand of the call.
    InPlace,
    /// In the operand of the call as well, but read as bytes, since a constant may have any alignment.
    Anywhere,
    /// In an aligned copy.
    Aligned(Arc<Vec<f32>>),
    Packed(Arc<PackedOperand<f32>>),
}

impl FusedMatmulState {
    fn new(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Self> {
        let plan = FusedMatmulPlan::new(call)?;
        let b = call.input(1)?;
        let GemmShape { columns, depth, .. } = plan.sizes;
        let elements = || {
            call.read_constant(1, false)?;
            // SAFETY: device memory is host memory, and this is only called for a constant operand, which was just read.
            unsafe { b.constant_elements::<f32>() }
        };
        let place = constant_cache::constant_range(&b);
        let key = (plan.transposed.1, columns, depth, PackedOperand::<f32>::right_panel_width(cpu));
        let is_worth_packing = plan.is_worth_packing(b.is_constant());
        let kept = if b.is_constant() && !is_worth_packing { call.read_constant(1, true) } else { Ok(()) };
        let right = if let Err(failure) = kept {
            // The elements are gone. Another call may have packed them.
            RightMatrix::Packed(PACKED_MATRICES.get_or_make_at(place, key, || Err(failure))?)
        } else if is_worth_packing {
            let pack =
                || Ok(PackedOperand::pack_right(cpu, &plan.right_matrix(&elements()?)?, columns, depth));
            RightMatrix::Packed(PACKED_MATRICES.get_or_make_at(place, key, pack)?)
        } else if place.0.is_multiple_of(align_of::<f32>()) || !b.is_constant() {
            RightMatrix::InPlace
        } else if plan.is_streamed() {
            RightMatrix::Anywhere
        } else {
            // Tiled kernels need aligned elements. One copy per constant serves all calls and sessions.
            RightMatrix::Aligned(ALIGNED_MATRICES.get_or_make_at(place, (), || Ok(elements()?.into_owned()))?)
        };
        let description = match right {
            RightMatrix::Packed(_) => "GEMM, constant packed",
            RightMatrix::Anywhere | RightMatrix::Aligned(_) | RightMatrix::InPlace if plan.is_streamed() => {
                "matrix read in one pass"
            }
            RightMatrix::Anywhere | RightMatrix::Aligned(_) | RightMatrix::InPlace => "GEMM",
        };
        call.describe_kernel(&format!("{description}, {}", cpu.isa().without_amx()));
        let alpha = call.float_attribute("alpha")?.unwrap_or(1.0) as f32;
        Ok(Self { plan, right, alpha, activation: FusedActivation::from_attributes(call)? })
    }

    fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let plan = &self.plan;
        let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
        let (c, z) = (call.optional_input(2)?, call.optional_input(3)?);
        plan.expect_shapes(call)?;
        let GemmShape { columns, depth, .. } = plan.sizes;
        let extent = GemmSize { rows: plan.rows, columns, depth };
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (addend, residual) = unsafe {
            let addend =
                c.map(|c| Ok(MatmulAddend::new(c.elements()?, extent.addend_strides(c.dims())?))).transpose();
            (addend?, z.map(|z| z.elements::<f32>()).transpose()?)
        };
        // SAFETY: as above.
        let (a, y) = unsafe { (a.elements()?, y.elements_mut::<f32>()?) };
        if y.is_empty() {
            return Ok(());
        }
        let left = plan.left_matrix(a)?;
        let (matrix, bytes);
        let right = match &self.right {
            RightMatrix::Packed(packed) => GemmOperand::Packed(&**packed),
            RightMatrix::Aligned(elements) => {
                matrix = plan.right_matrix(elements)?;
                GemmOperand::Operand(&matrix)
            }
            RightMatrix::Anywhere => {
                // SAFETY: as above.
                bytes = plan.right_matrix(unsafe { b.element_bytes::<f32>()? }.as_chunks::<4>().0)?;
                GemmOperand::Operand(&bytes)
            }
            RightMatrix::InPlace => {
                // SAFETY: as above.
                matrix = plan.right_matrix(unsafe { b.elements()? })?;
                GemmOperand::Operand(&matrix)
            }
        };
        let epilogue = MatmulEpilogue {
            isa: cpu.isa(),
            rows_of_product: plan.sizes.rows,
            rows: plan.rows,
            columns,
            alpha: self.alpha,
            addend,
            residual,
            activation: self.activation,
        };
        let finish_block = &|part: OutputBlock<'_, f32>| epilogue.finish_block(part);
        let product = BatchedGemm {
            sizes: plan.sizes,
            left: GemmOperand::Operand(&left),
            right,
            output: Some(y),
            epilogue: (!epilogue.is_empty()).then_some(finish_block),
        };
        product.compute(cpu, &mut ScratchBuffer::from_call(call));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
