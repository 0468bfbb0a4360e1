//! Reads parameters: from one file with the tensors in the order of their names, which the file does not contain, or from a file
//! for each.
//!
//! Each tensor consists of a version (`u32`), the number of LoD levels (`u64`), each level with its size in bytes (`u64`), another
//! version (`u32`), the size of a descriptor (`i32`), the descriptor, and the elements.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use oarlock_core::{Dtype, Result, shape};
use prost::Message as _;

use super::messages::{BlockDesc, var_type::TensorDesc};
use crate::graph::Weight;
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};
use crate::import::model_file::ModelFile;
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
    Combined(Arc<ModelFile>),
    /// The content of such a file.
    InMemory(Bytes),
    /// Each in a file of its name, in a directory.
    Separate(PathBuf),
}

impl ParameterFiles {
    /// The file with all of them.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Combined(file) => Some(file.path()),
            Self::InMemory(_) | Self::Separate(_) => None,
        }
    }
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
        ParameterFiles::Combined(file) => read_combined(names, ParameterSource::File(file)),
        ParameterFiles::InMemory(bytes) => read_combined(names, ParameterSource::Memory(bytes)),
        ParameterFiles::Separate(directory) => {
            let found = names.into_iter().filter_map(|name| {
                let path = parameter_path(directory, name)?;
                Some(read_separate(&path).map(|weight| (name, weight)).with_location(|| quote_name(name)))
            });
            found.collect()
        }
    }
}

fn read_combined<'p>(names: Vec<&'p str>, source: ParameterSource<'_>) -> Result<BTreeMap<&'p str, Weight>> {
    let mut weights = BTreeMap::new();
    let mut reader = ParameterReader { source, taken: 0 };
    for name in names {
        weights.insert(name, reader.read_parameter().with_location(|| quote_name(name))?);
    }
    reader.expect_end()?;
    Ok(weights)
}

/// The file of a parameter. A name may lead into a directory below, but not elsewhere.
fn parameter_path(directory: &Path, name: &str) -> Option<PathBuf> {
    let stays = |part| matches!(part, Component::Normal(_));
    let is_below = !name.is_empty() && Path::new(name).components().all(stays);
    Some(directory.join(name)).filter(|path| is_below && path.is_file())
}

fn read_separate(path: &Path) -> Result<Weight> {
    let file = ModelFile::open(path)?;
    let mut reader = ParameterReader { source: ParameterSource::File(&file), taken: 0 };
    let weight = reader.read_parameter()?;
    reader.expect_end().map(|()| weight)
}

enum ParameterSource<'s> {
    File(&'s Arc<ModelFile>),
    Memory(&'s Bytes),
}

/// Reads parameters one after the other.
struct ParameterReader<'s> {
    source: ParameterSource<'s>,
    /// The bytes that were read.
    taken: u64,
}

impl ParameterReader<'_> {
    fn unread(&self) -> u64 {
        let size = match self.source {
            ParameterSource::File(file) => file.size(),
            ParameterSource::Memory(bytes) => bytes.len() as u64,
        };
        size - self.taken
    }

    /// Fails if there is more, or if the file changed meanwhile.
    fn expect_end(&self) -> Result<()> {
        match (self.unread(), &self.source) {
            (0, ParameterSource::File(file)) => file.expect_unchanged(),
            (0, ParameterSource::Memory(_)) => Ok(()),
            (more, _) => {
                Err(invalid_model("a file that ends with the last parameter", format!("{more} bytes more")))
            }
        }
    }

    fn take_bytes(&mut self, size: u64) -> Result<Bytes> {
        let Some(length) = usize::try_from(size).ok().filter(|_| size <= self.unread()) else {
            let found = format!("{} to the end of the file", self.unread());
            return Err(invalid_model(format!("{size} more bytes"), found));
        };
        let begin = self.taken;
        self.taken += size;
        match self.source {
            ParameterSource::File(file) => file.read_part(begin, length),
            ParameterSource::Memory(bytes) => Ok(bytes.slice(begin as usize..begin as usize + length)),
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
