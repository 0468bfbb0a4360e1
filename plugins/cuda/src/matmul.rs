//! The cuBLASLt kernel, which replaces the portable one if the library is installed.

use std::sync::Arc;

use oarlock_portable::{DeviceSession, GpuDevices};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, Memory, MemoryRange, OperandSpec, Result, TensorView,
    dtype_set, ensure,
};

use crate::cublas::{CublasMatmul, MatmulAddresses, WORKSPACE_SIZE, check_cublas_available};
use crate::gpu::{CudaAddress, CudaGpu};
use crate::matmul_shape::MatmulShape;

/// Above the 100 of the portable kernel.
const CUBLAS_SCORE: i32 = 200;

const CUBLAS_FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

/// The kernel record. It is not marked as deterministic, since NVIDIA does not promise that for all algorithms.
pub(crate) fn matmul_kernel() -> Kernel<GpuDevices<CudaGpu>> {
    let matrix =
        |name| OperandSpec::new(CUBLAS_FLOATS).with_dtype_group(1).with_name(name).with_rank(2, u32::MAX);
    let prepare = |_: &GpuDevices<CudaGpu>, call: &KernelCall<'_>| {
        let product = matmul_shape(call)?;
        let multiplication = CublasMatmul::new(&product)?;
        let run = move |gpus: &GpuDevices<CudaGpu>, call: &KernelCall<'_>| {
            run_matmul(gpus, call, &product, &multiplication)
        };
        Ok(Arc::new(run) as _)
    };
    Kernel::new_prepared("MatMul", prepare)
        .with_score(CUBLAS_SCORE)
        .with_flags(KernelFlags::ASYNCHRONOUS)
        .with_inputs([matrix("A"), matrix("B")])
        .with_outputs([matrix("Y")])
        .with_support_check(|_, call| matmul_shape(call).and_then(|_| check_cublas_available()))
        .with_workspace(|_, _| Ok(WORKSPACE_SIZE))
}

fn matmul_shape(call: &KernelCall<'_>) -> Result<MatmulShape> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    MatmulShape::new(y.dtype(), a.dims(), b.dims(), y.dims())
}

fn run_matmul(
    gpus: &GpuDevices<CudaGpu>,
    call: &KernelCall<'_>,
    product: &MatmulShape,
    multiplication: &CublasMatmul,
) -> Result<()> {
    let session = gpus.device_session(call.device())?;
    let queue = session.stream_queue(call.stream())?;
    let [a, b, y] = product.bytes;
    let operands = MatmulAddresses {
        a: operand_address(&session, &call.input(0)?, a)?,
        b: operand_address(&session, &call.input(1)?, b)?,
        y: operand_address(&session, &call.output(0)?, y)?,
        workspace: {
            let (block, offset, size) = call.workspace();
            (block_range_address(&session, block, offset, size)?, size)
        },
    };
    let blas = session.driver_gpu().cublas_handle()?;
    queue.enqueue_library_work(|_, stream| multiplication.enqueue_matmul(blas, &operands, stream.cast()))
}

/// Device address of an operand. Checks that it has the size that the call was prepared for.
fn operand_address(session: &DeviceSession<CudaGpu>, tensor: &TensorView<'_>, bytes: u64) -> Result<u64> {
    ensure!(
        tensor.size_in_bytes() >= bytes,
        invalid_argument,
        "expected an operand of {bytes} bytes, as the call was prepared for, found {}",
        tensor.size_in_bytes()
    );
    let (block, offset) = tensor.memory_location();
    block_range_address(session, block, offset, bytes)
}

fn block_range_address(
    session: &DeviceSession<CudaGpu>,
    memory: Memory,
    offset: u64,
    size: u64,
) -> Result<u64> {
    let CudaAddress(start) = session.block_with_range(MemoryRange { memory, offset, size })?;
    Ok(start + offset)
}
