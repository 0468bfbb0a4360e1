//! Products of matrices: `MatMul`, `Gemm`, their integer forms, `Einsum`, and `MatMul` with all that often follows it. All
//! are on the one product in [`crate::gemm`].

mod blocks;
mod einsum;
mod finish;
mod fused;
mod gemm;
mod integer;
mod plain;
pub(crate) mod quantised;
mod shape;

use oarlock_products::size;
use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, dtype_set};

use crate::device::Cpu;
use crate::gemm::{Convert, Form, Stored};

/// What products take, as ONNX has it.
const NUMBERS: DtypeSet = dtype_set(&[
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
    Dtype::I32,
    Dtype::I64,
    Dtype::U32,
    Dtype::U64,
]);

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels =
        vec![plain::kernel(), gemm::kernel(), fused::kernel(), blocks::kernel(), einsum::kernel()];
    kernels.extend(integer::kernels());
    kernels
}

/// How matrices of this element are read.
fn form<E: Stored>(items: usize, side_by_side: bool) -> Form {
    if <E as Convert<E::Computed>>::SAME {
        Form::InPlace { items, side_by_side }
    } else {
        Form::Anew { items }
    }
}

/// Says how a product is computed.
fn describe(cpu: &Cpu, call: &Call<'_>, is_packed: bool) {
    let way = if is_packed { "GEMM, constant packed" } else { "GEMM" };
    call.describe(&format!("{way}, {}", cpu.isa().without_tiles()));
}

/// An operand whose elements lie outside of its memory, which its own checks rule out.
fn too_small() -> Error {
    Error::out_of_range("expected operands as large as their shapes say, found smaller ones")
}
