//! Programs of Paddle 3 in JSON, which are made into programs as Paddle 2 has them.
//!
//! Both have the same ops under other names, so that what ops mean is known in one place. A value has a number here, and
//! what an op takes as a list of integers may be made by an op of its own.

mod attributes;
mod lower;
mod table;

use oarlock_core::Result;
use serde::Deserialize;
use serde_json::Value;

use super::messages::{ProgramDesc, ProgramVersion};
use crate::import::place::wrong;

/// The version of Paddle that stands for all that write programs in JSON: how their ops behave.
const VERSION: i64 = 3_000_000;

/// A file.
#[derive(Deserialize)]
struct File {
    base_code: Kind,
    program: Regions,
}

/// What kind of file it is.
#[derive(Deserialize)]
struct Kind {
    magic: String,
    version: i64,
}

#[derive(Deserialize)]
struct Regions {
    regions: Vec<Region>,
}

/// The body of a program or of an op.
#[derive(Deserialize)]
struct Region {
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    args: Vec<Made>,
    ops: Vec<Op>,
}

#[derive(Deserialize)]
struct Op {
    #[serde(rename = "#")]
    name: String,
    #[serde(rename = "A", default)]
    attributes: Vec<Value>,
    #[serde(rename = "I", default)]
    inputs: Vec<Read>,
    /// A list, or the one output of a parameter.
    #[serde(rename = "O", default)]
    outputs: Outputs,
    /// What is known of the outputs; of a parameter, first of all whether the file of parameters has it.
    #[serde(rename = "OA", default)]
    known: Vec<Value>,
    #[serde(default)]
    regions: Vec<Region>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Outputs {
    Many(Vec<Made>),
    One(Made),
}

impl Default for Outputs {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Outputs {
    fn as_slice(&self) -> &[Made] {
        match self {
            Self::Many(many) => many,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// A value that is read; 0 where it is left out.
#[derive(Deserialize)]
struct Read {
    #[serde(rename = "%")]
    number: i64,
}

/// A value that is made, with its type.
#[derive(Deserialize)]
struct Made {
    #[serde(rename = "%", alias = "#")]
    number: i64,
    #[serde(rename = "TT", default)]
    kind: Value,
}

/// Whether a file is one of these. No program of Paddle 2 begins like that, though one may begin with a line end and then a
/// brace, which is the length of its first block.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{')
}

/// Reads a program; gives the version of the format too.
pub(super) fn read(bytes: &[u8]) -> Result<(ProgramDesc, i64)> {
    let file: File = serde_json::from_slice(bytes)
        .map_err(|error| wrong("a program of Paddle 3 in JSON", format!("a file that is none: {error}")))?;
    if file.base_code.magic != "pir" {
        return Err(wrong("`magic` to be pir", &file.base_code.magic));
    }
    let [region] = file.program.regions.as_slice() else {
        return Err(wrong("a program with one region", file.program.regions.len()));
    };
    let blocks = lower::blocks(region)?;
    let version = Some(ProgramVersion { version: Some(VERSION) });
    Ok((ProgramDesc { blocks, version }, file.base_code.version))
}
