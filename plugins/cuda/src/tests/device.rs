//! The driver on a device that is there. Without one nothing is tested, which is said.

use std::io::Write;

use oarlock_portable::Gpus;
use oarlock_portable::testing::{check_driver, devices};
use oarlock_sdk::{Core, Dtype, Error, Stream};

use crate::blas::{Multiplication, Operands, WORKSPACE};
use crate::gpu::Cuda;
use crate::product::Product;

/// The devices, or none.
fn cuda(test: &str) -> Option<Gpus<Cuda>> {
    // Written past the capture of the test harness.
    let skip = |reason: &Error| writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").unwrap();
    devices().inspect_err(skip).ok()
}

#[test]
fn the_driver_keeps_what_the_shared_devices_count_on() {
    if cuda("the driver").is_some() {
        check_driver::<Cuda>().unwrap();
    }
}

#[test]
fn no_context_is_left_current_on_the_thread_of_a_call() {
    let Some(cuda) = cuda("contexts") else { return };
    let block = cuda.memory_allocate(0, 1028).unwrap();
    assert_eq!(cudarc::driver::result::ctx::get_current().unwrap(), None);
    cuda.memory_deallocate(0, block, 1028).unwrap();
}

#[test]
fn cublaslt_multiplies_as_numbers_are_written_down() {
    let Some(cuda) = cuda("cuBLASLt") else { return };
    let session = cuda.session(0).unwrap();
    let blas = match session.gpu().blas() {
        Ok(blas) => blas,
        Err(reason) => return writeln!(std::io::stderr(), "SKIPPED cuBLASLt: {reason}").unwrap(),
    };
    // Each with one number in front, so that it starts at an address of no great alignment too.
    let upload = |values: &[f32]| {
        let bytes: Vec<u8> = [0.].iter().chain(values).flat_map(|value| value.to_ne_bytes()).collect();
        let block = cuda.memory_allocate(0, bytes.len() as u64).unwrap();
        cuda.memory_copy_h2d(0, block, 0, &bytes).unwrap();
        (block, session.block(block, 0, bytes.len() as u64).unwrap().0 + 4)
    };
    // Two matrices of 2 × 3 times one of 3 × 2.
    let (a, b) = ([1., 2., 3., 4., 5., 6., 0., 1., 0., 1., 0., 2.], [1., 2., 3., 4., 5., 6.]);
    let ((_, a), (_, b), (block, y)) = (upload(&a), upload(&b), upload(&[0.; 8]));
    let product = Product::new(Dtype::F32, &[2, 2, 3], &[3, 2], &[2, 2, 2]).unwrap();
    let multiplication = Multiplication::new(&product).unwrap();
    let workspace = cuda.memory_allocate(0, WORKSPACE).unwrap();
    let workspace = (session.block(workspace, 0, WORKSPACE).unwrap().0, WORKSPACE);
    let operands = Operands { a, b, y, workspace };
    let queue = session.queue(Stream(0)).unwrap();
    for _ in 0..2 {
        queue.run(|_, stream| multiplication.enqueue(blas, &operands, stream.cast())).unwrap();
        let mut bytes = [0; 32];
        cuda.memory_copy_d2h(0, &mut bytes, block, 4).unwrap();
        let found: Vec<f32> =
            bytes.chunks_exact(4).map(|chunk| f32::from_ne_bytes(chunk.try_into().unwrap())).collect();
        assert_eq!(found, [22., 28., 49., 64., 3., 4., 11., 14.]);
    }
}
