//! Serializes paths as text. A file name may be any bytes; invalid UTF-8 is replaced, so that serializing a report never
//! fails.

use std::path::{Path, PathBuf};

use serde::Serializer;

/// For `#[serde(serialize_with = "…")]` on a path.
pub(crate) fn serialize_path<S: Serializer>(
    path: impl AsRef<Path>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.as_ref().display())
}

/// For `#[serde(serialize_with = "…")]` on a path that may be missing.
pub(crate) fn serialize_optional_path<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
