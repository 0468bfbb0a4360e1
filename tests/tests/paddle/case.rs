//! One test: a Paddle model, its inputs, and the expected outputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use oarlock_core::{Device, Dtype, Error, Runtime, Tensor};
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::{Model, RuntimeValue, Session, SessionOptions, graph, import};
use serde::Deserialize;

use crate::compare::{NumericTolerance, compare_numbers};

/// Number of positions at which a model is mutated.
const MAX_CHANGES: usize = 24;

/// One line of the case list.
#[derive(Deserialize)]
struct PaddleCaseLine {
    name: String,
    /// The Paddle ops in the model.
    ops: Vec<String>,
    inputs: Vec<WrittenArray>,
    outputs: Vec<WrittenArray>,
    rtol: f64,
    atol: f64,
    /// True if the outputs are random, so that only dtypes and shapes are compared.
    only_shape: bool,
}

/// A tensor in the file of numbers.
#[derive(Deserialize)]
struct WrittenArray {
    dtype: String,
    dims: Vec<i64>,
    at: usize,
    size: usize,
}

/// A test, with the numbers that all tests share.
pub(crate) struct PaddleCase {
    line: PaddleCaseLine,
    model: PathBuf,
    numbers: Bytes,
}

impl PaddleCase {
    /// All tests of a directory; none if the files were not written.
    pub(crate) fn read_cases(directory: &Path) -> Vec<Self> {
        let Ok(lines) = fs::read_to_string(directory.join("models.jsonl")) else { return Vec::new() };
        let file = directory.join("models.bin");
        let numbers = fs::read(&file).unwrap_or_else(|error| panic!("`{}`: {error}", file.display()));
        let numbers: Bytes = numbers.into();
        let read = |line: &str| {
            let line: PaddleCaseLine =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let model = ["pdmodel", "json"].map(|ending| directory.join(format!("{}.{ending}", line.name)));
            let model = model.into_iter().find(|file| file.is_file());
            let model = model.unwrap_or_else(|| panic!("expected a model for `{}`, found none", line.name));
            Self { line, model, numbers: numbers.clone() }
        };
        lines.lines().map(read).collect()
    }

    /// The name of the model, with the prefix `json/` for one in JSON.
    pub(crate) fn case_name(&self) -> String {
        let is_json = self.model.extension().is_some_and(|extension| extension == "json");
        format!("{}{}", if is_json { "json/" } else { "" }, self.line.name)
    }

    pub(crate) fn op_names(&self) -> impl Iterator<Item = &str> {
        self.line.ops.iter().map(String::as_str)
    }

    /// Reads the model with a byte changed or truncated at several positions; each must be refused or give a graph.
    pub(crate) fn check_mutations(&self) -> Result<(), String> {
        let program = fs::read(&self.model).map_err(|error| error.to_string())?;
        let parameters = fs::read(self.model.with_extension("pdiparams")).ok().map(Bytes::from);
        let mut random = 0x9e37_79b9_u64;
        for _ in 0..MAX_CHANGES {
            // A linear congruential generator, the same in every run.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (random >> 33) as usize % program.len();
            let mut changed = program.clone();
            changed[place] = (random >> 24) as u8;
            for bytes in [Bytes::from(changed), Bytes::copy_from_slice(&program[..place])] {
                if let Ok(model) = import::paddle::decode_paddle(bytes, parameters.clone()) {
                    graph::check_graph(&model.graph).map_err(|error| format!("byte {place}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Runs the model on a device, then exports it to ONNX and runs that.
    pub(crate) fn run_case(&self, runtime: &Arc<Runtime>, device: &Device) -> Result<(), String> {
        let options = SessionOptions { devices: vec![device.clone()], ..SessionOptions::default() };
        let session = |model: &Model| Session::new(runtime.clone(), model, &options).map_err(refusal_message);
        let first = session(&import::load_model(&self.model).map_err(refusal_message)?)?;
        self.check_outputs(&first, device)?;
        let again = || {
            let files = first.to_onnx(&OnnxExportOptions::default()).map_err(refusal_message)?;
            let model = import::onnx::decode_onnx(files.model.into(), None).map_err(refusal_message)?;
            self.check_outputs(&session(&model)?, device)
        };
        again().map_err(|message| format!("written and read again: {message}"))
    }

    fn check_outputs(&self, session: &Session, device: &Device) -> Result<(), String> {
        let inputs = self.line.inputs.iter().map(|input| {
            let content = self.content_bytes(input);
            Ok(Tensor::from_bytes(device, input.dtype.parse()?, &input.dims, content)?.into())
        });
        let inputs = inputs.collect::<Result<Vec<RuntimeValue>, Error>>().map_err(refusal_message)?;
        let found = session.run(&inputs).map_err(refusal_message)?;
        if found.len() != self.line.outputs.len() {
            return Err(format!("expected {} outputs, found {}", self.line.outputs.len(), found.len()));
        }
        for (index, (expected, found)) in self.line.outputs.iter().zip(&found).enumerate() {
            let found = found.as_tensor().map_err(refusal_message)?;
            self.compare_tensor(expected, found).map_err(|message| format!("output {index}: {message}"))?;
        }
        Ok(())
    }

    fn content_bytes(&self, written: &WrittenArray) -> &[u8] {
        &self.numbers[written.at..written.at + written.size]
    }

    fn compare_tensor(&self, expected: &WrittenArray, found: &Tensor) -> Result<(), String> {
        let dtype: Dtype = expected.dtype.parse().map_err(refusal_message)?;
        if (dtype, expected.dims.as_slice()) != (found.dtype(), found.dims()) {
            let (dims, other, shape) = (&expected.dims, found.dtype(), found.dims());
            return Err(format!("expected {dtype} of shape {dims:?}, found {other} of shape {shape:?}"));
        }
        let bytes = found.to_bytes().map_err(refusal_message)?;
        if self.line.only_shape {
            return Ok(());
        }
        let tolerance = NumericTolerance { relative: self.line.rtol, absolute: self.line.atol };
        compare_numbers(dtype, self.content_bytes(expected), &bytes, tolerance)
    }
}

fn refusal_message(error: Error) -> String {
    error.to_string()
}
