//! One case: an op, its inputs, and the expected outputs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use oarlock_core::{
    Attribute, Attributes, Constant, Device, Dtype, Error, Op, OpInvocation, Result, Runtime, Tensor,
};
use serde::Deserialize;

use crate::compare::{NumericTolerance, compare_numbers};

/// One line of a case file.
#[derive(Deserialize)]
struct OpCaseLine {
    name: String,
    op: String,
    domain: String,
    opset: u32,
    attributes: BTreeMap<String, WrittenAttribute>,
    inputs: Vec<Option<WrittenTensor>>,
    outputs: Vec<Option<WrittenTensor>>,
    rtol: f64,
    atol: f64,
    /// True if the outputs are random, so that only dtypes and shapes are compared.
    only_shape: bool,
}

/// A tensor in a case file.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenTensor {
    Text { dims: Vec<i64>, texts: Vec<String> },
    Number { dtype: String, dims: Vec<i64>, at: usize, size: usize, steps: Vec<WrittenView> },
}

/// A view of a tensor.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenView {
    Transpose(Vec<usize>),
    Slice((i64, u64, u64, u64)),
    Expand(Vec<i64>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenAttribute {
    Int(i64),
    Float(f64),
    String(String),
    Tensor(WrittenTensor),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Strings(Vec<String>),
}

/// The reason why a case does not pass.
pub(crate) enum CaseProblem {
    /// The call returned an error.
    Refused(Error),
    /// The call returned a wrong result.
    Wrong(String),
}

impl From<Error> for CaseProblem {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl fmt::Display for CaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Wrong(message) => f.write_str(message),
        }
    }
}

/// A case, with the bytes of its tensors, which all cases of a file share.
pub(crate) struct OpCase {
    line: OpCaseLine,
    source: String,
    bytes: Arc<[u8]>,
}

impl OpCase {
    /// Reads a case file; `file` has no extension.
    pub(crate) fn read_cases(file: &Path) -> Vec<Self> {
        let complain = |error: std::io::Error| panic!("`{}`: {error}", file.display());
        let bytes: Arc<[u8]> = fs::read(file.with_extension("bin")).unwrap_or_else(complain).into();
        let lines = fs::read_to_string(file.with_extension("jsonl"))
            .unwrap_or_else(|error| panic!("`{}`: {error}", file.display()));
        let source = file.file_name().unwrap_or_default().to_string_lossy();
        let read = |line: &str| Self {
            line: serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")),
            source: source.clone().into_owned(),
            bytes: bytes.clone(),
        };
        lines.lines().map(read).collect()
    }

    /// The op and the name of the case.
    pub(crate) fn case_name(&self) -> String {
        format!("{}/{}/{}", self.line.op, self.source, self.line.name)
    }

    /// Runs the case on a device.
    pub(crate) fn run_case(
        &self,
        runtime: &Runtime,
        device: &Device,
    ) -> std::result::Result<(), CaseProblem> {
        let OpCaseLine { op, domain, opset, .. } = &self.line;
        let op = Op::new(runtime, domain, op, *opset, self.read_attributes()?)?;
        let make = |input: &Option<WrittenTensor>| {
            input.as_ref().map(|input| self.read_tensor(input, device)).transpose()
        };
        let inputs = self.line.inputs.iter().map(make).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let expected = &self.line.outputs;
        let call =
            OpInvocation { inputs: &inputs, outputs: expected.len(), device: Some(device), stream: None };
        let outputs = op.invoke(runtime, &call)?;
        if outputs.len() != expected.len() {
            return Err(CaseProblem::Wrong(format!(
                "expected {} outputs, found {}",
                expected.len(),
                outputs.len()
            )));
        }
        for (index, (expected, found)) in expected.iter().zip(&outputs).enumerate() {
            let Some(expected) = expected else { continue };
            let Some(found) = found else {
                return Err(CaseProblem::Wrong(format!("output {index}: expected a tensor, found none")));
            };
            self.compare_tensor(expected, found).map_err(|problem| match problem {
                CaseProblem::Wrong(message) => CaseProblem::Wrong(format!("output {index}: {message}")),
                refused @ CaseProblem::Refused(_) => refused,
            })?;
        }
        Ok(())
    }

    fn read_attributes(&self) -> Result<Attributes> {
        let make = |(name, value): (&String, &WrittenAttribute)| {
            let value = match value {
                WrittenAttribute::Int(value) => Attribute::Int(*value),
                WrittenAttribute::Float(value) => Attribute::Float(*value),
                WrittenAttribute::String(value) => Attribute::String(value.clone()),
                WrittenAttribute::Ints(values) => Attribute::Ints(values.clone()),
                WrittenAttribute::Floats(values) => Attribute::Floats(values.clone()),
                WrittenAttribute::Strings(values) => Attribute::Strings(values.clone()),
                WrittenAttribute::Tensor(WrittenTensor::Number { dtype, dims, at, size, .. }) => {
                    Attribute::Tensor(Constant::new(
                        dtype.parse()?,
                        dims,
                        self.content_bytes(*at, *size).to_vec(),
                    )?)
                }
                WrittenAttribute::Tensor(WrittenTensor::Text { .. }) => {
                    return Err(Error::unimplemented(
                        "expected an attribute with numbers, found one with strings",
                    ));
                }
            };
            Ok((name.clone(), value))
        };
        self.line.attributes.iter().map(make).collect()
    }

    fn content_bytes(&self, at: usize, size: usize) -> &[u8] {
        &self.bytes[at..at + size]
    }

    fn read_tensor(&self, written: &WrittenTensor, device: &Device) -> Result<Tensor> {
        match written {
            WrittenTensor::Text { dims, texts } => Tensor::from_strings(device, dims, texts.clone()),
            WrittenTensor::Number { dtype, dims, at, size, steps } => {
                let base = Tensor::from_bytes(device, dtype.parse()?, dims, self.content_bytes(*at, *size))?;
                steps.iter().try_fold(base, |seen, step| match step {
                    WrittenView::Transpose(order) => seen.transpose(order),
                    WrittenView::Slice((axis, begin, end, step)) => seen.slice(*axis, *begin, *end, *step),
                    WrittenView::Expand(dims) => seen.expand(dims),
                })
            }
        }
    }

    fn compare_tensor(
        &self,
        expected: &WrittenTensor,
        found: &Tensor,
    ) -> std::result::Result<(), CaseProblem> {
        let (dtype, dims) = match expected {
            WrittenTensor::Text { dims, .. } => (Dtype::String, dims),
            WrittenTensor::Number { dtype, dims, .. } => (dtype.parse()?, dims),
        };
        if (dtype, dims.as_slice()) != (found.dtype(), found.dims()) {
            return Err(CaseProblem::Wrong(format!(
                "expected {dtype} of shape {dims:?}, found {} of shape {:?}",
                found.dtype(),
                found.dims()
            )));
        }
        if self.line.only_shape {
            return Ok(found.wait()?);
        }
        let wrong = match expected {
            WrittenTensor::Text { texts, .. } => {
                let found = found.to_strings()?;
                (*texts != found).then(|| format!("expected {texts:?}, found {found:?}"))
            }
            WrittenTensor::Number { at, size, .. } => {
                let tolerance = NumericTolerance { relative: self.line.rtol, absolute: self.line.atol };
                compare_numbers(dtype, self.content_bytes(*at, *size), &found.to_bytes()?, tolerance).err()
            }
        };
        wrong.map_or(Ok(()), |message| Err(CaseProblem::Wrong(message)))
    }
}
