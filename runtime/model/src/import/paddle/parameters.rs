//! Reads parameters: from one file with the tensors in the order of their names, which the file does not contain, or from a file
//! for each.
//!
//! Each tensor consists of a version (`u32`), the number of LoD levels (`u64`), each level with its size in bytes (`u64`), another
//! version (`u32`), the size of a descriptor (`i32`), the descriptor, and the elements.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use oarlock_core::{Dtype, Result, shape};
use prost::Message as _;

use super::messages::{BlockDesc, var_type::TensorDesc};
use crate::graph::Weight;
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};
use crate::import::mapped_file;
use crate::import::weight::weight_from_bytes;

/// Variable types of `feed` and `fetch`, which are persistable but no parameters.
const FEED_OR_FETCH_TYPES: [i32; 2] = [9, 10];
/// The names of a program's parameters.
pub(super) fn parameter_names(block: &BlockDesc) -> impl Iterator<Item = &str> {
    let kept = block.vars.iter().filter(|var| {
        let kind = var.r#type.as_ref().map(|kind| kind.r#type());
        var.persistable() && kind.is_none_or(|kind| !FEED_OR_FETCH_TYPES.contains(&kind))
    });
    kept.map(|var| var.name())
}

/// Where parameters are.
pub(super) enum ParameterFiles {
    /// All in one file.
    Combined(Bytes),
    /// Each in a file of its name, in a directory.
    Separate(PathBuf),
}

/// Reads all parameters of a program that there are. A combined file has all of them, but separate ones may be missing.
pub(super) fn read_parameters<'p>(
    block: &'p BlockDesc,
    files: &ParameterFiles,
) -> Result<BTreeMap<&'p str, Weight>> {
    let mut names: Vec<&str> = parameter_names(block).collect();
    names.sort_unstable();
    names.dedup();
    match files {
        ParameterFiles::Combined(bytes) => {
            let mut weights = BTreeMap::new();
            let mut rest = ParameterReader { bytes: bytes.clone() };
            for name in names {
                weights.insert(name, rest.read_parameter().with_location(|| quote_name(name))?);
            }
            rest.expect_end()?;
            Ok(weights)
        }
        ParameterFiles::Separate(directory) => {
            let found = names.into_iter().filter_map(|name| {
                let path = parameter_path(directory, name)?;
                Some(read_separate(&path).map(|weight| (name, weight)).with_location(|| quote_name(name)))
            });
            found.collect()
        }
    }
}

/// The file of a parameter. A name may lead into a directory below, but not elsewhere.
fn parameter_path(directory: &Path, name: &str) -> Option<PathBuf> {
    let stays = |part| matches!(part, Component::Normal(_));
    let is_below = !name.is_empty() && Path::new(name).components().all(stays);
    Some(directory.join(name)).filter(|path| is_below && path.is_file())
}

fn read_separate(path: &Path) -> Result<Weight> {
    let mut rest = ParameterReader { bytes: mapped_file::map_file(path)? };
    let weight = rest.read_parameter()?;
    rest.expect_end().map(|()| weight)
}

/// The unread rest of the file.
struct ParameterReader {
    bytes: Bytes,
}

impl ParameterReader {
    fn expect_end(&self) -> Result<()> {
        match self.bytes.len() {
            0 => Ok(()),
            more => {
                Err(invalid_model("a file that ends with the last parameter", format!("{more} bytes more")))
            }
        }
    }

    fn take_bytes(&mut self, size: u64) -> Result<Bytes> {
        match usize::try_from(size).ok().filter(|size| *size <= self.bytes.len()) {
            Some(size) => Ok(self.bytes.split_to(size)),
            None => Err(invalid_model(
                format!("{size} more bytes"),
                format!("{} to the end of the file", self.bytes.len()),
            )),
        }
    }

    /// Reads a little-endian number of `size` bytes.
    fn read_number(&mut self, size: u64) -> Result<u64> {
        let bytes = self.take_bytes(size)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn read_version(&mut self) -> Result<()> {
        match self.read_number(4)? {
            0 => Ok(()),
            other => Err(invalid_model("version 0 of the format", other)),
        }
    }

    fn read_parameter(&mut self) -> Result<Weight> {
        self.read_version()?;
        for _ in 0..self.read_number(8)? {
            let size = self.read_number(8)?;
            self.take_bytes(size)?;
        }
        self.read_version()?;
        let size = self.read_number(4)?;
        let description = TensorDesc::decode(self.take_bytes(size)?)
            .map_err(|error| invalid_model("the description of a tensor", format!("none: {error}")))?;
        let (rank, most) = (description.dims.len(), shape::MAX_RANK);
        if rank > most {
            return Err(invalid_model(format!("at most {most} dimensions"), rank));
        }
        let dtype = dtype_from_number(description.data_type())?;
        let elements = self.take_bytes(shape::size_in_bytes(dtype, &description.dims)?)?;
        weight_from_bytes(dtype, &description.dims, elements)
    }
}

/// The dtype for a Paddle type number.
pub(super) fn dtype_from_number(number: i32) -> Result<Dtype> {
    Ok(match number {
        0 => Dtype::Bool,
        1 => Dtype::I16,
        2 => Dtype::I32,
        3 => Dtype::I64,
        4 => Dtype::F16,
        5 => Dtype::F32,
        6 => Dtype::F64,
        20 => Dtype::U8,
        21 => Dtype::I8,
        22 => Dtype::BF16,
        23 => Dtype::C64,
        24 => Dtype::C128,
        32 => Dtype::F8E4M3,
        33 => Dtype::F8E5M2,
        36 => Dtype::U16,
        37 => Dtype::U32,
        38 => Dtype::U64,
        other => return Err(invalid_model("a dtype of Paddle", format!("number {other}"))),
    })
}
