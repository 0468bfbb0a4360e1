//! Products in bf16 of rows and a constant matrix, which is rounded and packed once. That halves the time to read it, which
//! dominates for a few rows; with AVX512-BF16, products of many rows are faster as well.

use std::sync::Arc;

use oarlock_cpu_base::constant_cache::{self, ConstantCache};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_gemm::{FEW_ROWS, GemmShape, ScratchBuffer};
use oarlock_cpu_nhwc::channels_last::{Bf16Matmul, Bf16Matrix};
use oarlock_products::GemmSize;
use oarlock_sdk::{KernelCall, Result, ensure};

use super::{FusedMatmulPlan, PreparedMatmul};

/// Everything that a packed matrix depends on: transposition, columns, rows, and the instruction set.
type Bf16MatrixKey = (bool, usize, usize, Isa);

static BF16_MATRICES: ConstantCache<Bf16MatrixKey, Bf16Matrix> = ConstantCache::new();

/// The product of a call, or an error with the reason why bf16 does not apply.
pub(super) fn plan_bf16(cpu: &Cpu, plan: &FusedMatmulPlan, call: &KernelCall<'_>) -> Result<Bf16Matmul> {
    let GemmShape { items, rows, columns, depth } = plan.sizes;
    ensure!(
        // Rounding B in each run would cost as much as it saves.
        call.input(1)?.is_constant() && plan.right.len() == 1 && items == 1 && !plan.transposed.0,
        unimplemented,
        "expected one constant B and an A that is not transposed for a product in bf16, found others"
    );
    let extent = GemmSize { rows: plan.rows, columns, depth };
    let repeats = |c: &[i64]| {
        Ok::<_, oarlock_sdk::PluginError>(
            c.last() == Some(&(columns as i64)) && extent.addend_strides(c)?[0] == 0,
        )
    };
    let is_row = call.optional_input(2)?.map_or(Ok(true), |c| repeats(c.dims()))?;
    ensure!(
        is_row && call.float_attribute("alpha")?.unwrap_or(1.0) == 1.0,
        unimplemented,
        "expected no factor and the same C for all rows for a product in bf16, found others"
    );
    // Widening bf16 costs a shift per vector, which is free while the loop waits for memory.
    let is_few = rows <= FEW_ROWS && cpu.isa() > Isa::Scalar;
    ensure!(
        cpu.isa().prefers_bf16() || is_few,
        unimplemented,
        "expected at most {FEW_ROWS} rows, or a processor that multiplies bf16 faster than f32, found {rows} and none"
    );
    Ok(Bf16Matmul::new(cpu, rows, columns, depth))
}

/// Prepares a call.
pub(super) fn prepare_bf16(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Arc<PreparedMatmul>> {
    let plan = FusedMatmulPlan::new(call)?;
    let product = plan_bf16(cpu, &plan, call)?;
    let (b, is_transposed) = (call.input(1)?, plan.transposed.1);
    let key = (is_transposed, plan.sizes.columns, plan.sizes.depth, cpu.isa());
    let matrix = BF16_MATRICES.get_or_make_at(constant_cache::constant_range(&b), key, || {
        call.read_constant(1, false)?;
        // SAFETY: device memory is host memory, and the operand is a constant that was just read.
        let elements = unsafe { b.constant_elements::<f32>()? };
        Ok::<_, oarlock_sdk::PluginError>(product.pack_matrix(cpu, &elements, is_transposed))
    })?;
    call.describe_kernel(&format!("GEMM in bf16, constant packed, {}", cpu.isa()));
    let activation = FusedActivation::from_attributes(call)?;
    Ok(Arc::new(move |cpu, call| {
        plan.expect_shapes(call)?;
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (a, c, z, y) = unsafe {
            (
                call.input(0)?.elements::<f32>()?,
                call.optional_input(2)?.map(|c| c.elements()).transpose()?,
                call.optional_input(3)?.map(|z| z.elements()).transpose()?,
                call.output(0)?.elements_mut()?,
            )
        };
        let columns = plan.sizes.columns;
        ensure!(
            c.is_none_or(|c: &[f32]| c.len() == columns) && a.len() == plan.sizes.rows * plan.sizes.depth,
            invalid_argument,
            "expected a C of {columns} elements, found another"
        );
        if y.is_empty() {
            return Ok(());
        }
        product.compute(cpu, (a, &matrix), (c, z), activation, y, &mut ScratchBuffer::from_call(call));
        Ok(())
    }))
}
