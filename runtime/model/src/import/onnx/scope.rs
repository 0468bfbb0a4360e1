//! Resolves names.
//!
//! Scopes nest: the model's graph, the body of a loop in it, a function that is called there. A body sees enclosing names, and
//! each that it uses becomes one of its inputs. A function sees only its own names, and its nodes become part of the graph
//! that calls it.

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Error, Result};

use super::functions::FunctionCall;
use crate::graph::{Graph, GraphValue, ValueId, ValueType};
use crate::import::error_location::{invalid_model, quote_name};

/// Limit on nesting; import is recursive.
const MAX_NESTED_SCOPES: usize = 64;

/// The stack of open scopes, and the graphs under construction.
#[derive(Default)]
pub(super) struct ScopeStack<'m> {
    scopes: Vec<NameScope<'m>>,
    graphs: Vec<OpenGraph>,
}

/// Names of one graph or function. An omitted operand, such as an input of a function, is `None`.
struct NameScope<'m> {
    names: HashMap<&'m str, Option<ValueId>>,
    /// The call, if this is the scope of a function.
    call: Option<FunctionCall<'m>>,
    /// Index of the graph that its nodes are added to.
    graph: usize,
}

/// A graph under construction.
struct OpenGraph {
    graph: Graph,
    captures: Vec<ValueId>,
}

impl<'m> ScopeStack<'m> {
    pub(super) fn open_graph(&mut self, name: &str) -> Result<()> {
        self.graphs.push(OpenGraph { graph: Graph::new(name), captures: Vec::new() });
        self.push_scope(None)
    }

    /// Opens the scope of an inlined function. It has no graph of its own.
    pub(super) fn open_call(&mut self, call: FunctionCall<'m>) -> Result<()> {
        self.push_scope(Some(call))
    }

    fn push_scope(&mut self, call: Option<FunctionCall<'m>>) -> Result<()> {
        if self.scopes.len() >= MAX_NESTED_SCOPES {
            let expected =
                format!("graphs and functions that are at most {MAX_NESTED_SCOPES} deep in each other");
            return Err(Error::resource_exhausted(format!("expected {expected}, found more")));
        }
        self.scopes.push(NameScope { names: HashMap::new(), call, graph: self.graphs.len() - 1 });
        Ok(())
    }

    /// Closes the scope of a graph; returns the graph and its captures.
    pub(super) fn close_graph(&mut self) -> Option<(Graph, Vec<ValueId>)> {
        self.scopes.pop();
        self.graphs.pop().map(|open| (open.graph, open.captures))
    }

    pub(super) fn close_call(&mut self) {
        self.scopes.pop();
    }

    /// True if the innermost scope is the model's own graph.
    pub(super) fn is_outermost(&self) -> bool {
        self.scopes.len() == 1
    }

    /// The enclosing calls, innermost first.
    pub(super) fn enclosing_calls(&self) -> impl Iterator<Item = &FunctionCall<'m>> {
        self.scopes.iter().rev().filter_map(|scope| scope.call.as_ref())
    }

    /// The graph that nodes are added to.
    pub(super) fn current_graph(&mut self) -> &mut Graph {
        // A graph is always opened first, so there is one.
        let innermost = self.graphs.len() - 1;
        &mut self.graphs[innermost].graph
    }

    /// Prefixes a name with the enclosing call, if any.
    pub(super) fn qualified_title(&self, name: &str) -> Arc<str> {
        match self.scopes.last().and_then(|scope| scope.call.as_ref()) {
            Some(call) => format!("{}/{name}", call.title).into(),
            None => name.into(),
        }
    }

    /// Binds a name in the innermost scope; an error if it is bound there already.
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

    /// Adds a value to the graph and binds its name.
    pub(super) fn define_value(&mut self, name: &'m str, declared: ValueType) -> Result<ValueId> {
        let value = GraphValue { declared, ..GraphValue::with_name(self.qualified_title(name)) };
        let id = self.current_graph().add_value(value);
        self.bind_name(name, Some(id))?;
        Ok(id)
    }

    /// Looks a name up in the innermost scope only.
    pub(super) fn find_own(&self, name: &str) -> Option<Option<ValueId>> {
        self.scopes.last().and_then(|scope| scope.names.get(name).copied())
    }

    /// Looks a name up in all visible scopes, capturing its value if needed; `None` for an omitted operand.
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

    /// Turns a value of the enclosing graph into an input. A constant becomes a constant of both graphs instead.
    fn capture_value(&mut self, graph: usize, outer: ValueId) -> ValueId {
        let around = &self.graphs[graph - 1].graph;
        let value = around.value(outer).clone();
        let (is_constant, is_default) =
            (value.weight.is_some(), around.overridable_initializers.binary_search(&outer).is_ok());
        let OpenGraph { graph, captures } = &mut self.graphs[graph];
        let here = graph.add_value(value);
        if is_default {
            graph.overridable_initializers.push(here);
        }
        if !is_constant {
            graph.inputs.push(here);
            captures.push(outer);
        }
        here
    }
}
