//! What names mean, in the block of the program and in the bodies of its ops.
//!
//! A block sees the names of the blocks around it; what it reads of them becomes one of its inputs.

use std::collections::HashMap;

use oarlock_core::{Dtype, Error, Result};

use super::messages::{OpDesc, VarDesc, var_type::TensorDesc};
use super::ops;
use super::parameters::dtype;
use super::program::{Program, label, tensor_of};
use crate::graph::{Graph, ValueId};
use crate::import::place::{Within as _, quoted, wrong};

/// How deep blocks may lie in each other.
const MOST_DEEP: usize = 32;
/// What the type of a variable is that is a list of tensors.
const TENSOR_ARRAY: i32 = 13;

/// A graph that is being made.
#[derive(Default)]
pub(super) struct Frame<'m> {
    pub(super) graph: Graph,
    /// What each name means at this point.
    pub(super) names: HashMap<&'m str, ValueId>,
    pub(super) variables: HashMap<&'m str, &'m VarDesc>,
    /// What its last inputs are in the graph around it.
    pub(super) captures: Vec<ValueId>,
    /// Which list each known length is that of.
    pub(super) lengths: HashMap<ValueId, ValueId>,
}

impl<'m> Program<'m> {
    /// The ops of a block.
    pub(super) fn ops(&self, block: i64) -> Result<&'m [OpDesc]> {
        let block = usize::try_from(block).ok().and_then(|place| self.blocks.get(place));
        block.map(|block| block.ops.as_slice()).ok_or_else(|| wrong("a block of the program", "another"))
    }

    /// Begins the graph of a block, or one that is no block of the program; gives the ops that it is to be filled with.
    pub(super) fn open(&mut self, block: Option<i64>) -> Result<&'m [OpDesc]> {
        if self.frames.len() >= MOST_DEEP {
            let expected = format!("blocks that are at most {MOST_DEEP} deep in each other");
            return Err(Error::resource_exhausted(format!("expected {expected}, found more")));
        }
        let Some(index) = block else {
            self.frames.push(Frame { graph: Graph::new("branch"), ..Frame::default() });
            return Ok(&[]);
        };
        let place = usize::try_from(index).ok().filter(|place| *place < self.blocks.len());
        let place = place.ok_or_else(|| wrong(format!("one of {} blocks", self.blocks.len()), index))?;
        if !self.taken.insert(place) {
            return Err(wrong("a block that is the body of one op", format!("block {place} again")));
        }
        let block = &self.blocks[place];
        let name = if place == 0 { "main".to_owned() } else { format!("block {place}") };
        let variables = block.vars.iter().map(|variable| (variable.name(), variable)).collect();
        self.frames.push(Frame { graph: Graph::new(name), variables, ..Frame::default() });
        Ok(&block.ops)
    }

    /// Adds ops to the graph that was opened last.
    pub(super) fn fill(&mut self, ops: &'m [OpDesc]) -> Result<()> {
        ops.iter().try_for_each(|op| match ops::find(op.r#type()) {
            Some(translate) => translate(self, op).within(|| label(op)),
            None => Ok(()),
        })
    }

    /// Ends the graph that was opened last; gives it and what it captures of the one around it.
    pub(super) fn close(&mut self, outputs: Vec<ValueId>) -> (Graph, Vec<ValueId>) {
        let Frame { mut graph, captures, .. } = self.frames.pop().unwrap_or_default();
        graph.outputs = outputs;
        let unnamed: Vec<ValueId> =
            graph.values().filter(|(_, value)| value.name.is_empty()).map(|(id, _)| id).collect();
        for id in unnamed {
            graph.value_mut(id).name = format!("#{}", id.index()).into();
        }
        (graph, captures)
    }

    fn frame(&mut self) -> &mut Frame<'m> {
        // One is opened before anything is added.
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The graph that is being made.
    pub(super) fn graph(&mut self) -> &mut Graph {
        &mut self.frame().graph
    }

    /// Gives a name a meaning from here on.
    pub(super) fn bind(&mut self, name: &'m str, id: ValueId) {
        self.frame().names.insert(name, id);
    }

    /// Gives a name to a value that has none, and a meaning to the name.
    pub(super) fn call(&mut self, name: &'m str, id: ValueId) {
        let value = self.graph().value_mut(id);
        if value.name.is_empty() {
            value.name = name.into();
        }
        self.bind(name, id);
    }

    /// What a name means here, where it means something.
    pub(super) fn find(&mut self, name: &'m str) -> Option<ValueId> {
        self.find_from(self.frames.len() - 1, name)
    }

    fn find_from(&mut self, at: usize, name: &'m str) -> Option<ValueId> {
        if let Some(known) = self.frames[at].names.get(name) {
            return Some(*known);
        }
        let outer = self.find_from(at.checked_sub(1)?, name)?;
        let here = self.capture_at(at, outer);
        self.frames[at].names.insert(name, here);
        Some(here)
    }

    /// Makes a value of the graph around the one that is being made one of its inputs.
    pub(super) fn capture(&mut self, outer: ValueId) -> ValueId {
        self.capture_at(self.frames.len() - 1, outer)
    }

    /// A constant becomes a constant of both.
    fn capture_at(&mut self, at: usize, outer: ValueId) -> ValueId {
        let value = self.frames[at - 1].graph.value(outer).clone();
        let Frame { graph, captures, .. } = &mut self.frames[at];
        let is_constant = value.weight.is_some();
        let here = graph.add(value);
        if !is_constant {
            graph.inputs.push(here);
            captures.push(outer);
        }
        here
    }

    /// Notes that a value is the length of a list.
    pub(super) fn note_length(&mut self, length: ValueId, list: ValueId) {
        self.frame().lengths.insert(length, list);
    }

    /// Whether a value is known to be the length of a list.
    pub(super) fn is_length(&self, length: ValueId, list: ValueId) -> bool {
        self.frames.last().is_some_and(|frame| frame.lengths.get(&length) == Some(&list))
    }

    /// What a name means here, which has to be something.
    pub(super) fn value(&mut self, name: &'m str) -> Result<ValueId> {
        self.find(name)
            .ok_or_else(|| wrong("values that are made", format!("{}, which is not", quoted(name))))
    }

    /// Whether a name means something in the graph that is being made or around it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| frame.names.contains_key(name))
    }

    fn variable(&self, name: &str) -> Option<&'m VarDesc> {
        self.frames.iter().rev().find_map(|frame| frame.variables.get(name)).copied()
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&'m TensorDesc> {
        tensor_of(self.variable(name)?)
    }

    /// What the program says about the shape of what a name means.
    pub(super) fn dims(&self, name: &str) -> Option<&'m [i64]> {
        self.tensor(name).map(|tensor| tensor.dims.as_slice())
    }

    /// Whether a name stands for a list of tensors.
    pub(super) fn is_array(&self, name: &str) -> bool {
        self.variable(name)
            .is_some_and(|variable| variable.r#type.as_ref().is_some_and(|it| it.r#type() == TENSOR_ARRAY))
    }

    /// The type of the elements of what a name means, as the program says it.
    pub(super) fn dtype_of(&self, name: &str) -> Option<Dtype> {
        let variable = self.variable(name)?;
        let of_array = || variable.r#type.as_ref()?.tensor_array.as_ref()?.tensor.as_ref();
        dtype(tensor_of(variable).or_else(of_array)?.data_type()).ok()
    }
}
