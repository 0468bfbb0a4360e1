//! A test: a model of Paddle, what it is given, and what it has to give.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use oarlock_core::{Device, Dtype, Error, Runtime, Tensor};
use oarlock_engine::export::onnx::About;
use oarlock_engine::{Datum, Model, Session, SessionOptions, graph, import};
use serde::Deserialize;

use crate::compare::{Tolerance, compare_numbers};

/// In how many places a model is changed.
const MOST_CHANGES: usize = 24;

/// One line of the list of tests.
#[derive(Deserialize)]
struct Line {
    name: String,
    /// The ops of Paddle that the model is made of.
    ops: Vec<String>,
    inputs: Vec<Written>,
    outputs: Vec<Written>,
    rtol: f64,
    atol: f64,
    /// Whether the values are random, so that only dtypes and shapes are compared.
    only_shape: bool,
}

/// A tensor in the file of numbers.
#[derive(Deserialize)]
struct Written {
    dtype: String,
    dims: Vec<i64>,
    at: usize,
    size: usize,
}

/// A test with the numbers that all tests share.
pub(crate) struct Case {
    line: Line,
    model: PathBuf,
    numbers: Bytes,
}

impl Case {
    /// All tests of a directory, or none where they were not written.
    pub(crate) fn read_all(directory: &Path) -> Vec<Self> {
        let Ok(lines) = fs::read_to_string(directory.join("models.jsonl")) else { return Vec::new() };
        let file = directory.join("models.bin");
        let numbers = fs::read(&file).unwrap_or_else(|error| panic!("`{}`: {error}", file.display()));
        let numbers: Bytes = numbers.into();
        let read = |line: &str| {
            let line: Line = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let model = ["pdmodel", "json"].map(|ending| directory.join(format!("{}.{ending}", line.name)));
            let model = model.into_iter().find(|file| file.is_file());
            let model = model.unwrap_or_else(|| panic!("expected a model for `{}`, found none", line.name));
            Self { line, model, numbers: numbers.clone() }
        };
        lines.lines().map(read).collect()
    }

    /// The name of the model, with `json/` in front of one in JSON.
    pub(crate) fn name(&self) -> String {
        let is_json = self.model.extension().is_some_and(|extension| extension == "json");
        format!("{}{}", if is_json { "json/" } else { "" }, self.line.name)
    }

    pub(crate) fn ops(&self) -> impl Iterator<Item = &str> {
        self.line.ops.iter().map(String::as_str)
    }

    /// Reads the model with a byte changed or cut off in some places, which must be refused or be a graph.
    pub(crate) fn survives_changes(&self) -> Result<(), String> {
        let program = fs::read(&self.model).map_err(|error| error.to_string())?;
        let parameters = fs::read(self.model.with_extension("pdiparams")).ok().map(Bytes::from);
        let mut random = 0x9e37_79b9_u64;
        for _ in 0..MOST_CHANGES {
            // A generator of numbers that is the same in every run.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (random >> 33) as usize % program.len();
            let mut changed = program.clone();
            changed[place] = (random >> 24) as u8;
            for bytes in [Bytes::from(changed), Bytes::copy_from_slice(&program[..place])] {
                if let Ok(model) = import::paddle::decode(bytes, parameters.clone()) {
                    graph::check(&model.graph).map_err(|error| format!("byte {place}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Runs it on a device, and then as the ONNX file that the engine writes of it.
    pub(crate) fn run(&self, runtime: &Arc<Runtime>, device: &Device) -> Result<(), String> {
        let options = SessionOptions { devices: vec![device.clone()], ..SessionOptions::default() };
        let session = |model: &Model| Session::new(runtime.clone(), model, &options).map_err(refused);
        let first = session(&import::load(&self.model).map_err(refused)?)?;
        self.check(&first, device)?;
        let again = || {
            let files = first.to_onnx(&About::default()).map_err(refused)?;
            let model = import::onnx::decode(files.model.into(), None).map_err(refused)?;
            self.check(&session(&model)?, device)
        };
        again().map_err(|message| format!("written and read again: {message}"))
    }

    fn check(&self, session: &Session, device: &Device) -> Result<(), String> {
        let inputs = self.line.inputs.iter().map(|input| {
            let content = self.content(input);
            Ok(Tensor::from_bytes(device, input.dtype.parse()?, &input.dims, content)?.into())
        });
        let inputs = inputs.collect::<Result<Vec<Datum>, Error>>().map_err(refused)?;
        let found = session.run(&inputs).map_err(refused)?;
        if found.len() != self.line.outputs.len() {
            return Err(format!("expected {} outputs, found {}", self.line.outputs.len(), found.len()));
        }
        for (index, (expected, found)) in self.line.outputs.iter().zip(&found).enumerate() {
            let found = found.tensor().map_err(refused)?;
            self.compare(expected, found).map_err(|message| format!("output {index}: {message}"))?;
        }
        Ok(())
    }

    fn content(&self, written: &Written) -> &[u8] {
        &self.numbers[written.at..written.at + written.size]
    }

    fn compare(&self, expected: &Written, found: &Tensor) -> Result<(), String> {
        let dtype: Dtype = expected.dtype.parse().map_err(refused)?;
        if (dtype, expected.dims.as_slice()) != (found.dtype(), found.dims()) {
            let (dims, other, shape) = (&expected.dims, found.dtype(), found.dims());
            return Err(format!("expected {dtype} of shape {dims:?}, found {other} of shape {shape:?}"));
        }
        let bytes = found.to_bytes().map_err(refused)?;
        if self.line.only_shape {
            return Ok(());
        }
        let tolerance = Tolerance { relative: self.line.rtol, absolute: self.line.atol };
        compare_numbers(dtype, self.content(expected), &bytes, tolerance)
    }
}

fn refused(error: Error) -> String {
    error.to_string()
}
