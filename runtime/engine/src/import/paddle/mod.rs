//! Inference models of Paddle 2: a program in a `.pdmodel` file, and its parameters in a `.pdiparams` file beside it.
//!
//! A program is a list of ops of Paddle's own, each of which becomes a few of ONNX's; `ops` knows which. A name may be
//! made again by a later op, so the program is read from its begin to its end, and a name means what was made last.

mod description;
pub mod messages;
mod ops;
mod parameters;
mod program;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use oarlock_core::{Error, Result, schema};
use prost::Message as _;

use self::messages::ProgramDesc;
use super::mapped;
use super::place::{Within as _, quoted, wrong};
use crate::Model;

/// The opset of ONNX's own ops that programs become.
const OPSET: u32 = 20;

/// Reads a program, and its parameters from the file of the same name that ends in `.pdiparams`, where they stay.
pub fn load(path: &Path) -> Result<Model> {
    let read = || {
        let program = mapped::map(path)?;
        let beside = path.with_extension("pdiparams");
        let parameters = if beside.exists() { Some(mapped::map(&beside)?) } else { None };
        decode(program, parameters)
    };
    read().within(|| quoted(&path.display().to_string()))
}

/// Reads a program and its parameters from memory.
pub fn decode(program: Bytes, parameters: Option<Bytes>) -> Result<Model> {
    let size = program.len();
    let program = ProgramDesc::decode(program)
        .map_err(|error| wrong("a program of Paddle", format!("{size} bytes that are none: {error}")))?;
    let block = program.blocks.first().ok_or_else(|| wrong("a program with a block", "one without"))?;
    let weights = match parameters {
        Some(bytes) => parameters::read(block, bytes).within(|| "parameters".to_owned())?,
        None => BTreeMap::new(),
    };
    let missing = parameters::names(block).find(|name| !weights.contains_key(name));
    if let Some(name) = missing {
        let found = format!("none for {}", quoted(name));
        return Err(Error::not_found(format!("expected parameters, found {found}"))
            .hint("keep the `.pdiparams` file beside the `.pdmodel` file"));
    }
    let version = program.version.unwrap_or_default().version();
    let version = format!("{}.{}.{}", version / 1_000_000, version / 1000 % 1000, version % 1000);
    Ok(Model {
        graph: program::graph(block, weights)?,
        format: "Paddle program".to_owned(),
        producer: format!("Paddle {version}"),
        opsets: BTreeMap::from([(schema::ONNX.to_owned(), OPSET)]),
        metadata: BTreeMap::new(),
    })
}
