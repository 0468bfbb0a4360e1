//! Runs a kernel of this plugin in a unit test, as a host would: through the table of C functions that the plugin exports, on
//! memory with guards around it.

#![expect(unsafe_code, reason = "kernels are called through a C table")]

mod array;

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_sdk::{Dtype, KernelFlags, Layout, OperandFlags, abi};
use oarlock_small_host::{HostedPlugin, OutputAllocator, ReportedError};

use self::array::GuardedStorage;
pub use self::array::TestArray;
use crate::isa_levels::best_isa;

#[derive(Clone, Copy)]
pub enum TestAttribute<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
    Texts(&'a [&'a str]),
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Tensor(&'a TestArray),
}

/// The outputs of a run, or the message of an error.
pub type TestResults = Result<Vec<Option<TestArray>>, String>;

/// Runs kernels of a plugin that a test hosts; [`kernel_runner`](crate::kernel_runner) makes one.
pub struct KernelRunner(abi::PluginQuery);

impl KernelRunner {
    /// Runs kernels of the plugin that answers this query.
    pub const fn new(query: abi::PluginQuery) -> Self {
        Self(query)
    }

    /// Runs the best kernel that accepts these operands, at the machine's best level. Outputs are given by dtype and shape. `None`
    /// is an absent output, or one that the kernel allocates, if it allocates its outputs.
    pub fn run_kernel(
        &self,
        op: &str,
        version: u32,
        attributes: &[(&str, TestAttribute<'_>)],
        inputs: &[Option<&TestArray>],
        outputs: &[Option<(Dtype, &[i64])>],
    ) -> TestResults {
        self.run_with_isa("", op, version, attributes, inputs, outputs)
    }

    /// Like [`Self::run_kernel`], but the plugin's option `isa` limits the instruction sets.
    pub fn run_with_isa(
        &self,
        isa: &str,
        op: &str,
        version: u32,
        attributes: &[(&str, TestAttribute<'_>)],
        inputs: &[Option<&TestArray>],
        outputs: &[Option<(Dtype, &[i64])>],
    ) -> TestResults {
        let wanted = Isa::ALL.into_iter().find(|known| known.to_string() == isa);
        let isa = wanted.map_or(best_isa(), |wanted| wanted.min(best_isa())).to_string();
        let loaded = HostedPlugin::new(self.0, &[("isa", &isa)]).expect("a plugin that loads");
        let mut rows: Vec<_> = loaded
            .kernel_records()
            .into_iter()
            .filter(|row| row_takes(row, op, version, inputs, outputs))
            .collect();
        // The sort is stable, so that the first of equal scores wins.
        rows.sort_by_key(|row| -row.score);
        let mut reasons = String::new();
        for row in rows {
            match RunningCall::new(&loaded, &row, attributes, inputs, outputs).run_call()? {
                Ok(results) => return Ok(results),
                Err(unsupported) => reasons = unsupported,
            }
        }
        Err(format!("expected a kernel for `{op}` that takes these operands, found none {reasons}"))
    }
}

/// True if a row is for this op, which may include a domain, as in `oarlock:MatMul`, and the operands meet its requirements.
fn row_takes(
    row: &abi::Kernel,
    op: &str,
    version: u32,
    inputs: &[Option<&TestArray>],
    outputs: &[Option<(Dtype, &[i64])>],
) -> bool {
    let (domain, name) = op.split_once(':').map_or((None, op), |(domain, name)| (Some(domain), name));
    // SAFETY: the names of the op and its domain live as long as the plugin.
    let (found, found_domain) = unsafe { (row.op.text(), row.domain.text()) };
    let is_named = found == Some(name) && (domain.is_none() || found_domain == domain);
    let has_version = row.version_min <= version && (row.version_max == 0 || version <= row.version_max);
    let allocates = row.bits.contains(KernelFlags::ALLOCATES_OUTPUTS);
    let inputs: Vec<_> = inputs
        .iter()
        .map(|input| input.map(|input| (input.dtype, input.dims.len(), !input.strides.is_empty())))
        .collect();
    let outputs: Vec<_> =
        outputs.iter().map(|output| output.map(|(dtype, dims)| (dtype, dims.len(), false))).collect();
    let mut groups = Vec::new();
    is_named
        && has_version
        && demands_met(&operand_list(row.inputs, row.inputs_count), &inputs, false, &mut groups)
        && demands_met(&operand_list(row.outputs, row.outputs_count), &outputs, allocates, &mut groups)
}

fn operand_list(list: *const *const abi::Operand, count: u64) -> Vec<abi::Operand> {
    // SAFETY: the lists of a kernel live as long as the plugin.
    (0..count as usize).map(|index| unsafe { **list.add(index) }).collect()
}

/// The requirements of the operand at an index. Those of the last may apply to all further operands.
fn operand_demands(operands: &[abi::Operand], index: usize) -> Option<&abi::Operand> {
    let rest = operands.last().filter(|last| last.bits.contains(OperandFlags::VARIADIC));
    operands.get(index).or(rest)
}

fn demands_met(
    operands: &[abi::Operand],
    found: &[Option<(Dtype, usize, bool)>],
    may_lack: bool,
    groups: &mut Vec<(u32, Dtype)>,
) -> bool {
    let mut one_meets = |index: usize| {
        let Some(operand) = operand_demands(operands, index) else { return false };
        let Some((dtype, rank, strided)) = found.get(index).copied().flatten() else {
            let may_be_absent = OperandFlags::OPTIONAL.union(OperandFlags::VARIADIC);
            return operand.bits.0 & may_be_absent.0 != 0 || may_lack;
        };
        let group = operand.dtype_group;
        let same = groups.iter().all(|(other, as_here)| group == 0 || *other != group || *as_here == dtype);
        groups.push((group, dtype));
        same && operand.dtypes.0 >> dtype.0 & 1 == 1
            && (operand.rank_min as usize..=operand.rank_max as usize).contains(&rank)
            && (!strided || operand.bits.contains(OperandFlags::STRIDED))
            && operand.layout == Layout::PLAIN
    };
    (0..operands.len().max(found.len())).all(&mut one_meets)
}

/// A call of a kernel, with all data that its record points to.
struct RunningCall<'a> {
    loaded: &'a HostedPlugin,
    row: &'a abi::Kernel,
    attributes: Vec<abi::Attribute>,
    originals: Vec<Option<&'a TestArray>>,
    inputs: Vec<Option<TestArray>>,
    outputs: Vec<Option<TestArray>>,
    /// The targets of the attributes' pointers.
    #[expect(clippy::vec_box, reason = "attributes hold the addresses of their values")]
    _values: Vec<Box<EncodedAttribute<'a>>>,
}

struct EncodedAttribute<'a> {
    int: i64,
    float: f64,
    text: abi::Str,
    texts: Vec<abi::Str>,
    tensor: abi::Tensor,
    tensors: [*const abi::Tensor; 1],
    given: TestAttribute<'a>,
}

impl<'a> RunningCall<'a> {
    fn new(
        loaded: &'a HostedPlugin,
        row: &'a abi::Kernel,
        attributes: &[(&'a str, TestAttribute<'a>)],
        inputs: &[Option<&'a TestArray>],
        outputs: &[Option<(Dtype, &[i64])>],
    ) -> Self {
        let values: Vec<_> = attributes.iter().map(|(_, given)| EncodedAttribute::new(*given)).collect();
        let attributes =
            attributes.iter().zip(&values).map(|((name, _), value)| value.to_abi(name)).collect();
        Self {
            loaded,
            row,
            attributes,
            originals: inputs.to_vec(),
            inputs: inputs.iter().map(|input| input.cloned()).collect(),
            outputs: outputs
                .iter()
                .map(|output| output.map(|(dtype, dims)| TestArray::blank(dtype, dims)))
                .collect(),
            _values: values,
        }
    }

    /// Returns `Ok(Err)` if the kernel does not support the call.
    fn run_call(mut self) -> Result<Result<Vec<Option<TestArray>>, String>, String> {
        let demanded = operand_list(self.row.inputs, self.row.inputs_count);
        let allocates = self.row.bits.contains(KernelFlags::ALLOCATES_OUTPUTS);
        let mut inputs: Vec<_> =
            self.inputs.iter_mut().map(|input| describe_operand(input.as_mut(), false)).collect();
        for (index, input) in inputs.iter_mut().enumerate() {
            input.place = operand_demands(&demanded, index).map_or(input.place, |operand| operand.place);
        }
        let mut outputs: Vec<_> =
            self.outputs.iter_mut().map(|output| describe_operand(output.as_mut(), allocates)).collect();
        let inputs: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const *input).collect();
        // Through mutable pointers, because the host changes outputs that the kernel allocates.
        let outputs: Vec<*const abi::Tensor> =
            outputs.iter_mut().map(|output| (&raw mut *output).cast_const()).collect();
        let attributes: Vec<_> = self.attributes.iter().map(|attribute| &raw const *attribute).collect();
        let allocated = RefCell::new(Vec::new());
        let allocate = |index, dtype, dims: &[i64]| {
            let mut array = TestArray::blank(dtype, dims);
            let output = array.describe_mut();
            allocated.borrow_mut().push((index, array));
            output
        };
        let result = OutputAllocator(&allocate);
        let mut call = abi::Call {
            inputs: inputs.as_ptr(),
            inputs_count: inputs.len() as u64,
            outputs: outputs.as_ptr(),
            outputs_count: outputs.len() as u64,
            attributes: attributes.as_ptr(),
            attributes_count: attributes.len() as u64,
            random_seed: 1,
            host_call: (&raw const result).cast_mut().cast(),
            ..abi::Call::EMPTY
        };
        let unsupported = self.check_support(&call);
        if unsupported.is_err() {
            return Ok(unsupported.map(|()| Vec::new()));
        }
        let mut workspace = self.allocate_workspace(&call)?;
        call.workspace = abi::Memory(workspace.address());
        call.workspace_size = workspace.size() as u64;
        let outcome = self.prepare_and_run(&call);
        assert!(workspace.is_guarded(), "the kernel wrote outside of its workspace");
        let unchanged = self.inputs.iter().zip(&self.originals).all(|(now, original)| {
            now.as_ref().is_none_or(|now| original.is_some_and(|original| now.has_same_bytes(original)))
        });
        assert!(unchanged, "the kernel wrote into an input");
        for (index, array) in allocated.take() {
            self.outputs[index] = Some(array);
        }
        let is_guarded = self.outputs.iter().flatten().all(|output| output.is_guarded());
        assert!(is_guarded, "the kernel wrote outside of an output");
        outcome.map(|()| Ok(self.outputs))
    }

    fn check_status(&self, error: abi::Error) -> Result<(), String> {
        self.loaded.result_from_error(error).map_err(ReportedError::into_text)
    }

    fn check_support(&self, call: &abi::Call) -> Result<(), String> {
        // SAFETY: the call is complete, and the context belongs to the kernel.
        self.row.supports.map_or(Ok(()), |slot| self.check_status(unsafe { slot(self.row.context, call) }))
    }

    fn allocate_workspace(&self, call: &abi::Call) -> Result<GuardedStorage, String> {
        let mut size = 0;
        if let Some(slot) = self.row.workspace {
            // SAFETY: as above, and the size is writable.
            self.check_status(unsafe { slot(self.row.context, call, &raw mut size) })?;
        }
        Ok(GuardedStorage::new(size as usize))
    }

    fn prepare_and_run(&self, call: &abi::Call) -> Result<(), String> {
        let (context, mut state): (_, *mut c_void) = (self.row.context, ptr::null_mut());
        if let Some(slot) = self.row.prepare {
            // SAFETY: as above, and the state is writable.
            self.check_status(unsafe { slot(context, call, &raw mut state) })?;
        }
        // SAFETY: the state was just created by this kernel.
        let outcome = self.row.run.map(|slot| self.check_status(unsafe { slot(context, state, call) }));
        if let Some(slot) = self.row.release {
            // SAFETY: as above; the state is not used again.
            self.check_status(unsafe { slot(context, state) })?;
        }
        outcome.unwrap_or_else(|| Err("expected a kernel that can run, found none".to_owned()))
    }
}

impl<'a> EncodedAttribute<'a> {
    fn new(given: TestAttribute<'a>) -> Box<Self> {
        let mut value = Box::new(Self {
            int: 0,
            float: 0.0,
            text: abi::Str::EMPTY,
            texts: Vec::new(),
            tensor: abi::Tensor::EMPTY,
            tensors: [ptr::null()],
            given,
        });
        match given {
            TestAttribute::Int(int) => value.int = int,
            TestAttribute::Float(float) => value.float = float,
            TestAttribute::Text(text) => value.text = abi::Str::borrowed(text),
            TestAttribute::Texts(texts) => {
                value.texts = texts.iter().map(|text| abi::Str::borrowed(text)).collect();
            }
            TestAttribute::Tensor(array) => value.tensor = array.describe(),
            TestAttribute::Ints(_) | TestAttribute::Floats(_) => {}
        }
        value.tensors = [&raw const value.tensor];
        value
    }

    fn to_abi(&self, name: &str) -> abi::Attribute {
        let empty = abi::Attribute { name: abi::Str::borrowed(name), ..abi::Attribute::EMPTY };
        match self.given {
            TestAttribute::Int(_) => abi::Attribute {
                kind: abi::AttributeKind::INT,
                ints: &raw const self.int,
                ints_count: 1,
                ..empty
            },
            TestAttribute::Ints(ints) => abi::Attribute {
                kind: abi::AttributeKind::INTS,
                ints: ints.as_ptr(),
                ints_count: ints.len() as u64,
                ..empty
            },
            TestAttribute::Float(_) => abi::Attribute {
                kind: abi::AttributeKind::FLOAT,
                floats: &raw const self.float,
                floats_count: 1,
                ..empty
            },
            TestAttribute::Floats(floats) => abi::Attribute {
                kind: abi::AttributeKind::FLOATS,
                floats: floats.as_ptr(),
                floats_count: floats.len() as u64,
                ..empty
            },
            TestAttribute::Text(_) => abi::Attribute {
                kind: abi::AttributeKind::STRING,
                strings: &raw const self.text,
                strings_count: 1,
                ..empty
            },
            TestAttribute::Texts(texts) => abi::Attribute {
                kind: abi::AttributeKind::STRINGS,
                strings: self.texts.as_ptr(),
                strings_count: texts.len() as u64,
                ..empty
            },
            TestAttribute::Tensor(_) => abi::Attribute {
                kind: abi::AttributeKind::TENSOR,
                tensors: self.tensors.as_ptr(),
                tensors_count: 1,
                ..empty
            },
        }
    }
}

/// The record of an operand. A missing operand is absent, unless it is an output that the kernel allocates.
fn describe_operand(array: Option<&mut TestArray>, allocates: bool) -> abi::Tensor {
    match array {
        Some(array) => array.describe_mut(),
        None if allocates => abi::Tensor::EMPTY,
        None => abi::Tensor { bits: abi::TensorFlags::ABSENT, ..abi::Tensor::EMPTY },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: KernelRunner = crate::kernel_runner!(oarlock_cpu_elementwise::elementwise_kernels);

    #[test]
    fn a_kernel_runs_on_arrays() {
        let (a, b) = (
            TestArray::from_values(&[2, 2], &[1f32, 2., 3., 4.]),
            TestArray::from_values(&[2], &[10f32, 20.]),
        );
        let results = KERNELS
            .run_kernel("Add", 14, &[], &[Some(&a), Some(&b)], &[Some((Dtype::F32, &[2, 2]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [11., 22., 13., 24.]);
    }

    #[test]
    fn the_message_of_a_kernel_that_fails_is_the_result() {
        let (a, b) =
            (TestArray::from_values(&[3], &[1f32, 2., 3.]), TestArray::from_values(&[2], &[10f32, 20.]));
        let message = KERNELS
            .run_kernel("Add", 14, &[], &[Some(&a), Some(&b)], &[Some((Dtype::F32, &[3]))])
            .unwrap_err();
        assert!(message.contains("[3] and [2]"), "{message}");
    }

    #[test]
    fn operands_that_no_kernel_takes_are_an_error() {
        let (a, b) = (TestArray::from_values(&[1], &[1f32]), TestArray::from_values(&[1], &[1i64]));
        let message = KERNELS
            .run_kernel("Add", 14, &[], &[Some(&a), Some(&b)], &[Some((Dtype::F32, &[1]))])
            .unwrap_err();
        assert!(message.contains("`Add`"), "{message}");
    }
}
