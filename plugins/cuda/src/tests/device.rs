//! The driver on a real device. Without one the tests are skipped with a message.

use std::io::Write;

use oarlock_portable::GpuDevices;
use oarlock_portable::testing::{check_driver, driver_devices};
use oarlock_sdk::{Core, Dtype, MemoryRange, PluginError, Stream};

use crate::cublas::{CublasMatmul, MatmulAddresses, WORKSPACE_SIZE};
use crate::gpu::CudaGpu;
use crate::matmul_shape::MatmulShape;

/// The devices, or `None` after a message that the test is skipped.
fn cuda_devices(test: &str) -> Option<GpuDevices<CudaGpu>> {
    // Written directly, past the output capture of the test harness.
    let skip = |reason: &PluginError| writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").unwrap();
    driver_devices().inspect_err(skip).ok()
}

#[test]
fn the_driver_keeps_what_the_shared_devices_count_on() {
    if cuda_devices("the driver").is_some() {
        check_driver::<CudaGpu>().unwrap();
    }
}

#[test]
fn no_context_is_left_current_on_the_thread_of_a_call() {
    let Some(cuda) = cuda_devices("contexts") else { return };
    let block = cuda.memory_allocate(0, 1028).unwrap();
    assert_eq!(cudarc::driver::result::ctx::get_current().unwrap(), None);
    cuda.memory_deallocate(0, block, 1028).unwrap();
}

#[test]
fn cublaslt_multiplies_as_numbers_are_written_down() {
    let Some(cuda) = cuda_devices("cuBLASLt") else { return };
    let session = cuda.device_session(0).unwrap();
    let blas = match session.driver_gpu().cublas_handle() {
        Ok(blas) => blas,
        Err(reason) => return writeln!(std::io::stderr(), "SKIPPED cuBLASLt: {reason}").unwrap(),
    };
    // Each operand follows one other number, so that it also starts at a poorly aligned address.
    let upload = |values: &[f32]| {
        let bytes: Vec<u8> = [0.].iter().chain(values).flat_map(|value| value.to_ne_bytes()).collect();
        let size = bytes.len() as u64;
        let memory = cuda.memory_allocate(0, size).unwrap();
        let range = MemoryRange { memory, offset: 0, size };
        cuda.memory_copy_h2d(0, range, &bytes).unwrap();
        (memory, session.block_with_range(range).unwrap().0 + 4)
    };
    // A batch of two 2 × 3 matrices times a single 3 × 2 matrix.
    let (a, b) = ([1., 2., 3., 4., 5., 6., 0., 1., 0., 1., 0., 2.], [1., 2., 3., 4., 5., 6.]);
    let ((_, a), (_, b), (memory, y)) = (upload(&a), upload(&b), upload(&[0.; 8]));
    let product = MatmulShape::new(Dtype::F32, &[2, 2, 3], &[3, 2], &[2, 2, 2]).unwrap();
    let multiplication = CublasMatmul::new(&product).unwrap();
    let workspace = MemoryRange {
        memory: cuda.memory_allocate(0, WORKSPACE_SIZE).unwrap(),
        offset: 0,
        size: WORKSPACE_SIZE,
    };
    let workspace = (session.block_with_range(workspace).unwrap().0, WORKSPACE_SIZE);
    let operands = MatmulAddresses { a, b, y, workspace };
    let queue = session.stream_queue(Stream(0)).unwrap();
    for _ in 0..2 {
        queue
            .enqueue_library_work(|_, stream| multiplication.enqueue_matmul(blas, &operands, stream.cast()))
            .unwrap();
        let mut bytes = [0; 32];
        cuda.memory_copy_d2h(0, &mut bytes, MemoryRange { memory, offset: 4, size: 32 }).unwrap();
        let found: Vec<f32> =
            bytes.chunks_exact(4).map(|chunk| f32::from_ne_bytes(chunk.try_into().unwrap())).collect();
        assert_eq!(found, [22., 28., 49., 64., 3., 4., 11., 14.]);
    }
}
