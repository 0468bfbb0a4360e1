//! One test: a model, its inputs, and the expected outputs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use oarlock_core::{Device, Dtype, Runtime, Tensor};
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::{RuntimeValue, Session, SessionOptions, import};
use serde::Deserialize;

use crate::compare::{NumericTolerance, compare_numbers};

/// One line of a case file.
#[derive(Deserialize)]
struct ModelCaseLine {
    name: String,
    at: usize,
    size: usize,
    /// Inputs and outputs of each run.
    sets: Vec<[Vec<WrittenValue>; 2]>,
    rtol: f64,
    atol: f64,
    /// True if the outputs are random, so that only dtypes and shapes are compared.
    only_shape: bool,
}

/// A value in a case file.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenValue {
    Text { dims: Vec<i64>, texts: Vec<String> },
    Number { dtype: String, dims: Vec<i64>, at: usize, size: usize },
    Sequence(Vec<WrittenValue>),
    Nothing(()),
}

/// A test, with the bytes of its model and tensors, which all tests share.
#[derive(Clone)]
pub(crate) struct ModelCase {
    line: Arc<ModelCaseLine>,
    bytes: Bytes,
}

impl ModelCase {
    /// Reads a case file; `file` has no extension.
    pub(crate) fn read_cases(file: &Path) -> Vec<Self> {
        let complain = |error: std::io::Error| panic!("`{}`: {error}", file.display());
        let bytes: Bytes = fs::read(file.with_extension("bin")).unwrap_or_else(complain).into();
        let lines = fs::read_to_string(file.with_extension("jsonl"))
            .unwrap_or_else(|error| panic!("`{}`: {error}", file.display()));
        let read = |line: &str| Self {
            line: Arc::new(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            bytes: bytes.clone(),
        };
        lines.lines().map(read).collect()
    }

    pub(crate) fn case_name(&self) -> &str {
        &self.line.name
    }

    /// Runs the model on a device, then exports it and runs the exported file.
    pub(crate) fn run_case(&self, runtime: &Arc<Runtime>, device: &Device) -> Result<(), String> {
        let options = SessionOptions { devices: vec![device.clone()], ..SessionOptions::default() };
        let session = |model: Bytes| {
            let model = import::onnx::decode_onnx(model, None).map_err(refusal_message)?;
            Session::new(runtime.clone(), &model, &options).map_err(refusal_message)
        };
        // Strings only exist on the CPU.
        let host = runtime.device("cpu").map_err(refusal_message)?;
        let first = session(self.model_bytes())?;
        self.check_outputs(&first, device, &host)?;
        let again = || {
            let files = first.to_onnx(&OnnxExportOptions::default()).map_err(refusal_message)?;
            let second = session(files.model.clone().into())?;
            self.check_outputs(&second, device, &host)?;
            let is_same =
                second.to_onnx(&OnnxExportOptions::default()).map_err(refusal_message)?.model == files.model;
            if is_same { Ok(()) } else { Err("another model when it is written again".to_owned()) }
        };
        again().map_err(|message| format!("written and read again: {message}"))
    }

    fn check_outputs(&self, session: &Session, device: &Device, host: &Device) -> Result<(), String> {
        for (set, [_, outputs]) in self.line.sets.iter().enumerate() {
            let inputs = self.read_inputs(set, device, host).map_err(refusal_message)?;
            let found = session.run(&inputs).map_err(refusal_message)?;
            if found.len() != outputs.len() {
                return Err(format!("expected {} outputs, found {}", outputs.len(), found.len()));
            }
            for (index, (expected, found)) in outputs.iter().zip(&found).enumerate() {
                self.compare_value(expected, found)
                    .map_err(|message| format!("output {index}: {message}"))?;
            }
        }
        Ok(())
    }

    /// The serialized model.
    pub(crate) fn model_bytes(&self) -> Bytes {
        self.bytes.slice(self.line.at..self.line.at + self.line.size)
    }

    /// Inputs of one run.
    pub(crate) fn read_inputs(
        &self,
        set: usize,
        device: &Device,
        host: &Device,
    ) -> oarlock_core::Result<Vec<RuntimeValue>> {
        let inputs = self.line.sets.get(set).into_iter().flat_map(|[inputs, _]| inputs);
        inputs.map(|written| self.read_datum(written, device, host)).collect()
    }

    fn content_bytes(&self, at: usize, size: usize) -> &[u8] {
        &self.bytes[at..at + size]
    }

    fn read_datum(
        &self,
        written: &WrittenValue,
        device: &Device,
        host: &Device,
    ) -> oarlock_core::Result<RuntimeValue> {
        Ok(match written {
            WrittenValue::Text { dims, texts } => Tensor::from_strings(host, dims, texts.clone())?.into(),
            WrittenValue::Number { dtype, dims, at, size } => {
                Tensor::from_bytes(device, dtype.parse()?, dims, self.content_bytes(*at, *size))?.into()
            }
            WrittenValue::Sequence(elements) => {
                let elements = elements.iter().map(|element| self.read_datum(element, device, host));
                RuntimeValue::Sequence(elements.collect::<oarlock_core::Result<_>>()?)
            }
            WrittenValue::Nothing(()) => RuntimeValue::Nothing,
        })
    }

    fn compare_value(&self, expected: &WrittenValue, found: &RuntimeValue) -> Result<(), String> {
        let (dtype, dims) = match (expected, found) {
            (WrittenValue::Nothing(()), RuntimeValue::Nothing) => return Ok(()),
            (WrittenValue::Sequence(expected), RuntimeValue::Sequence(found))
                if expected.len() == found.len() =>
            {
                return expected
                    .iter()
                    .zip(found)
                    .try_for_each(|(expected, found)| self.compare_value(expected, found));
            }
            (WrittenValue::Text { dims, .. }, RuntimeValue::Tensor(_)) => (Dtype::String, dims),
            (WrittenValue::Number { dtype, dims, .. }, RuntimeValue::Tensor(_)) => {
                (dtype.parse().map_err(refusal_message)?, dims)
            }
            (_, found) => return Err(format!("expected something else, found {}", found.kind_name())),
        };
        let found = found.as_tensor().map_err(refusal_message)?;
        if (dtype, dims.as_slice()) != (found.dtype(), found.dims()) {
            let (other, shape) = (found.dtype(), found.dims());
            return Err(format!("expected {dtype} of shape {dims:?}, found {other} of shape {shape:?}"));
        }
        if self.line.only_shape {
            return found.wait().map_err(refusal_message);
        }
        match expected {
            WrittenValue::Text { texts, .. } => {
                let found = found.to_strings().map_err(refusal_message)?;
                if *texts == found { Ok(()) } else { Err(format!("expected {texts:?}, found {found:?}")) }
            }
            WrittenValue::Number { at, size, .. } => {
                let tolerance = NumericTolerance { relative: self.line.rtol, absolute: self.line.atol };
                let found = found.to_bytes().map_err(refusal_message)?;
                compare_numbers(dtype, self.content_bytes(*at, *size), &found, tolerance)
            }
            WrittenValue::Sequence(_) | WrittenValue::Nothing(()) => Ok(()),
        }
    }
}

fn refusal_message(error: oarlock_core::Error) -> String {
    error.to_string()
}
