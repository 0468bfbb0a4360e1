//! Reads programs of Paddle 3 (JSON) and converts them to programs of Paddle 2.
//!
//! Both have the same ops under different names, so only one set of translations is needed. Here values have numbers instead of
//! names, and integer lists that used to be attributes may be outputs of other ops.

mod attributes;
mod lowering;
mod op_names;

use oarlock_core::Result;
use serde::Deserialize;
use serde_json::Value;

use super::messages::{ProgramDesc, ProgramVersion};
use crate::import::error_location::invalid_model;

/// The version reported for all JSON programs; it decides how ops behave.
const PADDLE_VERSION: i64 = 3_000_000;

/// The root of a file.
#[derive(Deserialize)]
struct PirFile {
    base_code: PirFileKind,
    program: PirRegions,
}

/// Format and version of a file.
#[derive(Deserialize)]
struct PirFileKind {
    magic: String,
    version: i64,
}

#[derive(Deserialize)]
struct PirRegions {
    regions: Vec<PirRegion>,
}

/// The body of a program or op.
#[derive(Deserialize)]
struct PirRegion {
    blocks: Vec<PirBlock>,
}

#[derive(Deserialize)]
struct PirBlock {
    #[serde(default)]
    args: Vec<PirResult>,
    ops: Vec<PirOp>,
}

#[derive(Deserialize)]
struct PirOp {
    #[serde(rename = "#")]
    name: String,
    #[serde(rename = "A", default)]
    attributes: Vec<Value>,
    #[serde(rename = "I", default)]
    inputs: Vec<PirOperand>,
    /// A list, or the single output of a parameter.
    #[serde(rename = "O", default)]
    outputs: PirOutputs,
    /// Attributes of the outputs; for a parameter, the first says whether it is in the parameter file.
    #[serde(rename = "OA", default)]
    known: Vec<Value>,
    #[serde(default)]
    regions: Vec<PirRegion>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PirOutputs {
    Many(Vec<PirResult>),
    One(PirResult),
}

impl Default for PirOutputs {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl PirOutputs {
    fn as_slice(&self) -> &[PirResult] {
        match self {
            Self::Many(many) => many,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// A value that is read; 0 if omitted.
#[derive(Deserialize)]
struct PirOperand {
    #[serde(rename = "%")]
    number: i64,
}

/// A value that is written, with its type.
#[derive(Deserialize)]
struct PirResult {
    #[serde(rename = "%", alias = "#")]
    number: i64,
    #[serde(rename = "TT", default)]
    kind: Value,
}

/// True for a JSON program. No Paddle 2 program starts with a brace: one may start with a line feed followed by a brace, which
/// is the length of its first block.
pub(super) fn is_pir_file(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{')
}

/// Reads a program; returns the format version too.
pub(super) fn read_pir(bytes: &[u8]) -> Result<(ProgramDesc, i64)> {
    let file: PirFile = serde_json::from_slice(bytes).map_err(|error| {
        invalid_model("a program of Paddle 3 in JSON", format!("a file that is none: {error}"))
    })?;
    if file.base_code.magic != "pir" {
        return Err(invalid_model("`magic` to be pir", &file.base_code.magic));
    }
    let [region] = file.program.regions.as_slice() else {
        return Err(invalid_model("a program with one region", file.program.regions.len()));
    };
    let blocks = lowering::lower_blocks(region)?;
    let version = Some(ProgramVersion { version: Some(PADDLE_VERSION) });
    Ok((ProgramDesc { blocks, version }, file.base_code.version))
}
