//! Callers of kernels, and kernels, that break rules.

use oarlock_sdk::abi;

use crate::bad_device::DeviceMistake;
use crate::rig::{FAR, LayerRig, NEAR};

/// A call with one input and one output of four bytes, in one block.
struct KernelRig {
    rig: LayerRig,
    block: u64,
    tensors: Box<[abi::Tensor; 2]>,
    pointers: Box<[*const abi::Tensor; 2]>,
    call: Box<abi::Call>,
}

static DIMS: [i64; 1] = [4];

impl KernelRig {
    fn new(mistake: DeviceMistake) -> Self {
        Self::with_rig(LayerRig::started(mistake, NEAR))
    }

    fn with_rig(rig: LayerRig) -> Self {
        let block = rig.allocate(0, 64);
        let tensor = |offset| abi::Tensor {
            block: abi::Memory(block),
            offset,
            size_in_bytes: 4,
            dtype: abi::Dtype::U8,
            dims: DIMS.as_ptr(),
            dims_count: 1,
            ..abi::Tensor::EMPTY
        };
        let tensors = Box::new([tensor(0), tensor(32)]);
        let pointers = Box::new([&raw const tensors[0], &raw const tensors[1]]);
        let call = Box::new(abi::Call {
            inputs: &raw const pointers[0],
            inputs_count: 1,
            outputs: &raw const pointers[1],
            outputs_count: 1,
            ..abi::Call::EMPTY
        });
        Self { rig, block, tensors, pointers, call }
    }

    fn prepare(&self, kernel: usize) -> u64 {
        let mut state = std::ptr::null_mut();
        let record = &self.rig.kernels[kernel];
        // SAFETY: the layer's function gets what the contract says.
        let failure =
            unsafe { record.prepare.expect("a slot")(record.context, &raw const *self.call, &raw mut state) };
        self.rig.expect_success(failure);
        state.expose_provenance() as u64
    }

    fn run(&self, kernel: usize, state: u64) -> abi::Error {
        let record = &self.rig.kernels[kernel];
        let state = std::ptr::without_provenance_mut(state as usize);
        // SAFETY: the layer checks the state and the call before the kernel, which does not follow the state.
        unsafe { record.run.expect("a slot")(record.context, state, &raw const *self.call) }
    }

    fn release(&self, kernel: usize, state: u64) -> abi::Error {
        let record = &self.rig.kernels[kernel];
        let state = std::ptr::without_provenance_mut(state as usize);
        // SAFETY: as above.
        unsafe { record.release.expect("a slot")(record.context, state) }
    }

    fn byte(&self, offset: u64) -> u8 {
        let address = std::ptr::with_exposed_provenance::<u8>((self.block + offset) as usize);
        // SAFETY: the block is memory of the device that the test has not freed.
        unsafe { *address }
    }

    fn close(self) -> LayerRig {
        self.rig.expect_success(self.rig.free(0, self.block, 64));
        self.rig
    }
}

/// Prepares, runs and releases with a kernel that makes a mistake.
fn run_mistaken(mistake: DeviceMistake) -> LayerRig {
    let kernel = KernelRig::new(mistake);
    let state = kernel.prepare(0);
    kernel.rig.expect_success(kernel.run(0, state));
    assert_eq!(kernel.byte(32), 1, "the output is where it belongs");
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close()
}

#[test]
fn a_kernel_that_keeps_to_its_memory_gets_no_breach() {
    run_mistaken(DeviceMistake::None).expect_none();
}

#[test]
fn a_kernel_writes_its_outputs_and_nothing_else() {
    run_mistaken(DeviceMistake::WritesPastOutput).expect_breach("K-3", "past the 4 bytes of output 0");
    run_mistaken(DeviceMistake::WritesBeforeOutput).expect_breach("K-3", "no write before output 0");
    run_mistaken(DeviceMistake::ChangesDescription)
        .expect_breach("K-3", "expected the description of output 0 as it was");
    run_mistaken(DeviceMistake::ChangesInput)
        .expect_breach("K-3", "expected input 0 as it was, found byte 1 changed");
}

#[test]
fn a_kernel_leaves_descriptions_alone() {
    let kernel = KernelRig::new(DeviceMistake::ChangesDescription);
    let stream = kernel.rig.stream(0);
    let state = kernel.prepare(0);
    let mut kernel = kernel;
    kernel.call.queue = abi::Stream(stream);
    kernel.rig.expect_success(kernel.run(0, state));
    assert_eq!(kernel.tensors[1].dims_count, 0);
    kernel.rig.expect_success(kernel.release(0, state));
    let destroy = kernel.rig.streams.table.stream_destroy.expect("a slot");
    // SAFETY: the layer's function gets what the contract says.
    kernel.rig.expect_success(unsafe { destroy(kernel.rig.streams.context, 0, abi::Stream(stream)) });
    kernel.close().expect_breach("K-3", "expected the description of output 0 as it was");
}

#[test]
fn without_guards_only_the_description_is_checked() {
    let rig = LayerRig::new(DeviceMistake::WritesPastOutput, NEAR, &[("guards", "off")]);
    rig.start();
    let kernel = KernelRig::with_rig(rig);
    let state = kernel.prepare(0);
    kernel.rig.expect_success(kernel.run(0, state));
    assert_eq!(kernel.byte(36), 9, "the kernel wrote behind its output");
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_none();
}

#[test]
fn a_state_is_one_that_the_kernel_prepared_and_is_released_once() {
    let kernel = KernelRig::new(DeviceMistake::None);
    assert!(kernel.run(0, 0x10).is_some());
    kernel.close().expect_breach("kernel.prepare", "expected a state that this kernel's `prepare` made");

    let kernel = KernelRig::new(DeviceMistake::None);
    let state = kernel.prepare(0);
    assert!(kernel.run(1, state).is_some(), "the state of another kernel");
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_breach("kernel.prepare", "expected a state that this kernel's `prepare` made");

    let kernel = KernelRig::new(DeviceMistake::None);
    let state = kernel.prepare(0);
    kernel.rig.expect_success(kernel.release(0, state));
    assert!(kernel.release(0, state).is_some());
    kernel.close().expect_breach("kernel.release", "expected a state that is not released");

    let kernel = KernelRig::new(DeviceMistake::None);
    kernel.prepare(0);
    kernel.close().expect_breach("kernel.release", "made by `kernel.prepare`");
}

#[test]
fn operands_are_in_live_blocks_and_in_their_range() {
    let mut kernel = KernelRig::new(DeviceMistake::None);
    let state = kernel.prepare(0);
    kernel.tensors[1].offset = 62;
    assert!(kernel.run(0, state).is_some());
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_breach("M-2", "expected `output` to lie within its block of 64 bytes");

    let mut kernel = KernelRig::new(DeviceMistake::None);
    let (state, other) = (kernel.prepare(0), kernel.rig.allocate(0, 8));
    kernel.rig.expect_success(kernel.rig.free(0, other, 8));
    kernel.tensors[0].block = abi::Memory(other);
    assert!(kernel.run(0, state).is_some());
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_breach("M-1", "which was freed by");
}

#[test]
fn an_operand_of_work_in_flight_needs_a_wait() {
    let kernel = KernelRig::new(DeviceMistake::None);
    let (state, stream) = (kernel.prepare(0), kernel.rig.stream(0));
    let set = kernel.rig.streams.table.memory_set_async.expect("a slot");
    let destroy = kernel.rig.streams.table.stream_destroy.expect("a slot");
    let context = kernel.rig.streams.context;
    // SAFETY: the device does not follow the handles.
    unsafe {
        let block = abi::Memory(kernel.block);
        kernel.rig.expect_success(set(context, 0, abi::Stream(stream), block, 0, 7, 8));
        assert!(kernel.run(0, state).is_some());
        kernel.rig.expect_success(destroy(context, 0, abi::Stream(stream)));
    }
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_breach("A-1", "expected synchronization before `input` is used");
}

#[test]
fn reserved_fields_are_zero_and_strides_fit_dimensions() {
    let mut kernel = KernelRig::new(DeviceMistake::None);
    let state = kernel.prepare(0);
    kernel.call.reserved = 1;
    assert!(kernel.run(0, state).is_some());
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_breach("S-4", "expected 0 in `reserved` of `call`, found 1");

    let mut kernel = KernelRig::new(DeviceMistake::None);
    let state = kernel.prepare(0);
    (kernel.tensors[0].strides, kernel.tensors[0].strides_count) = (DIMS.as_ptr(), 2);
    assert!(kernel.run(0, state).is_some());
    kernel.pointers[0] = std::ptr::null();
    assert!(kernel.run(0, state).is_some());
    kernel.rig.expect_success(kernel.release(0, state));
    let messages = kernel.close().finish();
    assert!(
        messages[0].contains("expected as many strides as dimensions of input 0, found 2 and 1"),
        "{messages:#?}"
    );
}

#[test]
fn memory_that_the_host_cannot_address_is_not_guarded() {
    let rig = LayerRig::started(DeviceMistake::None, FAR);
    let mut kernel = KernelRig::with_rig(rig);
    let state = kernel.prepare(0);
    let mut memory = [3u8, 0, 0, 0, 0, 0, 0, 0];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    for (tensor, offset) in kernel.tensors.iter_mut().zip([0, 4]) {
        (tensor.block, tensor.offset, tensor.place) = (abi::Memory(address), offset, abi::MemoryKind::HOST);
    }
    kernel.rig.expect_success(kernel.run(0, state));
    assert_eq!(memory[4], 4, "operands in host memory are guarded and come back");
    kernel.rig.expect_success(kernel.release(0, state));
    kernel.close().expect_none();
}
