//! Models from files.

mod error_location;
mod mapped_file;
pub mod onnx;
pub mod paddle;
mod weight;

pub use mapped_file::is_file_mapped;
pub(crate) use mapped_file::release_pages;

use std::collections::BTreeMap;
use std::path::Path;

use oarlock_core::Result;

use crate::graph::Graph;

/// A model as it was read.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it computes. Functions of the model are inlined.
    pub graph: Graph,
    /// What kind of file it came from, such as `ONNX, IR 8`.
    pub format: String,
    /// Who made it, as the file says.
    pub producer: String,
    /// The opset of each domain that the model was made for; ONNX's own is called `ai.onnx`.
    pub opsets: BTreeMap<String, u32>,
    /// What else the file says about itself.
    pub metadata: BTreeMap<String, String>,
    /// What a file of ONNX says in fields of its own.
    pub labels: ModelMetadata,
}

/// What a file of ONNX says about its model in fields of its own; empty where the file has none of them.
#[derive(Clone, Debug, Default)]
pub struct ModelMetadata {
    /// The program that made it, without its version.
    pub producer_name: String,
    /// Whose model it is, as a name of the internet turned around.
    pub domain: String,
    /// Which version of the model it is.
    pub version: i64,
    /// What the model is, in words.
    pub description: String,
    /// What its graph is, in words.
    pub graph_description: String,
}

/// Reads a model: that of a Paddle program where the name of the file ends in `.pdmodel` or `.json`, or else an ONNX one.
/// Its weights stay in the file, which must not be changed while the model, or anything that was made of it, is there.
pub fn load_model(path: &Path) -> Result<Model> {
    if path.extension().is_some_and(|extension| extension == "pdmodel" || extension == "json") {
        paddle::load_paddle(path)
    } else {
        onnx::load_onnx(path)
    }
}
