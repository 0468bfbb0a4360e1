//! Resolves names in the main block and in bodies of ops.
//!
//! A block sees the names of enclosing blocks; a value that it reads from them becomes one of its inputs.

use oarlock_core::{Dtype, Error, Result};

use super::TENSOR_ARRAY_TYPE;
use super::graph_frame::{GraphFrame, tensor_desc};
use super::importer::PaddleImporter;
use super::messages::{OpDesc, VarDesc, var_type::TensorDesc};
use super::parameters::dtype_from_number;
use crate::graph::{Graph, ValueId};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// Limit on nesting; import is recursive.
const MAX_NESTED_BLOCKS: usize = 32;

impl<'m> PaddleImporter<'m> {
    /// The ops of a block, by index.
    pub(super) fn block_ops(&self, block: i64) -> Result<&'m [OpDesc]> {
        let block = usize::try_from(block).ok().and_then(|place| self.blocks.get(place));
        block
            .map(|block| block.ops.as_slice())
            .ok_or_else(|| invalid_model("a block of the program", "another"))
    }

    /// Opens a graph, for a block or for a synthetic branch; returns the ops to translate.
    pub(super) fn open_frame(&mut self, block: Option<i64>) -> Result<&'m [OpDesc]> {
        if self.frames.len() >= MAX_NESTED_BLOCKS {
            let expected = format!("blocks that are at most {MAX_NESTED_BLOCKS} deep in each other");
            return Err(Error::resource_exhausted(format!("expected {expected}, found more")));
        }
        let Some(index) = block else {
            self.frames.push(GraphFrame { graph: Graph::new("branch"), ..GraphFrame::default() });
            return Ok(&[]);
        };
        let place = usize::try_from(index).ok().filter(|place| *place < self.blocks.len());
        let place =
            place.ok_or_else(|| invalid_model(format!("one of {} blocks", self.blocks.len()), index))?;
        if !self.taken.insert(place) {
            return Err(invalid_model("a block that is the body of one op", format!("block {place} again")));
        }
        let block = &self.blocks[place];
        let name = if place == 0 { "main".to_owned() } else { format!("block {place}") };
        let variables = block.vars.iter().map(|variable| (variable.name(), variable)).collect();
        self.frames.push(GraphFrame { graph: Graph::new(name), variables, ..GraphFrame::default() });
        Ok(&block.ops)
    }

    /// Translates ops into the innermost graph.
    pub(super) fn lower_ops(&mut self, ops: &'m [OpDesc]) -> Result<()> {
        ops.iter().try_for_each(|op| match (self.find_translator)(op.r#type()) {
            Some(translate) => translate(self, op).with_location(|| op_label(op)),
            None => Ok(()),
        })
    }

    /// Closes the innermost graph; returns it with its captures.
    pub(super) fn close_frame(&mut self, outputs: Vec<ValueId>) -> (Graph, Vec<ValueId>) {
        let GraphFrame { mut graph, captures, .. } = self.frames.pop().unwrap_or_default();
        graph.outputs = outputs;
        let unnamed: Vec<ValueId> =
            graph.values().filter(|(_, value)| value.name.is_empty()).map(|(id, _)| id).collect();
        for id in unnamed {
            graph.value_mut(id).name = format!("#{}", id.index()).into();
        }
        (graph, captures)
    }

    fn current_frame(&mut self) -> &mut GraphFrame<'m> {
        // A frame is always opened first, so there is one.
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The innermost graph.
    pub(super) fn current_graph(&mut self) -> &mut Graph {
        &mut self.current_frame().graph
    }

    /// Rebinds a name in the innermost graph.
    pub(super) fn bind_name(&mut self, name: &'m str, id: ValueId) {
        self.current_frame().names.insert(name, id);
    }

    /// Names a value that has no name yet, and binds the name to it.
    pub(super) fn name_value(&mut self, name: &'m str, id: ValueId) {
        let value = self.current_graph().value_mut(id);
        if value.name.is_empty() {
            value.name = name.into();
        }
        self.bind_name(name, id);
    }

    /// The value of a name, captured from an enclosing graph if needed.
    pub(super) fn find_value(&mut self, name: &'m str) -> Option<ValueId> {
        self.find_value_from(self.frames.len() - 1, name)
    }

    fn find_value_from(&mut self, at: usize, name: &'m str) -> Option<ValueId> {
        if let Some(known) = self.frames[at].names.get(name) {
            return Some(*known);
        }
        let outer = self.find_value_from(at.checked_sub(1)?, name)?;
        let here = self.capture_value_at(at, outer);
        self.frames[at].names.insert(name, here);
        Some(here)
    }

    /// Turns a value of the enclosing graph into an input.
    pub(super) fn capture_value(&mut self, outer: ValueId) -> ValueId {
        self.capture_value_at(self.frames.len() - 1, outer)
    }

    /// Captures at a given depth. A constant becomes a constant of both graphs instead.
    fn capture_value_at(&mut self, at: usize, outer: ValueId) -> ValueId {
        let value = self.frames[at - 1].graph.value(outer).clone();
        let GraphFrame { graph, captures, .. } = &mut self.frames[at];
        let is_constant = value.weight.is_some();
        let here = graph.add_value(value);
        if !is_constant {
            graph.inputs.push(here);
            captures.push(outer);
        }
        here
    }

    /// Records that a value is the length of a tensor array, so that writing there can append.
    pub(super) fn record_length(&mut self, length: ValueId, list: ValueId) {
        self.current_frame().lengths.insert(length, list);
    }

    /// True if a value is known to be the length of a tensor array.
    pub(super) fn is_length_of(&self, length: ValueId, list: ValueId) -> bool {
        self.frames.last().is_some_and(|frame| frame.lengths.get(&length) == Some(&list))
    }

    /// The value of a name; an error if it has none.
    pub(super) fn require_value(&mut self, name: &'m str) -> Result<ValueId> {
        self.find_value(name).ok_or_else(|| {
            invalid_model("values that are made", format!("{}, which is not", quote_name(name)))
        })
    }

    /// True if a name has a value in any open graph.
    pub(super) fn has_value(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| frame.names.contains_key(name))
    }

    fn find_variable(&self, name: &str) -> Option<&'m VarDesc> {
        self.frames.iter().rev().find_map(|frame| frame.variables.get(name)).copied()
    }

    pub(super) fn find_tensor_desc(&self, name: &str) -> Option<&'m TensorDesc> {
        tensor_desc(self.find_variable(name)?)
    }

    /// The declared shape of a variable.
    pub(super) fn declared_dims(&self, name: &str) -> Option<&'m [i64]> {
        self.find_tensor_desc(name).map(|tensor| tensor.dims.as_slice())
    }

    /// True if a variable is a tensor array.
    pub(super) fn is_tensor_array(&self, name: &str) -> bool {
        self.find_variable(name).is_some_and(|variable| {
            variable.r#type.as_ref().is_some_and(|it| it.r#type() == TENSOR_ARRAY_TYPE)
        })
    }

    /// The declared dtype of a variable, or of the elements of a tensor array.
    pub(super) fn declared_dtype(&self, name: &str) -> Option<Dtype> {
        let variable = self.find_variable(name)?;
        let of_array = || variable.r#type.as_ref()?.tensor_array.as_ref()?.tensor.as_ref();
        dtype_from_number(tensor_desc(variable).or_else(of_array)?.data_type()).ok()
    }
}

/// Describes an op for messages.
fn op_label(op: &OpDesc) -> String {
    let output = op.outputs.iter().flat_map(|list| &list.arguments).next();
    match output {
        Some(output) => format!("the {} that makes {}", quote_name(op.r#type()), quote_name(output)),
        None => quote_name(op.r#type()),
    }
}
