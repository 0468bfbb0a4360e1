//! Inference models of Paddle: a program in a `.pdmodel` file of Paddle 2, or in a `.json` file of Paddle 3, and its
//! parameters in a `.pdiparams` file beside it.
//!
//! A program is a list of ops of Paddle's own, each of which becomes a few of ONNX's; `ops` knows which. A name may be
//! made again by a later op, so the program is read from its begin to its end, and a name means what was made last.

mod description;
pub mod messages;
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
use super::place::{Within as _, quoted, wrong};
use super::{Labels, mapped};
use crate::Model;

/// The opset of ONNX's own ops that programs become.
const OPSET: u32 = 20;

/// The names of all ops of Paddle that are supported, in their order.
pub fn ops() -> BTreeSet<&'static str> {
    ops::names().collect()
}

/// Reads a program, and its parameters from the file of the same name that ends in `.pdiparams`, where they stay.
pub fn load(path: &Path) -> Result<Model> {
    let program = mapped::map(path)?;
    let read = || {
        let beside = path.with_extension("pdiparams");
        let parameters = if beside.exists() { Some(mapped::map(&beside)?) } else { None };
        decode(program, parameters)
    };
    read().within(|| quoted(&path.display().to_string()))
}

/// Reads a program and its parameters from memory.
pub fn decode(program: Bytes, parameters: Option<Bytes>) -> Result<Model> {
    let size = program.len();
    let (program, pir) = if pir::is_one(&program) {
        pir::read(&program).map(|(program, version)| (program, Some(version)))?
    } else {
        let program = ProgramDesc::decode(program).map_err(|error| {
            let found = format!("{size} bytes that are no protobuf message of one: {error}");
            wrong("a program of Paddle", found)
        })?;
        (program, None)
    };
    let block = program.blocks.first().ok_or_else(|| wrong("a program with a block", "one without"))?;
    let weights = match parameters {
        Some(bytes) => parameters::read(block, bytes).within(|| "parameters".to_owned())?,
        None => BTreeMap::new(),
    };
    let missing = parameters::names(block).find(|name| !weights.contains_key(name));
    if let Some(name) = missing {
        let found = format!("none for {}", quoted(name));
        return Err(Error::not_found(format!("expected parameters, found {found}"))
            .hint("keep the `.pdiparams` file beside the file of the program"));
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
        graph: program::graph(&program.blocks, version, weights)?,
        format,
        producer,
        opsets: BTreeMap::from([(schema::ONNX.to_owned(), OPSET)]),
        metadata: BTreeMap::new(),
        labels: Labels::default(),
    })
}
