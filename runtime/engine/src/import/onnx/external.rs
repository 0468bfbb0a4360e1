//! Weights in files beside the model.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use oarlock_core::{Error, ErrorKind, Result};

use super::messages::StringStringEntryProto;
use crate::import::mapped;
use crate::import::place::{Within as _, quoted, wrong};

/// The files that a model names, each mapped once. None may lie outside of the model's own directory.
pub(super) struct External {
    directories: Vec<PathBuf>,
    mapped: HashMap<PathBuf, Bytes>,
}

impl External {
    /// Files in directories, of which the first has them by name and the others may be led to by links.
    pub(super) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, mapped: HashMap::new() }
    }

    /// The bytes of a tensor, of which its entries say where they lie.
    pub(super) fn bytes(&mut self, entries: &[StringStringEntryProto], size: u64) -> Result<Bytes> {
        let entry = |key| entries.iter().find(|entry| entry.key() == key).map(StringStringEntryProto::value);
        let number = |key| match entry(key) {
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(wrong(format!("a number of bytes as `{key}`"), quoted(text))),
            },
            None => Ok(None),
        };
        let location = entry("location").ok_or_else(|| wrong("the `location` of a file", "none"))?;
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?.unwrap_or(size));
        if length != size {
            return Err(wrong(format!("`length` to be {size}, as dtype and shape want"), length));
        }
        self.part(location, offset, size).within(|| format!("external data {}", quoted(location)))
    }

    fn part(&mut self, location: &str, offset: u64, size: u64) -> Result<Bytes> {
        let path = self.find(location)?;
        if !self.mapped.contains_key(&path) {
            self.mapped.insert(path.clone(), mapped::map(&path)?);
        }
        let file = &self.mapped[&path];
        let end = offset.checked_add(size).and_then(|end| usize::try_from(end).ok());
        match end.filter(|end| *end <= file.len()) {
            Some(end) => Ok(file.slice(end - size as usize..end)),
            None => {
                Err(wrong(format!("{size} bytes from byte {offset} on"), format!("a file of {}", file.len())))
            }
        }
    }

    /// The path of a file, all links followed. A model may only name what lies beside it.
    fn find(&self, location: &str) -> Result<PathBuf> {
        let Some(directory) = self.directories.first() else {
            return Err(wrong("all weights in the model", "one in a file, and no directory to look for it"));
        };
        let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if location.is_empty() || !Path::new(location).components().all(stays) {
            let found = "a path that leads elsewhere";
            return Err(refused(wrong("a path below the directory of the model", found)));
        }
        let path = directory.join(location);
        let Ok(found) = path.canonicalize() else {
            return Err(Error::not_found(format!(
                "expected the file {}, found none",
                quoted(&path.display().to_string())
            )));
        };
        let is_below = |directory: &PathBuf| {
            directory.canonicalize().is_ok_and(|directory| found.starts_with(directory))
        };
        if !self.directories.iter().any(is_below) {
            let error = wrong("a file below the directory of the model", "a link that leads elsewhere");
            return Err(refused(error).hint("put the file itself beside the model"));
        }
        Ok(found)
    }
}

fn refused(error: Error) -> Error {
    Error::new(ErrorKind::PermissionDenied, error.message())
}
