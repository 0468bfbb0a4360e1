//! A test: a model, what it is given, and what it has to give.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use oarlock_core::{Device, Dtype, Runtime, Tensor};
use oarlock_engine::export::onnx::About;
use oarlock_engine::{Datum, Session, SessionOptions, import};
use serde::Deserialize;

use crate::compare::{Tolerance, compare_numbers};

/// One line of a file of tests.
#[derive(Deserialize)]
struct Line {
    name: String,
    at: usize,
    size: usize,
    /// Inputs and outputs of each run.
    sets: Vec<[Vec<Written>; 2]>,
    rtol: f64,
    atol: f64,
    /// Whether the values are random, so that only dtypes and shapes are compared.
    only_shape: bool,
}

/// A value in a file of tests.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text { dims: Vec<i64>, texts: Vec<String> },
    Number { dtype: String, dims: Vec<i64>, at: usize, size: usize },
    Sequence(Vec<Written>),
    Nothing(()),
}

/// A test with the bytes of its model and tensors, which all tests share.
#[derive(Clone)]
pub(crate) struct Case {
    line: Arc<Line>,
    bytes: Bytes,
}

impl Case {
    /// The tests of a file, whose name is given without its ending.
    pub(crate) fn read_all(file: &Path) -> Vec<Self> {
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

    pub(crate) fn name(&self) -> &str {
        &self.line.name
    }

    /// Runs it on a device, and then what the engine writes of it as a file.
    pub(crate) fn run(&self, runtime: &Arc<Runtime>, device: &Device) -> Result<(), String> {
        let options = SessionOptions { devices: vec![device.clone()], ..SessionOptions::default() };
        let session = |model: Bytes| {
            let model = import::onnx::decode(model, None).map_err(refused)?;
            Session::new(runtime.clone(), &model, &options).map_err(refused)
        };
        // Text is nowhere but on the CPU.
        let host = runtime.device("cpu").map_err(refused)?;
        let first = session(self.model())?;
        self.check(&first, device, &host)?;
        let again = || {
            let files = first.to_onnx(&About::default()).map_err(refused)?;
            let second = session(files.model.clone().into())?;
            self.check(&second, device, &host)?;
            let is_same = second.to_onnx(&About::default()).map_err(refused)?.model == files.model;
            if is_same { Ok(()) } else { Err("another model when it is written again".to_owned()) }
        };
        again().map_err(|message| format!("written and read again: {message}"))
    }

    fn check(&self, session: &Session, device: &Device, host: &Device) -> Result<(), String> {
        for (set, [_, outputs]) in self.line.sets.iter().enumerate() {
            let inputs = self.inputs(set, device, host).map_err(refused)?;
            let found = session.run(&inputs).map_err(refused)?;
            if found.len() != outputs.len() {
                return Err(format!("expected {} outputs, found {}", outputs.len(), found.len()));
            }
            for (index, (expected, found)) in outputs.iter().zip(&found).enumerate() {
                self.compare(expected, found).map_err(|message| format!("output {index}: {message}"))?;
            }
        }
        Ok(())
    }

    /// The bytes of the model.
    pub(crate) fn model(&self) -> Bytes {
        self.bytes.slice(self.line.at..self.line.at + self.line.size)
    }

    /// What one of the runs is given.
    pub(crate) fn inputs(
        &self,
        set: usize,
        device: &Device,
        host: &Device,
    ) -> oarlock_core::Result<Vec<Datum>> {
        let inputs = self.line.sets.get(set).into_iter().flat_map(|[inputs, _]| inputs);
        inputs.map(|written| self.datum(written, device, host)).collect()
    }

    fn content(&self, at: usize, size: usize) -> &[u8] {
        &self.bytes[at..at + size]
    }

    fn datum(&self, written: &Written, device: &Device, host: &Device) -> oarlock_core::Result<Datum> {
        Ok(match written {
            Written::Text { dims, texts } => Tensor::from_texts(host, dims, texts.clone())?.into(),
            Written::Number { dtype, dims, at, size } => {
                Tensor::from_bytes(device, dtype.parse()?, dims, self.content(*at, *size))?.into()
            }
            Written::Sequence(elements) => {
                let elements = elements.iter().map(|element| self.datum(element, device, host));
                Datum::Sequence(elements.collect::<oarlock_core::Result<_>>()?)
            }
            Written::Nothing(()) => Datum::Nothing,
        })
    }

    fn compare(&self, expected: &Written, found: &Datum) -> Result<(), String> {
        let (dtype, dims) = match (expected, found) {
            (Written::Nothing(()), Datum::Nothing) => return Ok(()),
            (Written::Sequence(expected), Datum::Sequence(found)) if expected.len() == found.len() => {
                return expected
                    .iter()
                    .zip(found)
                    .try_for_each(|(expected, found)| self.compare(expected, found));
            }
            (Written::Text { dims, .. }, Datum::Tensor(_)) => (Dtype::String, dims),
            (Written::Number { dtype, dims, .. }, Datum::Tensor(_)) => {
                (dtype.parse().map_err(refused)?, dims)
            }
            (_, found) => return Err(format!("expected something else, found {}", found.kind())),
        };
        let found = found.tensor().map_err(refused)?;
        if (dtype, dims.as_slice()) != (found.dtype(), found.dims()) {
            let (other, shape) = (found.dtype(), found.dims());
            return Err(format!("expected {dtype} of shape {dims:?}, found {other} of shape {shape:?}"));
        }
        if self.line.only_shape {
            return found.wait().map_err(refused);
        }
        match expected {
            Written::Text { texts, .. } => {
                let found = found.to_texts().map_err(refused)?;
                if *texts == found { Ok(()) } else { Err(format!("expected {texts:?}, found {found:?}")) }
            }
            Written::Number { at, size, .. } => {
                let tolerance = Tolerance { relative: self.line.rtol, absolute: self.line.atol };
                let found = found.to_bytes().map_err(refused)?;
                compare_numbers(dtype, self.content(*at, *size), &found, tolerance)
            }
            Written::Sequence(_) | Written::Nothing(()) => Ok(()),
        }
    }
}

fn refused(error: oarlock_core::Error) -> String {
    error.to_string()
}
