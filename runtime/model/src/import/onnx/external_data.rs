//! Reads weights from files beside the model.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use oarlock_core::{Error, ErrorKind, Result};

use super::messages::StringStringEntryProto;
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};
use crate::import::model_file::ModelFile;

/// How many times the size of a file its tensors may have in all. Each has memory of its own, so overlapping ones could take any amount.
const MOST_READINGS: u64 = 4;

/// Files that a model refers to, each opened once. All must lie within allowed directories.
pub(super) struct ExternalFiles {
    directories: Vec<PathBuf>,
    /// Each with the number of bytes that were read.
    opened: HashMap<PathBuf, (Arc<ModelFile>, u64)>,
    /// Parts that were read, by file, offset and size: tensors that share one share its memory.
    parts: HashMap<(PathBuf, u64, u64), Bytes>,
}

impl ExternalFiles {
    /// The first directory resolves names; links in it may lead into the others.
    pub(super) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, opened: HashMap::new(), parts: HashMap::new() }
    }

    /// The files that were opened.
    pub(super) fn into_paths(self) -> Vec<PathBuf> {
        self.opened.into_keys().collect()
    }

    /// The bytes of a tensor, located by its `external_data` entries.
    pub(super) fn tensor_bytes(&mut self, entries: &[StringStringEntryProto], size: u64) -> Result<Bytes> {
        let entry = |key| entries.iter().find(|entry| entry.key() == key).map(StringStringEntryProto::value);
        let number = |key| match entry(key) {
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(invalid_model(format!("a number of bytes as `{key}`"), quote_name(text))),
            },
            None => Ok(None),
        };
        let location = entry("location").ok_or_else(|| invalid_model("the `location` of a file", "none"))?;
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?.unwrap_or(size));
        if length != size {
            return Err(invalid_model(format!("`length` to be {size}, as dtype and shape want"), length));
        }
        self.file_slice(location, offset, size)
            .with_location(|| format!("external data {}", quote_name(location)))
    }

    fn file_slice(&mut self, location: &str, offset: u64, size: u64) -> Result<Bytes> {
        let path = self.resolve_path(location)?;
        let part = (path, offset, size);
        if let Some(known) = self.parts.get(&part) {
            return Ok(known.clone());
        }
        let (file, read) = match self.opened.entry(part.0.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let file = ModelFile::open(place.key())?;
                place.insert((file, 0))
            }
        };
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= file.size());
        let Some(length) = usize::try_from(size).ok().filter(|_| is_inside) else {
            return Err(invalid_model(
                format!("{size} bytes from byte {offset} on"),
                format!("a file of {}", file.size()),
            ));
        };
        *read += size;
        if *read > file.size().saturating_mul(MOST_READINGS) {
            let message = format!(
                "expected tensors of at most {MOST_READINGS} times the size of their file, found more"
            );
            return Err(Error::resource_exhausted(message));
        }
        let bytes = file.read_part(offset, length)?;
        file.expect_unchanged()?;
        self.parts.insert(part, bytes.clone());
        Ok(bytes)
    }

    /// Resolves a location, following links. A model may only refer to files beside it.
    fn resolve_path(&self, location: &str) -> Result<PathBuf> {
        let Some(directory) = self.directories.first() else {
            return Err(invalid_model(
                "all weights in the model",
                "one in a file, and no directory to look for it",
            ));
        };
        let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if location.is_empty() || !Path::new(location).components().all(stays) {
            let found = "a path that leads elsewhere";
            return Err(refuse_file(invalid_model("a path below the directory of the model", found)));
        }
        let path = directory.join(location);
        let Ok(found) = path.canonicalize() else {
            return Err(Error::not_found(format!(
                "expected the file {}, found none",
                quote_name(&path.display().to_string())
            )));
        };
        let is_below = |directory: &PathBuf| {
            directory.canonicalize().is_ok_and(|directory| found.starts_with(directory))
        };
        if !self.directories.iter().any(is_below) {
            let error =
                invalid_model("a file below the directory of the model", "a link that leads elsewhere");
            return Err(refuse_file(error).with_advice("put the file itself beside the model"));
        }
        Ok(found)
    }
}

fn refuse_file(error: Error) -> Error {
    Error::new(ErrorKind::PermissionDenied, error.message())
}
