//! Models from files.

pub mod onnx;

use std::collections::BTreeMap;

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
    /// The opset of each domain that the model was made for.
    pub opsets: BTreeMap<String, u32>,
    /// What else the file says about itself.
    pub metadata: BTreeMap<String, String>,
}
