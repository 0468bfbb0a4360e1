//! What a name means where it stands.
//!
//! Scopes lie in each other: the graph of the model, the body of a loop in it, the function that is called there. A body
//! sees what is around it, and what it sees becomes one of its inputs; a function sees its own names only, and its nodes
//! become nodes of the graph that calls it.

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Error, Result};

use super::function_call::FunctionCall;
use crate::graph::{Graph, GraphValue, ValueId, ValueType};
use crate::import::error_location::{invalid_model, quote_name};

/// How deep scopes may lie in each other.
const MOST_NESTED_SCOPES: usize = 64;

/// All scopes from that of the model to the innermost, and the graphs that are being made.
#[derive(Default)]
pub(super) struct ScopeStack<'m> {
    scopes: Vec<NameScope<'m>>,
    graphs: Vec<OpenGraph>,
}

/// The names of one graph or function. One that was left out, such as an input of a function, is `None`.
struct NameScope<'m> {
    names: HashMap<&'m str, Option<ValueId>>,
    /// The call, where this is a function.
    call: Option<FunctionCall<'m>>,
    /// Which graph its nodes become part of.
    graph: usize,
}

/// A graph that is being made.
struct OpenGraph {
    graph: Graph,
    captures: Vec<ValueId>,
}

impl<'m> ScopeStack<'m> {
    /// Opens the scope of a graph.
    pub(super) fn open_graph(&mut self, name: &str) -> Result<()> {
        self.graphs.push(OpenGraph { graph: Graph::new(name), captures: Vec::new() });
        self.push_scope(None)
    }

    /// Opens the scope of a function that is called.
    pub(super) fn open_call(&mut self, call: FunctionCall<'m>) -> Result<()> {
        self.push_scope(Some(call))
    }

    fn push_scope(&mut self, call: Option<FunctionCall<'m>>) -> Result<()> {
        if self.scopes.len() >= MOST_NESTED_SCOPES {
            let expected =
                format!("graphs and functions that are at most {MOST_NESTED_SCOPES} deep in each other");
            return Err(Error::resource_exhausted(format!("expected {expected}, found more")));
        }
        self.scopes.push(NameScope { names: HashMap::new(), call, graph: self.graphs.len() - 1 });
        Ok(())
    }

    /// Closes the innermost scope, which is that of a graph; gives the graph and what it captures.
    pub(super) fn close_graph(&mut self) -> Option<(Graph, Vec<ValueId>)> {
        self.scopes.pop();
        self.graphs.pop().map(|open| (open.graph, open.captures))
    }

    /// Closes the innermost scope, which is that of a call.
    pub(super) fn close_call(&mut self) {
        self.scopes.pop();
    }

    /// Whether the innermost scope is the model's own graph.
    pub(super) fn is_outermost(&self) -> bool {
        self.scopes.len() == 1
    }

    /// The calls around here, the innermost first.
    pub(super) fn enclosing_calls(&self) -> impl Iterator<Item = &FunctionCall<'m>> {
        self.scopes.iter().rev().filter_map(|scope| scope.call.as_ref())
    }

    /// The graph that nodes here become part of.
    pub(super) fn current_graph(&mut self) -> &mut Graph {
        // A graph is opened before anything else is.
        let innermost = self.graphs.len() - 1;
        &mut self.graphs[innermost].graph
    }

    /// What messages and people call something here: with the call in front, where this is a function.
    pub(super) fn qualified_title(&self, name: &str) -> Arc<str> {
        match self.scopes.last().and_then(|scope| scope.call.as_ref()) {
            Some(call) => format!("{}/{name}", call.title).into(),
            None => name.into(),
        }
    }

    /// Gives a value a name here, which nothing else here may have.
    pub(super) fn bind_name(&mut self, name: &'m str, value: Option<ValueId>) -> Result<()> {
        if name.is_empty() {
            return Err(invalid_model("a name", "none"));
        }
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        match scope.names.insert(name, value) {
            Some(_) => {
                Err(invalid_model("every value to be made once", format!("{} twice", quote_name(name))))
            }
            None => Ok(()),
        }
    }

    /// Adds a value to the graph and gives it a name here.
    pub(super) fn define_value(&mut self, name: &'m str, declared: ValueType) -> Result<ValueId> {
        let value = GraphValue { declared, ..GraphValue::with_name(self.qualified_title(name)) };
        let id = self.current_graph().add_value(value);
        self.bind_name(name, Some(id))?;
        Ok(id)
    }

    /// What a name means here and nowhere around.
    pub(super) fn find_own(&self, name: &str) -> Option<Option<ValueId>> {
        self.scopes.last().and_then(|scope| scope.names.get(name).copied())
    }

    /// The value that a name means here; none where an operand was left out.
    pub(super) fn find_value(&mut self, name: &'m str) -> Result<Option<ValueId>> {
        let innermost = self.scopes.len() - 1;
        self.find_value_from(innermost, name).ok_or_else(|| {
            invalid_model(
                "values that are given, constant or made by a node",
                format!("{}, which is none", quote_name(name)),
            )
        })
    }

    fn find_value_from(&mut self, at: usize, name: &'m str) -> Option<Option<ValueId>> {
        let scope = &self.scopes[at];
        if let Some(known) = scope.names.get(name) {
            return Some(*known);
        }
        if scope.call.is_some() || at == 0 {
            return None;
        }
        let graph = scope.graph;
        let outer = self.find_value_from(at - 1, name)?;
        let here = outer.map(|outer| self.capture_value(graph, outer));
        self.scopes[at].names.insert(name, here);
        Some(here)
    }

    /// Makes a value of the graph around a graph one of its inputs. A constant becomes a constant of both.
    fn capture_value(&mut self, graph: usize, outer: ValueId) -> ValueId {
        let around = &self.graphs[graph - 1].graph;
        let value = around.value(outer).clone();
        let (is_constant, is_default) =
            (value.weight.is_some(), around.defaults.binary_search(&outer).is_ok());
        let OpenGraph { graph, captures } = &mut self.graphs[graph];
        let here = graph.add_value(value);
        if is_default {
            graph.defaults.push(here);
        }
        if !is_constant {
            graph.inputs.push(here);
            captures.push(outer);
        }
        here
    }
}
