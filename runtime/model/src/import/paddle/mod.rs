//! Imports inference models of Paddle: a program in a `.pdmodel` file (Paddle 2) or a `.json` file (Paddle 3), and its
//! parameters in a `.pdiparams` file beside it.
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
use super::error_location::{ErrorLocation as _, invalid_model, quote_name};
use super::{ModelMetadata, mapped_file};
use crate::Model;

/// The ONNX opset of the nodes that programs are translated to.
const WRITTEN_OPSET: u32 = 20;
/// The Paddle 2 number for the variable type of a tensor array.
const TENSOR_ARRAY_TYPE: i32 = 13;

/// The names of all supported Paddle ops, sorted.
pub fn supported_ops() -> BTreeSet<&'static str> {
    ops::op_names().collect()
}

/// Reads a program, with parameters from the file of the same name with the extension `.pdiparams`; they stay in that file.
pub fn load_paddle(path: &Path) -> Result<Model> {
    let program = mapped_file::map_file(path)?;
    let read = || {
        let beside = path.with_extension("pdiparams");
        let parameters = if beside.exists() { Some(mapped_file::map_file(&beside)?) } else { None };
        decode_paddle(program, parameters)
    };
    read().with_location(|| quote_name(&path.display().to_string()))
}

/// Reads a program and its parameters from memory.
pub fn decode_paddle(program: Bytes, parameters: Option<Bytes>) -> Result<Model> {
    let size = program.len();
    let (program, pir) = if pir::is_pir_file(&program) {
        pir::read_pir(&program).map(|(program, version)| (program, Some(version)))?
    } else {
        let program = ProgramDesc::decode(program).map_err(|error| {
            let found = format!("{size} bytes that are no protobuf message of one: {error}");
            invalid_model("a program of Paddle", found)
        })?;
        (program, None)
    };
    let block =
        program.blocks.first().ok_or_else(|| invalid_model("a program with a block", "one without"))?;
    let weights = match parameters {
        Some(bytes) => parameters::read_parameters(block, bytes).with_location(|| "parameters".to_owned())?,
        None => BTreeMap::new(),
    };
    let missing = parameters::parameter_names(block).find(|name| !weights.contains_key(name));
    if let Some(name) = missing {
        let found = format!("none for {}", quote_name(name));
        return Err(Error::not_found(format!("expected parameters, found {found}"))
            .with_advice("keep the `.pdiparams` file beside the file of the program"));
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
    })
}
