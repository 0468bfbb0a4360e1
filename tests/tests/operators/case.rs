//! A case: an op, what it is given, and what it has to give.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use oarlock_core::{
    Attribute, Attributes, Constant, Device, Dtype, Error, Invocation, Op, Result, Runtime, Tensor,
};
use serde::Deserialize;

use crate::compare::{Tolerance, compare_numbers};

/// One line of a file of cases.
#[derive(Deserialize)]
struct Line {
    name: String,
    op: String,
    domain: String,
    opset: u32,
    attributes: BTreeMap<String, WrittenAttribute>,
    inputs: Vec<Option<Written>>,
    outputs: Vec<Option<Written>>,
    rtol: f64,
    atol: f64,
    /// Whether the values are random, so that only dtypes and shapes are compared.
    only_shape: bool,
}

/// A tensor in a file of cases.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text { dims: Vec<i64>, texts: Vec<String> },
    Number { dtype: String, dims: Vec<i64>, at: usize, size: usize, steps: Vec<Step> },
}

/// A way to see a tensor as another.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
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
    Tensor(Written),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Strings(Vec<String>),
}

/// Why a case does not pass.
pub(crate) enum Problem {
    /// The call ended with an error.
    Refused(Error),
    /// The call gave something else.
    Wrong(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Wrong(message) => f.write_str(message),
        }
    }
}

/// A case with the bytes of its tensors, which all cases of a file share.
pub(crate) struct Case {
    line: Line,
    source: String,
    bytes: Arc<[u8]>,
}

impl Case {
    /// The cases of a file, whose name is given without its ending.
    pub(crate) fn read_all(file: &Path) -> Vec<Self> {
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
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.line.op, self.source, self.line.name)
    }

    /// Runs it on a device.
    pub(crate) fn run(&self, runtime: &Runtime, device: &Device) -> std::result::Result<(), Problem> {
        let Line { op, domain, opset, .. } = &self.line;
        let op = Op::new(runtime, domain, op, *opset, self.attributes()?)?;
        let make =
            |input: &Option<Written>| input.as_ref().map(|input| self.tensor(input, device)).transpose();
        let inputs = self.line.inputs.iter().map(make).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let expected = &self.line.outputs;
        let call =
            Invocation { inputs: &inputs, outputs: expected.len(), device: Some(device), stream: None };
        let outputs = op.invoke(runtime, &call)?;
        if outputs.len() != expected.len() {
            return Err(Problem::Wrong(format!(
                "expected {} outputs, found {}",
                expected.len(),
                outputs.len()
            )));
        }
        for (index, (expected, found)) in expected.iter().zip(&outputs).enumerate() {
            let Some(expected) = expected else { continue };
            let Some(found) = found else {
                return Err(Problem::Wrong(format!("output {index}: expected a tensor, found none")));
            };
            self.compare(expected, found).map_err(|problem| match problem {
                Problem::Wrong(message) => Problem::Wrong(format!("output {index}: {message}")),
                refused @ Problem::Refused(_) => refused,
            })?;
        }
        Ok(())
    }

    fn attributes(&self) -> Result<Attributes> {
        let make = |(name, value): (&String, &WrittenAttribute)| {
            let value = match value {
                WrittenAttribute::Int(value) => Attribute::Int(*value),
                WrittenAttribute::Float(value) => Attribute::Float(*value),
                WrittenAttribute::String(value) => Attribute::String(value.clone()),
                WrittenAttribute::Ints(values) => Attribute::Ints(values.clone()),
                WrittenAttribute::Floats(values) => Attribute::Floats(values.clone()),
                WrittenAttribute::Strings(values) => Attribute::Strings(values.clone()),
                WrittenAttribute::Tensor(Written::Number { dtype, dims, at, size, .. }) => {
                    Attribute::Tensor(Constant::new(dtype.parse()?, dims, self.content(*at, *size).to_vec())?)
                }
                WrittenAttribute::Tensor(Written::Text { .. }) => {
                    return Err(Error::unimplemented(
                        "expected an attribute with numbers, found one with strings",
                    ));
                }
            };
            Ok((name.clone(), value))
        };
        self.line.attributes.iter().map(make).collect()
    }

    fn content(&self, at: usize, size: usize) -> &[u8] {
        &self.bytes[at..at + size]
    }

    fn tensor(&self, written: &Written, device: &Device) -> Result<Tensor> {
        match written {
            Written::Text { dims, texts } => Tensor::from_texts(device, dims, texts.clone()),
            Written::Number { dtype, dims, at, size, steps } => {
                let base = Tensor::from_bytes(device, dtype.parse()?, dims, self.content(*at, *size))?;
                steps.iter().try_fold(base, |seen, step| match step {
                    Step::Transpose(order) => seen.transpose(order),
                    Step::Slice((axis, begin, end, step)) => seen.slice(*axis, *begin, *end, *step),
                    Step::Expand(dims) => seen.expand(dims),
                })
            }
        }
    }

    fn compare(&self, expected: &Written, found: &Tensor) -> std::result::Result<(), Problem> {
        let (dtype, dims) = match expected {
            Written::Text { dims, .. } => (Dtype::String, dims),
            Written::Number { dtype, dims, .. } => (dtype.parse()?, dims),
        };
        if (dtype, dims.as_slice()) != (found.dtype(), found.dims()) {
            return Err(Problem::Wrong(format!(
                "expected {dtype} of shape {dims:?}, found {} of shape {:?}",
                found.dtype(),
                found.dims()
            )));
        }
        if self.line.only_shape {
            return Ok(found.wait()?);
        }
        let wrong = match expected {
            Written::Text { texts, .. } => {
                let found = found.to_texts()?;
                (*texts != found).then(|| format!("expected {texts:?}, found {found:?}"))
            }
            Written::Number { at, size, .. } => {
                let tolerance = Tolerance { relative: self.line.rtol, absolute: self.line.atol };
                compare_numbers(dtype, self.content(*at, *size), &found.to_bytes()?, tolerance).err()
            }
        };
        wrong.map_or(Ok(()), |message| Err(Problem::Wrong(message)))
    }
}
