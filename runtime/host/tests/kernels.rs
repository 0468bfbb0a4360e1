//! A kernel of a real plugin, from the support check to the run, with an output that is allocated during the run.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

mod common;

use std::cell::UnsafeCell;
use std::sync::Mutex;

use common::{PluginDirectory, refusal_of};
use oarlock_abi as abi;
use oarlock_host::{
    CallServices, Code, DeviceBlock, Host, HostCall, PluginDevice, PluginFailure, RefusalReason,
};

const OUTPUT_DIMS: [i64; 2] = [10, 100];
const OUTPUT_SIZE: u64 = 4000;

/// One output, allocated when its kernel requests it.
struct OutputMemory {
    device: PluginDevice,
    /// The descriptor that the call shows to the kernel.
    tensor: UnsafeCell<abi::Tensor>,
    /// The requested shape, and the memory.
    taken: Mutex<Option<(Vec<i64>, DeviceBlock)>>,
    /// The kernel's description of itself.
    heard: Mutex<String>,
    /// The constants that the kernel reads, and whether it keeps them.
    read: Mutex<Vec<(u32, bool)>>,
}

// SAFETY: the tensor is written only under the lock, by a kernel that waits for it.
unsafe impl Sync for OutputMemory {}

impl CallServices for OutputMemory {
    fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<(), PluginFailure> {
        assert_eq!((index, dtype), (0, abi::Dtype::F32));
        let mut taken = self.taken.lock().unwrap();
        let (dims, block) = taken.insert((dims.to_vec(), self.device.allocate(OUTPUT_SIZE)?));
        let tensor = describe_tensor(block, dims);
        // SAFETY: nobody else writes while the lock is held, and the kernel that reads is waiting for this.
        unsafe { self.tensor.get().write(tensor) };
        Ok(())
    }

    fn describe_kernel(&self, way: String) {
        *self.heard.lock().unwrap() = way;
    }

    fn read_constant(&self, index: u32, keep: bool) -> Result<(), PluginFailure> {
        self.read.lock().unwrap().push((index, keep));
        Ok(())
    }
}

/// Describes a tensor of f32. The result points to `dims`.
fn describe_tensor(block: &DeviceBlock, dims: &[i64]) -> abi::Tensor {
    abi::Tensor {
        block: block.memory(),
        size_in_bytes: OUTPUT_SIZE,
        dtype: abi::Dtype::F32,
        dims: dims.as_ptr(),
        dims_count: dims.len() as u64,
        ..abi::Tensor::EMPTY
    }
}

#[test]
fn a_kernel_is_asked_readied_and_run_and_takes_memory_for_its_output() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    let read = run_whole_kernel(&place.start_host());
    assert_eq!(read, [(1, true)]);
}

#[test]
fn a_kernel_in_another_process_takes_memory_for_its_output_too() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    let mut options = place.host_options();
    options.isolate = vec!["good".to_owned()];
    let host = Host::start(&options).unwrap();
    assert!(host.plugin("good").unwrap().process_id().is_some());
    // Its constants are in memory before it asks for them.
    assert_eq!(run_whole_kernel(&host), []);
}

/// Runs the kernel; returns the constants that it read.
fn run_whole_kernel(host: &Host) -> Vec<(u32, bool)> {
    let device = host.device("good").unwrap();
    let kernel = device.plugin().kernel_handles().next().unwrap();
    assert_eq!((kernel.info().op.as_str(), kernel.plugin().info().name.as_str()), ("Add", "good"));

    let numbers: Vec<u8> = (0..1000).flat_map(|n| (n as f32).to_ne_bytes()).collect();
    let mut block = device.allocate(OUTPUT_SIZE).unwrap();
    block.write_bytes(0, &numbers).unwrap();
    let input = describe_tensor(&block, &OUTPUT_DIMS);
    let output = OutputMemory {
        device: device.clone(),
        tensor: UnsafeCell::new(abi::Tensor::EMPTY),
        taken: Mutex::default(),
        heard: Mutex::default(),
        read: Mutex::default(),
    };
    let (inputs, outputs) = ([&raw const input; 2], [output.tensor.get().cast_const()]);
    let host_call = HostCall::new(&output);
    let call = abi::Call {
        device: device.id(),
        inputs: inputs.as_ptr(),
        inputs_count: 2,
        outputs: outputs.as_ptr(),
        outputs_count: 1,
        host_call: host_call.as_ptr(),
        ..abi::Call::EMPTY
    };

    assert!(!kernel.infers_shapes());
    // SAFETY: everything that the call points to lives until the end of the test, here and below.
    assert_eq!(unsafe { kernel.supports(&call) }, Ok(()));
    // SAFETY: as above.
    assert_eq!(unsafe { kernel.workspace_size(&call) }, Ok(0));
    // SAFETY: as above.
    let prepared = unsafe { kernel.prepare(&call) }.unwrap();
    assert_eq!(device.plugin().live_handles().kernel_states, 1);
    // Characters that would act on a terminal are escaped.
    assert_eq!(*output.heard.lock().unwrap(), "one by \\u{1b}[1mone");
    // SAFETY: as above; the kernel was prepared for this call.
    unsafe { prepared.run(&call) }.unwrap();
    drop(prepared);
    assert_eq!(device.plugin().live_handles().kernel_states, 0);

    let (dims, sums) = output.taken.into_inner().unwrap().unwrap();
    assert_eq!(dims, OUTPUT_DIMS);
    let mut bytes = vec![0; OUTPUT_SIZE as usize];
    sums.read_bytes(0, &mut bytes).unwrap();
    let sums = bytes.chunks(4).map(|sum| f32::from_ne_bytes(sum.try_into().unwrap()));
    assert!(sums.enumerate().all(|(n, sum)| sum == 2.0 * n as f32));
    output.read.into_inner().unwrap()
}

#[test]
fn a_kernel_that_asks_for_memory_in_a_call_that_has_none_to_give_fails() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    let host = place.start_host();
    let device = host.device("good").unwrap();
    let kernel = device.plugin().kernel_handles().next().unwrap();
    let block = device.allocate(OUTPUT_SIZE).unwrap();
    let (input, output) = (describe_tensor(&block, &OUTPUT_DIMS), abi::Tensor::EMPTY);
    let (inputs, outputs) = ([&raw const input; 2], [&raw const output]);
    let call = abi::Call {
        device: device.id(),
        inputs: inputs.as_ptr(),
        inputs_count: 2,
        outputs: outputs.as_ptr(),
        outputs_count: 1,
        ..abi::Call::EMPTY
    };
    // SAFETY: everything that the call points to lives until the end of the test.
    let failure = unsafe { kernel.prepare(&call).unwrap().run(&call) }.unwrap_err();
    assert_eq!(failure.code, Code::PRECONDITION_NOT_MET);
    assert!(failure.message.contains("no memory to give"), "{failure}");
}

#[test]
fn the_kernels_of_a_plugin_that_is_refused_are_not_there() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    place.compile_plugin("bad", &["FAULT_NO_RUN"]);
    let host = place.start_host();
    assert_eq!(refusal_of(&host, "bad").0, RefusalReason::ContractBroken);
    let kernels = host.plugins().iter().flat_map(|plugin| plugin.kernel_handles());
    let of: Vec<String> = kernels.map(|kernel| kernel.plugin().info().name.clone()).collect();
    assert_eq!(of, ["good"]);
}
