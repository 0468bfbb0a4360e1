//! The kernels of a plugin, called as a host calls them.

use std::ptr;
use std::sync::Arc;

use oarlock_conformance::{
    ConformanceReport, ConformanceSubject, ErrorText, SubjectRole, SuiteSettings, host_memory_table,
    run_suite,
};
use oarlock_sdk::{Element, abi};
use oarlock_small_host::{HostedPlugin, ReportedError};

/// A loaded plugin whose kernels are called.
pub(super) struct KernelHarness(HostedPlugin);

pub(super) struct TestOperand<'a, T> {
    pub(super) dims: &'a [i64],
    pub(super) elements: &'a [T],
}

/// Guard elements around an output, to detect writes out of bounds.
const GUARD: usize = 9;

impl KernelHarness {
    /// Loads a plugin with the option `library`, or returns the message of its refusal.
    pub(super) fn new(query: abi::PluginQuery, library: Option<&str>) -> Result<Self, String> {
        let options = library.map(|library| ("library", library));
        HostedPlugin::new(query, options.as_slice()).map(Self).map_err(ReportedError::into_text)
    }

    /// Runs the conformance suite on the kernels, in host memory.
    pub(super) fn run_suite(self: Arc<Self>) -> ConformanceReport {
        let message = self.0.abi_plugin();
        // SAFETY: the texts of a plugin live as long as it is loaded.
        let text = |text: abi::Str| unsafe { text.text() }.unwrap_or_default().to_owned();
        let (name, version, kernels) = (text(message.name), text(message.version), self.0.kernel_records());
        let read_error = move |error| {
            let failure = self.0.take_error(error);
            let breach =
                failure.is_none().then(|| format!("expected the number of an error, found {}", error.0));
            let (code, message) = failure
                .map_or((abi::Code::FATAL, String::new()), |failure| (failure.code, failure.into_text()));
            ErrorText { code, message, breach }
        };
        let subject = ConformanceSubject {
            role: SubjectRole::Kernels { device: "host memory".to_owned() },
            name,
            version,
            device_type: "cpu".to_owned(),
            context: ptr::null_mut(),
            core: host_memory_table(),
            asynchronous: None,
            kernels,
            layer: None,
            entry: None,
            mode_change: None,
            devices: vec![0],
            read_error: Box::new(read_error),
        };
        // SAFETY: the subject keeps the plugin, whose kernels may be called on any thread.
        unsafe { run_suite(subject, &SuiteSettings::default(), &mut |_| {}) }
    }

    /// Asks the kernel of an op whether it supports a call.
    pub(super) fn check_support<T: Element>(
        &self,
        op: &str,
        attributes: &[(&str, f64)],
        inputs: &[Option<TestOperand<'_, T>>],
        output: &[i64],
    ) -> Result<(), String> {
        let row = self.find_kernel(op);
        let supports = row.supports.expect("a row that is asked");
        // SAFETY: the call is complete, and the context belongs to the kernel record.
        self.call_kernel(attributes, inputs, output, &mut [], |call| unsafe { supports(row.context, call) })
    }

    pub(super) fn run_kernel<T: Element + From<f32> + PartialEq>(
        &self,
        op: &str,
        attributes: &[(&str, f64)],
        inputs: &[Option<TestOperand<'_, T>>],
        output: &[i64],
    ) -> Result<Vec<T>, String> {
        self.check_support(op, attributes, inputs, output)?;
        let row = self.find_kernel(op);
        let count = output.iter().product::<i64>() as usize;
        let guard = T::from(12345.0);
        let mut memory = vec![guard; GUARD + count + GUARD];
        // NaN shows an element that was not written, and a library that reads the output it should only write.
        memory[GUARD..GUARD + count].fill(T::from(f32::NAN));
        let (prepare, run) = (row.prepare.expect("`prepare`"), row.run.expect("`run`"));
        let release = row.release.expect("`release`");
        let inside = &mut memory[GUARD..GUARD + count];
        self.call_kernel(attributes, inputs, output, inside, |call| {
            let mut state = ptr::null_mut();
            // SAFETY: the call is complete, the context belongs to the record, `prepare` just created the state, and it is
            // released once.
            unsafe {
                let failure = prepare(row.context, call, &raw mut state);
                assert!(!failure.is_some(), "a row that can be prepared");
                let failure = run(row.context, state, call);
                assert!(!release(row.context, state).is_some(), "a state that can be released");
                failure
            }
        })?;
        let around = memory[..GUARD].iter().chain(&memory[GUARD + count..]);
        assert!(around.copied().all(|number| number == guard), "the row wrote outside of the output");
        Ok(memory[GUARD..GUARD + count].to_vec())
    }

    fn call_kernel<T: Element>(
        &self,
        attributes: &[(&str, f64)],
        inputs: &[Option<TestOperand<'_, T>>],
        output: &[i64],
        memory: &mut [T],
        body: impl FnOnce(*const abi::Call) -> abi::Error,
    ) -> Result<(), String> {
        let inputs: Vec<abi::Tensor> = inputs
            .iter()
            .map(|input| match input {
                Some(given) => abi_tensor::<T>(given.dims, given.elements.as_ptr(), given.elements.len()),
                None => abi::Tensor { bits: abi::TensorFlags::ABSENT, ..abi::Tensor::EMPTY },
            })
            .collect();
        let output = abi_tensor::<T>(output, memory.as_mut_ptr(), memory.len());
        let whole: Vec<i64> = attributes.iter().map(|(_, value)| *value as i64).collect();
        let attributes: Vec<abi::Attribute> = attributes
            .iter()
            .zip(&whole)
            .map(|((name, value), whole)| {
                let empty = abi::Attribute { name: abi::Str::borrowed(name), ..abi::Attribute::EMPTY };
                if name.starts_with("trans") {
                    abi::Attribute { kind: abi::AttributeKind::INT, ints: whole, ints_count: 1, ..empty }
                } else {
                    abi::Attribute {
                        kind: abi::AttributeKind::FLOAT,
                        floats: value,
                        floats_count: 1,
                        ..empty
                    }
                }
            })
            .collect();
        let inputs: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const *input).collect();
        let attributes: Vec<*const abi::Attribute> =
            attributes.iter().map(|attribute| &raw const *attribute).collect();
        let outputs = [&raw const output];
        let call = abi::Call {
            inputs: inputs.as_ptr(),
            inputs_count: inputs.len() as u64,
            outputs: outputs.as_ptr(),
            outputs_count: 1,
            attributes: attributes.as_ptr(),
            attributes_count: attributes.len() as u64,
            ..abi::Call::EMPTY
        };
        self.0.result_from_error(body(&raw const call)).map_err(ReportedError::into_text)
    }

    fn find_kernel(&self, op: &str) -> abi::Kernel {
        // SAFETY: the names of ops live until the plugin is unloaded.
        let mut rows = self.0.kernel_records().into_iter().filter(|row| unsafe { row.op.text() } == Some(op));
        rows.next().expect("a row of the op")
    }
}

fn abi_tensor<T: Element>(dims: &[i64], address: *const T, count: usize) -> abi::Tensor {
    abi::Tensor {
        dtype: T::DTYPE,
        dims: dims.as_ptr(),
        dims_count: dims.len() as u64,
        block: abi::Memory(address as u64),
        size_in_bytes: (count * size_of::<T>()) as u64,
        ..abi::Tensor::EMPTY
    }
}
