//! Reads models from files.

mod error_location;
mod file_format;
mod file_part;
mod model_directory;
mod model_file;
pub mod onnx;
pub mod paddle;
mod read_progress;
mod weight;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarlock_core::Result;

use crate::graph::Graph;

pub use read_progress::with_read_progress;

/// A model as it was read, before any pass.
#[derive(Clone, Debug)]
pub struct Model {
    /// The outermost graph, with functions of the model inlined.
    pub graph: Graph,
    /// Kind and version of the file, such as `ONNX, IR 8`.
    pub format: String,
    /// Program that wrote the file, with its version.
    pub producer: String,
    /// Imported opset of each domain; ONNX's own is called `ai.onnx`.
    pub opsets: BTreeMap<String, u32>,
    /// Key-value metadata of the file.
    pub metadata: BTreeMap<String, String>,
    /// Dedicated metadata fields of ONNX.
    pub labels: ModelMetadata,
    /// The keys of outputs that are lists of maps in ONNX, in the order of the columns of the matrix that they are here.
    pub maps: BTreeMap<String, MapKeys>,
    /// Files beside the model that its weights were read from.
    pub weight_files: Vec<PathBuf>,
}

/// Dedicated metadata fields of ONNX; empty for other formats.
#[derive(Clone, Debug, Default)]
pub struct ModelMetadata {
    /// Name of the program that wrote the model, without its version.
    pub producer_name: String,
    /// Owner of the model, as a reversed domain name.
    pub domain: String,
    /// Version of the model itself, if it says one.
    pub version: Option<i64>,
    /// Description of the model, for people.
    pub description: String,
    /// Description of the graph, for people.
    pub graph_description: String,
}

/// The keys of the maps that a `ZipMap` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapKeys {
    /// Integers.
    Numbers(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
}

/// Reads a model: a Paddle program if the file is called `__model__` or its name ends in `.pdmodel` or `.json`, else an ONNX
/// model. Of a directory, reads the only model in it. Weights are read into memory, so the file may
/// change or go afterwards.
pub fn load_model(path: &Path) -> Result<Model> {
    if path.is_dir() {
        return load_model_file(&model_directory::find_model_file(path)?);
    }
    load_model_file(path)
}

fn load_model_file(path: &Path) -> Result<Model> {
    let is_named = |name: &str| path.file_name().is_some_and(|file| file == name);
    let has_extension = |name: &str| path.extension().is_some_and(|extension| extension == name);
    if is_named(paddle::OLD_PROGRAM_NAME) || has_extension("pdmodel") || has_extension("json") {
        paddle::load_paddle(path)
    } else {
        onnx::load_onnx(path)
    }
}
