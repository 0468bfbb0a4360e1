//! Trials of kernels: which dtypes and calls fit a kernel's record, and the run of one call.

mod operands;

use std::fmt;

use oarlock_abi as abi;

pub(crate) use operands::{CallLayout, TrialOperands};

use crate::bench::{CheckAbort, Verdict};
use crate::device::DeviceUnderTest;
use crate::elements::{ELEMENT_DTYPES, dtype_name, round_to_dtype};
use crate::kernel_call::PreparedState;
use crate::kernel_record::KernelUnderTest;
use crate::reference::{
    AttributeValue, CaseMaker, ReferenceArray, ReferenceCall, ReferenceCase, ReferenceOp, ReferenceOutput,
    find_references,
};

/// A kernel with one combination of dtypes on one device.
#[derive(Clone)]
pub(crate) struct KernelTrial<'a> {
    pub(crate) kernel: KernelUnderTest<'a>,
    pub(crate) device: DeviceUnderTest<'a>,
    pub(crate) op: &'static ReferenceOp,
    /// The dtype called `T`.
    pub(crate) dtype: abi::Dtype,
    /// The dtype called `U` or `I`; `T` where there is none.
    second: abi::Dtype,
    inputs: DtypePattern,
    outputs: DtypePattern,
    alignment: usize,
    element_alignment: usize,
}

/// A call with what it should give.
pub(crate) struct SolvedCase {
    /// The inputs as their dtypes represent them.
    inputs: Vec<Option<ReferenceArray>>,
    expected: Vec<ReferenceOutput>,
    attributes: Vec<(&'static str, AttributeValue)>,
    /// What is special about it, or empty.
    name: &'static str,
}

/// The dtypes of the inputs or outputs of a call, of which the last may stand for all further ones.
#[derive(Clone, Debug)]
struct DtypePattern {
    dtypes: Vec<abi::Dtype>,
    is_repeated: bool,
}

impl DtypePattern {
    /// Reads a list such as `T, i64*`.
    fn parse(text: &str, dtype: abi::Dtype, second: abi::Dtype) -> Self {
        let is_repeated = text.ends_with('*');
        let read = |name: &str| match name.trim().trim_end_matches('*') {
            "T" => dtype,
            "U" | "I" => second,
            name => ELEMENT_DTYPES.into_iter().find(|known| dtype_name(*known) == name).unwrap_or(dtype),
        };
        Self { dtypes: text.split(',').map(read).collect(), is_repeated }
    }

    fn at(&self, index: usize) -> Option<abi::Dtype> {
        let last = self.dtypes.last().filter(|_| self.is_repeated);
        self.dtypes.get(index).or(last).copied()
    }
}

impl fmt::Display for KernelTrial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {}", self.op.name, dtype_name(self.dtype))?;
        if self.second != self.dtype {
            write!(f, " with {}", dtype_name(self.second))?;
        }
        write!(f, " on {}", self.device)
    }
}

/// The references for a kernel; none for ops that the suite does not know.
pub(crate) fn references_of(kernel: KernelUnderTest<'_>) -> Vec<&'static ReferenceOp> {
    let is_onnx = ["", "ai.onnx"].contains(&kernel.domain().as_str());
    let allocates = kernel.raw.bits.contains(abi::KernelFlags::ALLOCATES_OUTPUTS);
    if !is_onnx || allocates {
        return Vec::new();
    }
    find_references(&kernel.op_name(), kernel.raw.version_max).collect()
}

/// All combinations of dtypes of a kernel that the suite has a reference for.
pub(crate) fn kernel_trials<'a>(
    kernel: KernelUnderTest<'a>,
    device: DeviceUnderTest<'a>,
) -> Verdict<Vec<KernelTrial<'a>>> {
    let alignment = device.operand_alignment()?;
    let element_alignment = device.device_info()?.memory_alignment.max(1) as usize;
    let mut trials = Vec::new();
    for op in references_of(kernel) {
        for dtype in ELEMENT_DTYPES.into_iter().filter(|dtype| op.kinds.contains(*dtype)) {
            let seconds = if op.operands.contains('U') {
                ELEMENT_DTYPES.to_vec()
            } else if op.operands.contains('I') {
                vec![abi::Dtype::I64, abi::Dtype::I32]
            } else {
                vec![dtype]
            };
            for second in seconds {
                let (inputs, outputs) = op.operands.split_once("->").unwrap_or_default();
                let (inputs, outputs) = (inputs.trim(), outputs.trim());
                let trial = KernelTrial {
                    kernel,
                    device,
                    op,
                    dtype,
                    second,
                    inputs: DtypePattern::parse(inputs, dtype, second),
                    outputs: DtypePattern::parse(outputs, dtype, second),
                    alignment,
                    element_alignment,
                };
                if trial.fits_record() {
                    trials.push(trial);
                }
            }
        }
    }
    Ok(trials)
}

/// The requirements on an operand, of which the last may stand for all further ones.
fn requirement_at(operands: &[abi::Operand], index: usize) -> Option<&abi::Operand> {
    let last = operands.last().filter(|last| last.bits.contains(abi::OperandFlags::VARIADIC));
    operands.get(index).or(last)
}

fn accepts_dtype(operand: &abi::Operand, dtype: abi::Dtype) -> bool {
    operand.dtypes.contains(abi::DtypeSet(1 << dtype.0))
}

impl<'a> KernelTrial<'a> {
    /// True if the record permits these dtypes. Operands that the kernel does not list are left out of its calls.
    fn fits_record(&self) -> bool {
        let (inputs, outputs) = (self.kernel.inputs(), self.kernel.outputs());
        let mut groups: Vec<(u32, abi::Dtype)> = Vec::new();
        let listed = inputs.iter().enumerate().map(|(index, operand)| (operand, self.inputs.at(index)));
        let written = outputs.iter().enumerate().map(|(index, operand)| (operand, self.outputs.at(index)));
        listed.chain(written).all(|(operand, dtype)| {
            let Some(dtype) = dtype else { return operand.bits.contains(abi::OperandFlags::OPTIONAL) };
            let group = (operand.dtype_group, dtype);
            let known = groups.iter().find(|(number, _)| *number == group.0 && group.0 != 0);
            let agrees = known.is_none_or(|known| known.1 == dtype);
            groups.push(group);
            agrees && accepts_dtype(operand, dtype)
        })
    }

    pub(crate) fn cases(&self) -> Vec<ReferenceCase> {
        self.op
            .cases(CaseMaker { dtype: self.dtype })
            .into_iter()
            .map(|case| self.with_second_dtype(case))
            .collect()
    }

    /// A cast names the dtype of its output in an attribute too.
    fn with_second_dtype(&self, mut case: ReferenceCase) -> ReferenceCase {
        if self.op.operands.contains('U') {
            case.attributes.push(("to", AttributeValue::Int(self.second.0.into())));
        }
        case
    }

    /// The inputs as their dtypes represent them.
    fn represented_inputs(&self, case: &ReferenceCase) -> Vec<Option<ReferenceArray>> {
        let represent = |(index, input): (usize, &Option<ReferenceArray>)| {
            let (input, dtype) = (input.as_ref()?, self.inputs.at(index)?);
            let values = input.values.iter().map(|value| round_to_dtype(dtype, *value)).collect();
            Some(ReferenceArray::new(&input.dims, values))
        };
        case.inputs.iter().enumerate().map(represent).collect()
    }

    fn expected_outputs(
        &self,
        case: &ReferenceCase,
        inputs: &[Option<ReferenceArray>],
    ) -> Vec<ReferenceOutput> {
        let call =
            ReferenceCall { dtype: self.dtype, second: self.second, inputs, attributes: &case.attributes };
        let mut outputs = self.op.compute(&call);
        // A kernel may leave optional outputs out.
        let written = self.kernel.outputs();
        outputs.truncate(
            (0..outputs.len()).take_while(|index| requirement_at(&written, *index).is_some()).count(),
        );
        outputs
    }

    /// The reason why the record of the kernel excludes a call.
    fn exclusion(&self, inputs: &[Option<ReferenceArray>], outputs: &[ReferenceOutput]) -> Option<String> {
        let (read, written) = (self.kernel.inputs(), self.kernel.outputs());
        let is_left_out = |operand: &abi::Operand| operand.bits.contains(abi::OperandFlags::OPTIONAL);
        for (index, operand) in read.iter().enumerate().skip(inputs.len()) {
            let is_rest = operand.bits.contains(abi::OperandFlags::VARIADIC) && index > 0;
            if !is_left_out(operand) && !is_rest {
                return Some(format!("input {index} is required"));
            }
        }
        for (index, input) in inputs.iter().enumerate() {
            let Some(operand) = requirement_at(&read, index) else {
                return Some(format!("there is no input {index}"));
            };
            match input {
                None if !is_left_out(operand) => return Some(format!("input {index} is required")),
                Some(input) if !permits_rank(operand, input.rank()) => {
                    return Some(format!("input {index} has another rank"));
                }
                _ => {}
            }
        }
        for (index, output) in outputs.iter().enumerate() {
            if requirement_at(&written, index)
                .is_none_or(|operand| !permits_rank(operand, output.array.rank()))
            {
                return Some(format!("output {index} has another rank"));
            }
        }
        let more = written.get(outputs.len()..).unwrap_or_default();
        let is_missing = |operand: &abi::Operand| {
            !is_left_out(operand) && !operand.bits.contains(abi::OperandFlags::VARIADIC)
        };
        more.iter().any(is_missing).then(|| "the kernel has further outputs".to_owned())
    }

    /// Computes what a call should give; unsupported if the record of the kernel excludes the call.
    pub(crate) fn solve_case(&self, case: ReferenceCase) -> Verdict<SolvedCase> {
        let inputs = self.represented_inputs(&case);
        let expected = self.expected_outputs(&case, &inputs);
        match self.exclusion(&inputs, &expected) {
            Some(reason) => Err(CheckAbort::unsupported(reason)),
            None => Ok(SolvedCase { inputs, expected, attributes: case.attributes, name: case.name }),
        }
    }

    /// Puts the operands of a call into memory; unsupported if the kernel does not take it. The outputs hold guard bytes everywhere.
    pub(crate) fn make_operands<'c>(
        &self,
        case: &'c SolvedCase,
        layout: CallLayout,
    ) -> Verdict<TrialOperands<'a, 'c>> {
        TrialOperands::allocate(self, case, layout)
    }

    /// Asks the kernel whether it takes a call; unsupported if it does not.
    fn expect_accepted(&self, call: &abi::Call) -> Verdict {
        match self.kernel.supports(self.device.bench, call)? {
            Ok(()) => Ok(()),
            Err(refusal) if refusal.text.code == abi::Code::UNIMPLEMENTED => {
                Err(CheckAbort::unsupported(format!("the call is refused: {}", refusal.text.message)))
            }
            Err(error) => Err(CheckAbort::failed(format!(
                "expected `supports` to refuse with `unimplemented`, found: {error}"
            ))),
        }
    }

    /// Prepares the kernel for a call that it takes.
    pub(crate) fn prepare_call(&self, operands: &TrialOperands<'a, '_>) -> Verdict<PreparedState<'a>> {
        let bench = self.device.bench;
        operands.with_trial_call(self, abi::Stream(0), |call| self.kernel.prepare(bench, call))
    }

    /// Runs the kernel once; returns the largest error in ulps, which is within the tolerance.
    pub(crate) fn run_and_compare(&self, case: &SolvedCase, layout: CallLayout) -> Verdict<f64> {
        let operands = self.make_operands(case, layout)?;
        let state = self.prepare_call(&operands)?;
        operands.with_trial_call(self, abi::Stream(0), |call| state.run(call))?;
        operands.compare_outputs(self)
    }

    /// The first call that the kernel accepts and that has elements to compute.
    pub(crate) fn first_accepted(&self) -> Verdict<SolvedCase> {
        let mut reason = CheckAbort::unsupported("there is no call for it");
        for case in self.cases() {
            let accepted = self.solve_case(case).and_then(|case| {
                let has_elements = self.make_operands(&case, CallLayout::Contiguous)?.has_elements();
                Ok(has_elements.then_some(case))
            });
            match accepted {
                Ok(Some(case)) => return Ok(case),
                Ok(None) => {}
                Err(CheckAbort::Unsupported(why)) => reason = CheckAbort::unsupported(why),
                Err(failed) => return Err(failed),
            }
        }
        Err(reason)
    }
}

fn permits_rank(operand: &abi::Operand, rank: usize) -> bool {
    (operand.rank_min as usize..=operand.rank_max as usize).contains(&rank)
}
