//! Matrix products: `MatMul`, `Gemm`, their integer forms, `Einsum`, and `MatMul` with a fused epilogue. All of them use
//! [`oarlock_cpu_gemm`].

mod block_quantized;
mod einsum;
mod epilogue;
mod float_matmul;
mod fused;
mod gemm;
mod integer;
mod matmul_shape;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{ConvertTo, OperandForm, StoredElement};
use oarlock_products::dimension_size;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, PluginError, dtype_set};

/// The dtypes of products in ONNX.
const MATMUL_DTYPES: DtypeSet = dtype_set(&[
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
    Dtype::I32,
    Dtype::I64,
    Dtype::U32,
    Dtype::U64,
]);

pub(crate) fn matmul_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![
        float_matmul::matmul_kernel(),
        gemm::gemm_kernel(),
        fused::fused_matmul_kernel(),
        block_quantized::block_matmul_kernel(),
        einsum::einsum_kernel(),
    ];
    kernels.extend(integer::integer_matmul_kernels());
    kernels
}

/// The form of operands with this element type: in place if elements need no conversion.
fn matrix_form<E: StoredElement>(items: usize, side_by_side: bool) -> OperandForm {
    if <E as ConvertTo<E::ComputeType>>::IS_IDENTITY {
        OperandForm::InPlace { items, side_by_side }
    } else {
        OperandForm::Anew { items }
    }
}

/// Reports the algorithm of a product.
fn describe_product(cpu: &Cpu, call: &KernelCall<'_>, is_packed: bool) {
    let description = if is_packed { "GEMM, constant packed" } else { "GEMM" };
    call.describe_kernel(&format!("{description}, {}", cpu.isa().without_amx()));
}

/// The error for an operand that is smaller than its shape, which earlier checks rule out.
fn operand_size_error() -> PluginError {
    PluginError::out_of_range("expected operands as large as their shapes say, found smaller ones")
}
