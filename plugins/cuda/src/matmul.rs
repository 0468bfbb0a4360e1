//! The row of cuBLASLt, in place of the portable one where the library is there.

use std::sync::Arc;

use oarlock_portable::{Gpus, Session};
use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, Memory, Operand, Result, Tensor, dtype_set, ensure,
};

use crate::blas::{Multiplication, Operands, WORKSPACE, check};
use crate::gpu::{Address, Cuda};
use crate::product::Product;

/// More than the 100 of the portable row.
const SCORE: i32 = 200;

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

/// The row. It is not marked as deterministic, since NVIDIA does not promise that for all algorithms.
pub(crate) fn kernel() -> Kernel<Gpus<Cuda>> {
    let matrix = |name| Operand::new(FLOATS).group(1).named(name).rank(2, u32::MAX);
    let prepare = |_: &Gpus<Cuda>, call: &Call<'_>| {
        let product = product(call)?;
        let multiplication = Multiplication::new(&product)?;
        let run = move |gpus: &Gpus<Cuda>, call: &Call<'_>| run(gpus, call, &product, &multiplication);
        Ok(Arc::new(run) as _)
    };
    Kernel::prepared("MatMul", prepare)
        .score(SCORE)
        .flags(KernelFlags::ASYNCHRONOUS)
        .inputs([matrix("A"), matrix("B")])
        .outputs([matrix("Y")])
        .supports(|_, call| product(call).and_then(|_| check()))
        .workspace(|_, _| Ok(WORKSPACE))
}

fn product(call: &Call<'_>) -> Result<Product> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    Product::new(y.dtype(), a.dims(), b.dims(), y.dims())
}

fn run(gpus: &Gpus<Cuda>, call: &Call<'_>, product: &Product, multiplication: &Multiplication) -> Result<()> {
    let session = gpus.session(call.device())?;
    let queue = session.queue(call.stream())?;
    let [a, b, y] = product.bytes;
    let operands = Operands {
        a: address(&session, &call.input(0)?, a)?,
        b: address(&session, &call.input(1)?, b)?,
        y: address(&session, &call.output(0)?, y)?,
        workspace: {
            let (block, offset, size) = call.workspace();
            (range(&session, block, offset, size)?, size)
        },
    };
    let blas = session.gpu().blas()?;
    queue.run(|_, stream| multiplication.enqueue(blas, &operands, stream.cast()))
}

/// Where an operand of a call starts on the device. It has the bytes that the call was prepared for.
fn address(session: &Session<Cuda>, tensor: &Tensor<'_>, bytes: u64) -> Result<u64> {
    ensure!(
        tensor.size_in_bytes() >= bytes,
        invalid_argument,
        "expected an operand of {bytes} bytes, as the call was prepared for, found {}",
        tensor.size_in_bytes()
    );
    let (block, offset) = tensor.place();
    range(session, block, offset, bytes)
}

fn range(session: &Session<Cuda>, block: Memory, offset: u64, size: u64) -> Result<u64> {
    let Address(start) = session.block(block, offset, size)?;
    Ok(start + offset)
}
