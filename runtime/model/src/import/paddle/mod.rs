//! Imports inference models of Paddle: a program in a `.pdmodel` file (Paddle 2) or a `.json` file (Paddle 3), and its
//! parameters in a `.pdiparams` file beside it. Before, the program was a file called `__model__`, with its parameters in
//! `__params__` or each in a file of its own.
//!
//! A program is a list of Paddle ops, each of which becomes a few ONNX ops; `ops` has the translations. Names can be
//! reassigned, so the program is read in order and a name means its latest value.

mod graph_frame;
mod importer;
pub mod messages;
mod number_encoding;
mod op_attributes;
mod operand;
mod ops;
mod parameters;
mod pir;
mod program;
mod scope;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use oarlock_core::{Error, Result, schema};
use prost::Message as _;

use self::messages::ProgramDesc;
use self::parameters::ParameterFiles;
use super::ModelMetadata;
use super::error_location::{ErrorLocation as _, invalid_model, quote_name};
use super::file_format::name_format;
use super::model_file::ModelFile;
use crate::Model;

/// The name of a program's file before there were file extensions, and that of its parameters.
pub(super) const OLD_PROGRAM_NAME: &str = "__model__";
const OLD_PARAMETERS_NAME: &str = "__params__";

/// The ONNX opset of the nodes that programs are translated to.
const WRITTEN_OPSET: u32 = 20;
/// The Paddle 2 number for the variable type of a tensor array.
const TENSOR_ARRAY_TYPE: i32 = 13;

/// The names of all supported Paddle ops, sorted.
pub fn supported_ops() -> BTreeSet<&'static str> {
    ops::op_names().collect()
}

/// Reads a program, with parameters from the file of the same name with the extension `.pdiparams`, or from the files beside a
/// `__model__`.
pub fn load_paddle(path: &Path) -> Result<Model> {
    let program = ModelFile::open(path)?.read_whole()?;
    let read = || import_paddle(program, find_parameters(path)?);
    read().with_location(|| quote_name(&path.display().to_string()))
}

fn find_parameters(path: &Path) -> Result<Option<ParameterFiles>> {
    let is_old = path.file_name().is_some_and(|name| name == OLD_PROGRAM_NAME);
    let combined =
        if is_old { path.with_file_name(OLD_PARAMETERS_NAME) } else { path.with_extension("pdiparams") };
    if combined.exists() {
        return ModelFile::open(&combined).map(|file| Some(ParameterFiles::Combined(file)));
    }
    Ok(path.parent().filter(|_| is_old).map(|directory| ParameterFiles::Separate(directory.to_owned())))
}

/// Reads a program and its parameters from memory.
pub fn decode_paddle(program: Bytes, parameters: Option<Bytes>) -> Result<Model> {
    import_paddle(program, parameters.map(ParameterFiles::InMemory))
}

/// True if a text in JSON is a program, as far as its first bytes say.
pub(super) fn is_json_program(head: &[u8]) -> bool {
    pir::is_pir_file(head) && String::from_utf8_lossy(head).contains("\"base_code\"")
}

fn import_paddle(program: Bytes, parameters: Option<ParameterFiles>) -> Result<Model> {
    let size = program.len();
    let (program, pir) = if pir::is_pir_file(&program) {
        if !is_json_program(&program) {
            let error = invalid_model("a program of Paddle 3 in JSON", "a text of another kind");
            return Err(name_format(error, "a program of Paddle 3 in JSON", &program));
        }
        pir::read_pir(&program).map(|(program, version)| (program, Some(version)))?
    } else {
        let program = ProgramDesc::decode(program.clone()).map_err(|error| {
            let found = format!("{size} bytes that are no protobuf message of one: {error}");
            name_format(invalid_model("a program of Paddle", found), "a program of Paddle", &program)
        })?;
        (program, None)
    };
    let block =
        program.blocks.first().ok_or_else(|| invalid_model("a program with a block", "one without"))?;
    let weight_files = parameters.as_ref().and_then(ParameterFiles::path).map(Path::to_owned);
    let weights = match &parameters {
        Some(files) => parameters::read_parameters(block, files).with_location(|| "parameters".to_owned())?,
        None => BTreeMap::new(),
    };
    let missing = parameters::parameter_names(block).find(|name| !weights.contains_key(name));
    if let Some(name) = missing {
        let found = format!("none for {}", quote_name(name));
        return Err(Error::not_found(format!("expected parameters, found {found}"))
            .with_advice(
                "keep the file with the parameters (`.pdiparams`, or `__params__` of a `__model__`) beside the program",
            ));
    }
    let version = program.version.unwrap_or_default().version();
    let (format, producer) = match pir {
        Some(version) => (format!("Paddle program in JSON, version {version}"), "Paddle 3".to_owned()),
        None => {
            let (major, minor, patch) = (version / 1_000_000, version / 1000 % 1000, version % 1000);
            ("Paddle program".to_owned(), format!("Paddle {major}.{minor}.{patch}"))
        }
    };
    Ok(Model {
        graph: program::import_graph(&program.blocks, version, weights)?,
        format,
        producer,
        opsets: BTreeMap::from([(schema::ONNX_DOMAIN.to_owned(), WRITTEN_OPSET)]),
        metadata: BTreeMap::new(),
        labels: ModelMetadata::default(),
        maps: BTreeMap::new(),
        weight_files: weight_files.into_iter().collect(),
    })
}
