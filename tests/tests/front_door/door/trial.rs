//! Makes a call and checks what must hold for it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use oarlock_core::flags::Flags;
use oarlock_core::{Device, Dtype, Error, ErrorKind, Op, OpInvocation, OpOutputs, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, LoadedPlugin};
use oarlock_tests::bare_host::{check_forced_isa, host_options};

use super::call::CallCase;
use super::prepared_call;

/// Limit on device memory for the calls.
const MEMORY_LIMIT: &str = "64MiB";

/// A simulated device that runs its work in random order, on poisoned memory.
const SIMULATED_CONFIG: &str = "[plugin.oarlock-sim]\nscript = 'mode random; seed 1; poison on; devices 1'";

/// Ops with random results.
const RANDOM_OPS: [&str; 7] = [
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// Dtype, shape and elements of an output.
type OutputContent = (Dtype, Vec<i64>, Vec<u8>);

/// A runtime under test, with a tensor on its device that no call may change.
pub(crate) struct FrontDoor {
    witness: Tensor,
    device: Device,
    runtime: Runtime,
}

impl FrontDoor {
    /// Starts a runtime with a plugin, for its first device.
    pub(crate) fn open_with_plugin(
        plugin: BuiltInPlugin,
        device: &str,
        flags: &[(&str, &str)],
        cache_home: Option<PathBuf>,
    ) -> Result<Self, Error> {
        Self::open_with_plugins(vec![plugin], device, flags, cache_home)
    }

    /// Like [`FrontDoor::open_with_plugin`] with several plugins, for the first device of one of them.
    pub(crate) fn open_with_plugins(
        plugins: Vec<BuiltInPlugin>,
        device: &str,
        flags: &[(&str, &str)],
        cache_home: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let mut options = host_options("front door", SIMULATED_CONFIG, &plugins);
        options.cache_home = cache_home;
        let mut all = Flags::from_environment(|_| None)?;
        for (name, value) in [("device_memory_limit", MEMORY_LIMIT), ("random_seed", "7")].iter().chain(flags)
        {
            all.set(name, value)?;
        }
        let runtime = Runtime::start(options, all)?;
        let device = runtime.device(device)?;
        let witness = Tensor::from_slice(&device, &[WITNESS_ELEMENTS.len() as i64], &WITNESS_ELEMENTS)?;
        Ok(Self { witness, device, runtime })
    }

    /// Checks that CPU kernels use the forced ISA.
    pub(crate) fn check_isa(&self) -> Result<(), String> {
        check_forced_isa(&self.runtime)
    }

    /// Makes a call. The inner result is the call's; the outer error describes a fault of the runtime.
    pub(crate) fn check_case(&self, case: &CallCase) -> Result<Result<(), Error>, String> {
        let before = self.allocated_bytes()?;
        let outcome = self.call_twice(case)?;
        if let Err(error) = &outcome {
            check_error_message(case, error)?;
        }
        let after = self.allocated_bytes()?;
        if before != after {
            return Err(format!("{before} bytes were held before, and {after} are after"));
        }
        match self.witness.to_vec::<i64>() {
            Ok(values) if values == WITNESS_ELEMENTS => Ok(outcome),
            found => Err(format!("a tensor that the call does not know became {found:?}")),
        }
    }

    /// Makes a call in the notation of the list and returns its outputs; `None` if the device has no kernel for the op.
    pub(crate) fn run_line(&self, line: &str) -> Option<Result<Vec<Tensor>, Error>> {
        let finish = |op: &Op, call: &OpInvocation<'_>| {
            let outputs =
                op.invoke(&self.runtime, call).and_then(|outputs| self.wait_for_outputs(outputs))?;
            Ok(outputs.into_iter().flatten().collect())
        };
        self.with_call(line, finish)
    }

    /// Explains the choice of a kernel for a call in the notation of the list.
    pub(crate) fn explain_line(&self, line: &str) -> Option<Result<String, Error>> {
        self.with_call(line, |op, call| Ok(op.explain_call(&self.runtime, call)?.to_string()))
    }

    fn with_call<T>(
        &self,
        line: &str,
        work: impl FnOnce(&Op, &OpInvocation<'_>) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let case = CallCase::parse_line(line).unwrap_or_else(|| panic!("no call: {line}"));
        self.supported_ops().contains(&(case.domain.clone(), case.op.clone())).then(|| {
            let made: Vec<Option<(Tensor, Tensor)>> = (case.inputs.iter())
                .map(|input| input.as_ref().map(|input| input.to_tensors(&self.device)).transpose())
                .collect::<Result<_, _>>()?;
            let inputs: Vec<Option<&Tensor>> =
                made.iter().map(|pair| pair.as_ref().map(|(_, seen)| seen)).collect();
            let op = Op::new(&self.runtime, &case.domain, &case.op, case.opset, case.attributes)?;
            let call = OpInvocation {
                inputs: &inputs,
                outputs: case.outputs,
                device: Some(&self.device),
                stream: None,
            };
            work(&op, &call)
        })
    }

    /// Ends the runtime. Returns an error if anything of the plugin is still in use.
    pub(crate) fn close_runtime(self) -> Result<(), String> {
        let plugins: Vec<Arc<LoadedPlugin>> = self.runtime.host().plugins().to_vec();
        drop(self);
        let left: Vec<String> = plugins.iter().map(|plugin| plugin.live_handles().to_string()).collect();
        if left.iter().all(|left| left == "no handles") { Ok(()) } else { Err(left.join(", ")) }
    }

    pub(crate) fn target_device(&self) -> &Device {
        &self.device
    }

    /// Ops that the device has kernels for, with their domains.
    pub(crate) fn supported_ops(&self) -> BTreeSet<(String, String)> {
        let registry = self.runtime.registry();
        let own = registry.entries().iter().filter(|row| row.info().device_type == self.device.device_type());
        own.map(|row| (row.info().domain.clone(), row.info().op.clone())).collect()
    }

    /// Waits for a call, even one without outputs to wait for.
    fn wait_for_outputs(&self, outputs: OpOutputs) -> Result<OpOutputs, Error> {
        outputs.iter().flatten().try_for_each(Tensor::wait)?;
        self.device.default_stream()?.synchronize()?;
        Ok(outputs)
    }

    fn allocated_bytes(&self) -> Result<u64, String> {
        self.device.memory_pool().map(|pool| pool.statistics().allocated).map_err(|error| error.to_string())
    }

    /// Makes the call twice, since only the first one resolves a kernel.
    fn call_twice(&self, case: &CallCase) -> Result<Result<(), Error>, String> {
        let mut tensors = Vec::new();
        for input in &case.inputs {
            let made = input.as_ref().map(|input| input.to_tensors(&self.device)).transpose();
            match made {
                // Only the CPU supports strings.
                Err(error) if error.kind() == ErrorKind::Unimplemented => {
                    return Ok(Err(error.with_op(&case.op)));
                }
                made => tensors.push(made.map_err(|error| format!("an input cannot be made: {error}"))?),
            }
        }
        let inputs: Vec<Option<&Tensor>> =
            tensors.iter().map(|pair| pair.as_ref().map(|(_, seen)| seen)).collect();
        let content =
            || tensors.iter().flatten().map(|(base, _)| tensor_content(base)).collect::<Result<Vec<_>, _>>();
        let before = content()?;
        let op = match Op::new(&self.runtime, &case.domain, &case.op, case.opset, case.attributes.clone()) {
            Ok(op) => op,
            Err(error) => return Ok(Err(error)),
        };
        let call =
            OpInvocation { inputs: &inputs, outputs: case.outputs, device: Some(&self.device), stream: None };
        let invoke = || {
            let outputs = prepared_call::invoke_prepared(&self.runtime, &self.device, case, &op, &inputs)?;
            self.wait_for_outputs(outputs)
        };
        let invoke = || invoke().map_err(|error: Error| error.with_op(&case.op));
        let (first, again) = (invoke(), invoke());
        let explained = op.explain_call(&self.runtime, &call);
        if content()? != before {
            return Err("an input was written".to_owned());
        }
        match (first, again) {
            (Ok(first), Ok(again)) => {
                let (first, again) = (self.read_outputs(case, &first)?, self.read_outputs(case, &again)?);
                if explained.is_err() {
                    return Err(format!("it works, and its explanation does not: {explained:?}"));
                }
                if first != again && !RANDOM_OPS.contains(&case.op.as_str()) {
                    return Err(format!("the outputs were {first:?} and then {again:?}"));
                }
                Ok(Ok(()))
            }
            (Err(first), Err(_)) => Ok(Err(first)),
            // The first outputs are still alive, and there is no memory for a second set.
            (Ok(_), Err(again)) if again.kind() == ErrorKind::ResourceExhausted => Ok(Ok(())),
            (first, again) => Err(format!("the same call gave {first:?} and then {again:?}")),
        }
    }

    /// Reads outputs; they must exist, be on the device, and contain only values that their dtypes allow.
    fn read_outputs(&self, case: &CallCase, outputs: &OpOutputs) -> Result<Vec<OutputContent>, String> {
        if outputs.len() != case.outputs {
            return Err(format!("{} outputs were wanted, and {} made", case.outputs, outputs.len()));
        }
        let mut read = Vec::new();
        for output in outputs.iter().flatten() {
            if !output.device().is_same_device(&self.device) {
                return Err(format!("an output is on `{}`", output.device()));
            }
            let bytes = tensor_content(output)?;
            if output.dtype() == Dtype::Bool && bytes.iter().any(|byte| *byte > 1) {
                return Err("a bool is neither true nor false".to_owned());
            }
            read.push((output.dtype(), output.dims().to_vec(), bytes));
        }
        Ok(read)
    }
}

const WITNESS_ELEMENTS: [i64; 7] = [3, 1, 4, 1, 5, 9, 2];

/// Waits for outputs, so that an asynchronous failure counts as the call's.
fn tensor_content(tensor: &Tensor) -> Result<Vec<u8>, String> {
    let read = match tensor.dtype() {
        Dtype::String => tensor.to_strings().map(|texts| texts.join("\n").into_bytes()),
        _ => tensor.to_bytes(),
    };
    read.map_err(|error| format!("a tensor cannot be read: {error}"))
}

/// An error must name the op, and state what was expected and what was found.
fn check_error_message(case: &CallCase, error: &Error) -> Result<(), String> {
    let text = error.to_string();
    if text.contains("panicked") {
        return Err(format!("a kernel panicked: {text}"));
    }
    let is_whole = text.contains(&case.op) && text.contains("expected");
    if !is_whole || error.kind() == ErrorKind::Fatal {
        return Err(format!("the error is a bad one ({}): {text}", error.kind()));
    }
    Ok(())
}
