//! Graphs under construction, and the variables that their blocks declare.

use std::collections::HashMap;

use super::messages::{VarDesc, var_type::TensorDesc};
use crate::graph::{Graph, ValueId};

/// A graph under construction.
#[derive(Default)]
pub(super) struct GraphFrame<'m> {
    pub(super) graph: Graph,
    /// The current value of each name.
    pub(super) names: HashMap<&'m str, ValueId>,
    pub(super) variables: HashMap<&'m str, &'m VarDesc>,
    /// The outer values of its last inputs.
    pub(super) captures: Vec<ValueId>,
    /// Values known to be the length of a tensor array.
    pub(super) lengths: HashMap<ValueId, ValueId>,
}

/// The declared tensor type of a variable.
pub(super) fn tensor_desc(variable: &VarDesc) -> Option<&TensorDesc> {
    variable.r#type.as_ref()?.dense_tensor.as_ref()?.tensor.as_ref()
}
