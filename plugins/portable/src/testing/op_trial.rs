//! Calls of kernels.

#![expect(unsafe_code, reason = "this plays the host, which calls through pointers")]

use oarlock_sdk::{Code, Dtype, abi};

use super::machine::{DEVICE, PluginMachine, input_operands, is_variadic, no_state};
use super::test_data::{TestData, is_float};

/// Padding on both sides of every operand in its block, to detect stray writes.
const GUARD_BYTES: [u8; 64] = [0x5A; 64];

enum AttributeValue {
    Ints(Vec<i64>),
    Int(i64),
    Float(f64),
    String(&'static str),
    Tensor(TestData),
}

/// Builder for one call of an op.
pub struct OpTrial<'a> {
    machine: &'a PluginMachine,
    op: &'static str,
    version: u32,
    inputs: Vec<Option<TestData>>,
    attributes: Vec<(&'static str, AttributeValue)>,
    outputs: Vec<Option<(Dtype, Vec<i64>)>>,
}

impl PluginMachine {
    /// Starts a call of an op at one version of its schema.
    pub fn op_trial(&self, op: &'static str, version: u32) -> OpTrial<'_> {
        OpTrial { machine: self, op, version, inputs: vec![], attributes: vec![], outputs: vec![] }
    }
}

macro_rules! attributes {
    ($($name:ident($ty:ty) => $kind:ident;)*) => {
        $(
            /// Adds an attribute.
            pub fn $name(mut self, name: &'static str, value: $ty) -> Self {
                self.attributes.push((name, AttributeValue::$kind(value.into())));
                self
            }
        )*
    };
}

impl OpTrial<'_> {
    pub fn with_input(mut self, data: &TestData) -> Self {
        self.inputs.push(Some(data.clone()));
        self
    }

    /// Omits an optional input.
    pub fn without_input(mut self) -> Self {
        self.inputs.push(None);
        self
    }

    pub fn with_output(mut self, dtype: Dtype, dims: &[i64]) -> Self {
        self.outputs.push(Some((dtype, dims.to_vec())));
        self
    }

    attributes! {
        int(i64) => Int;
        ints(&[i64]) => Ints;
        float(f64) => Float;
        string(&'static str) => String;
        tensor(TestData) => Tensor;
    }

    /// Runs the call and compares its first output: floating point with a relative tolerance, everything else exactly.
    #[track_caller]
    pub fn expect_output(self, tolerance: f64, expected: &[f64]) {
        let (name, computes) =
            (format!("`{}` of {:?}", self.op, self.operand_shapes()), self.machine.computes);
        let found = self.run_call().unwrap_or_else(|(_, message)| panic!("{name} failed: {message}"));
        if computes {
            compare_output(&name, &found[0], tolerance, expected);
        }
    }

    /// Like [`OpTrial::expect_output`], for all outputs.
    #[track_caller]
    pub fn expect_outputs(self, tolerance: f64, expected: &[&[f64]]) {
        let (name, computes) =
            (format!("`{}` of {:?}", self.op, self.operand_shapes()), self.machine.computes);
        let found = self.run_call().unwrap_or_else(|(_, message)| panic!("{name} failed: {message}"));
        for (found, expected) in found.iter().zip(expected).filter(|_| computes) {
            compare_output(&name, found, tolerance, expected);
        }
    }

    /// Runs the call and expects an error whose message contains `part`.
    #[track_caller]
    pub fn expect_failure(self, part: &str) {
        let name = format!("`{}` of {:?}", self.op, self.operand_shapes());
        match self.run_call() {
            Ok(_) => panic!("expected {name} to fail, found success"),
            Err((_, message)) => assert!(message.contains(part), "{name} says: {message}"),
        }
    }

    /// Expects the support check to refuse the call with `part`, so that another device can run it.
    #[track_caller]
    pub fn expect_refusal(self, part: &str) {
        let name = format!("`{}` of {:?}", self.op, self.operand_shapes());
        match self.run_call() {
            Err((Code::UNIMPLEMENTED, message)) if message.contains(part) => {}
            found => panic!("expected {name} to be refused, found {:?}", found.map(drop)),
        }
    }

    /// Expects a fault that only the device can find; skipped if nothing is computed.
    #[track_caller]
    pub fn expect_value_fault(self, part: &str) {
        if self.machine.computes {
            self.expect_failure(part);
        } else {
            self.run_call().expect("a source");
        }
    }

    fn operand_shapes(&self) -> Vec<(Option<&'static str>, Vec<i64>)> {
        let shape = |data: &TestData| (data.dtype.name(), data.dims.clone());
        self.inputs.iter().flatten().map(shape).collect()
    }

    fn run_call(self) -> Result<Vec<TestData>, (Code, String)> {
        let machine = self.machine;
        let facts: Vec<Option<(Dtype, usize)>> = self
            .inputs
            .iter()
            .map(|input| input.as_ref().map(|data| (data.dtype, data.dims.len())))
            .collect();
        let kernel = machine.find_kernel(self.op, self.version, &facts);
        let demands = input_operands(kernel);
        let is_on_host = |index: usize| {
            let demand = demands.get(index).or(demands.last().filter(|last| is_variadic(last)));
            demand.is_some_and(|operand| operand.place == abi::MemoryKind::HOST)
        };
        let mut blocks = Vec::new();
        let inputs: Vec<abi::Tensor> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(index, input)| match input {
                None => abi::Tensor { bits: abi::TensorFlags::ABSENT, ..abi::Tensor::EMPTY },
                Some(data) if is_on_host(index) => abi::Tensor {
                    block: abi::Memory(data.bytes.as_ptr() as u64),
                    place: abi::MemoryKind::HOST,
                    ..describe_tensor(data)
                },
                Some(data) => place_tensor(machine, data, &mut blocks),
            })
            .collect();
        let blank: Vec<Option<TestData>> = self
            .outputs
            .iter()
            .map(|output| output.as_ref().map(|(dtype, dims)| blank_output(*dtype, dims)))
            .collect();
        let mut output_blocks = Vec::new();
        let outputs: Vec<abi::Tensor> =
            blank.iter().flatten().map(|data| place_tensor(machine, data, &mut output_blocks)).collect();
        let result = with_attributes(&self.attributes, |attributes| {
            let pointers =
                |tensors: &[abi::Tensor]| tensors.iter().map(|tensor| &raw const *tensor).collect::<Vec<_>>();
            let (inputs, outputs) = (pointers(&inputs), pointers(&outputs));
            call_kernel(
                machine,
                kernel,
                abi::Call {
                    device: DEVICE,
                    inputs: inputs.as_ptr(),
                    inputs_count: inputs.len() as u64,
                    outputs: outputs.as_ptr(),
                    outputs_count: outputs.len() as u64,
                    attributes: attributes.as_ptr(),
                    attributes_count: attributes.len() as u64,
                    ..abi::Call::EMPTY
                },
            )
        });
        // Freed before a failure is returned, so that tests of refusals leak nothing.
        for (block, size) in blocks {
            machine.download_bytes(block, size);
        }
        let written: Vec<Vec<u8>> =
            output_blocks.into_iter().map(|(block, size)| machine.download_bytes(block, size)).collect();
        result?;
        let unguarded = |(data, bytes): (TestData, Vec<u8>)| {
            let end = GUARD_BYTES.len() + data.bytes.len();
            let guards = [&bytes[..GUARD_BYTES.len()], &bytes[end..]];
            assert!(
                !machine.computes || guards.iter().all(|guard| *guard == GUARD_BYTES),
                "what surrounds an output was written"
            );
            TestData { bytes: bytes[GUARD_BYTES.len()..end].to_vec(), ..data }
        };
        Ok(blank.into_iter().flatten().zip(written).map(unguarded).collect())
    }
}

#[track_caller]
fn compare_output(name: &str, found: &TestData, tolerance: f64, expected: &[f64]) {
    // Add the dtype's own resolution to the tolerance.
    let unit = match found.dtype {
        Dtype::F16 => 1.0 / 1024.0,
        Dtype::BF16 => 1.0 / 128.0,
        _ => 0.0,
    };
    let values = found.to_values();
    assert_eq!(values.len(), expected.len(), "{name}: the number of elements");
    for (index, (found_value, expected)) in values.iter().zip(expected).enumerate() {
        // Relative, but never below the tolerance itself: near 0 a sum has lost its last digits.
        let room = if is_float(found.dtype) { (tolerance + unit) * expected.abs().max(1.0) } else { 0.0 };
        let is_right = (found_value.is_nan() && expected.is_nan())
            || found_value == expected
            || (found_value - expected).abs() <= room;
        assert!(
            is_right,
            "{name} of {:?}: expected {expected} as element {index}, found {found_value}",
            found.dtype.name()
        );
    }
}

fn blank_output(dtype: Dtype, dims: &[i64]) -> TestData {
    let count = dims.iter().product::<i64>() as usize;
    // Not zeros: a kernel that writes nothing would pass for one that writes zeros.
    TestData::new(dtype, dims, &vec![1.0; count])
}

fn describe_tensor(data: &TestData) -> abi::Tensor {
    abi::Tensor {
        size_in_bytes: data.bytes.len() as u64,
        dtype: data.dtype,
        dims: data.dims.as_ptr(),
        dims_count: data.dims.len() as u64,
        strides: data.strides.as_ptr(),
        strides_count: data.strides.len() as u64,
        ..abi::Tensor::EMPTY
    }
}

/// Places a tensor in the middle of a block. An empty tensor has no memory.
fn place_tensor(
    machine: &PluginMachine,
    data: &TestData,
    blocks: &mut Vec<(abi::Memory, usize)>,
) -> abi::Tensor {
    let bytes = [&GUARD_BYTES, data.bytes.as_slice(), &GUARD_BYTES].concat();
    let block = machine.upload_bytes(&bytes);
    blocks.push((block, bytes.len()));
    if data.bytes.is_empty() {
        return describe_tensor(data);
    }
    abi::Tensor { block, offset: GUARD_BYTES.len() as u64, ..describe_tensor(data) }
}

/// Runs `work` with the attributes converted to the contract's structs.
fn with_attributes<T>(
    attributes: &[(&'static str, AttributeValue)],
    work: impl FnOnce(&[*const abi::Attribute]) -> T,
) -> T {
    // The structs only point, so everything they point to is collected here and outlives `work`.
    let mut strings = Vec::new();
    let mut tensors = Vec::new();
    for (_, value) in attributes {
        strings.push(if let AttributeValue::String(text) = value {
            abi::Str::new(text)
        } else {
            abi::Str::EMPTY
        });
        tensors.push(match value {
            AttributeValue::Tensor(data) => abi::Tensor {
                block: abi::Memory(data.bytes.as_ptr() as u64),
                place: abi::MemoryKind::HOST,
                ..describe_tensor(data)
            },
            _ => abi::Tensor::EMPTY,
        });
    }
    let tensor_pointers: Vec<*const abi::Tensor> = tensors.iter().map(|tensor| &raw const *tensor).collect();
    let made: Vec<abi::Attribute> = attributes
        .iter()
        .enumerate()
        .map(|(index, (name, value))| {
            let named = abi::Attribute { name: abi::Str::new(name), ..abi::Attribute::EMPTY };
            match value {
                AttributeValue::Int(number) => abi::Attribute {
                    kind: abi::AttributeKind::INT,
                    ints: &raw const *number,
                    ints_count: 1,
                    ..named
                },
                AttributeValue::Ints(list) => abi::Attribute {
                    kind: abi::AttributeKind::INTS,
                    ints: list.as_ptr(),
                    ints_count: list.len() as u64,
                    ..named
                },
                AttributeValue::Float(number) => abi::Attribute {
                    kind: abi::AttributeKind::FLOAT,
                    floats: &raw const *number,
                    floats_count: 1,
                    ..named
                },
                AttributeValue::String(_) => abi::Attribute {
                    kind: abi::AttributeKind::STRING,
                    strings: &raw const strings[index],
                    strings_count: 1,
                    ..named
                },
                AttributeValue::Tensor(_) => abi::Attribute {
                    kind: abi::AttributeKind::TENSOR,
                    tensors: &raw const tensor_pointers[index],
                    tensors_count: 1,
                    ..named
                },
            }
        })
        .collect();
    let pointers: Vec<*const abi::Attribute> = made.iter().map(|attribute| &raw const *attribute).collect();
    work(&pointers)
}

/// Makes the call as a host does: support check, workspace, prepare, run, release.
fn call_kernel(
    machine: &PluginMachine,
    kernel: &abi::Kernel,
    mut call: abi::Call,
) -> Result<(), (Code, String)> {
    let context = kernel.context;
    // SAFETY: the context belongs to the kernel, and the call and everything it points to outlive each function.
    unsafe {
        machine.call_optional(kernel.supports, |supports| supports(context, &raw const call))?;
        let mut size = 0;
        machine.call_optional(kernel.workspace, |workspace| {
            workspace(context, &raw const call, &raw mut size)
        })?;
        if size > 0 {
            call.workspace = machine.upload_bytes(&vec![0; size as usize]);
            call.workspace_size = size;
        }
        let mut state = no_state();
        let result = machine
            .call_optional(kernel.prepare, |prepare| prepare(context, &raw const call, &raw mut state))
            .and_then(|()| machine.call_optional(kernel.run, |run| run(context, state, &raw const call)));
        // Released even if the run failed, as a host does.
        let released = machine.call_optional(kernel.release, |release| release(context, state));
        if size > 0 {
            machine.download_bytes(call.workspace, size as usize);
        }
        result.and(released)
    }
}
