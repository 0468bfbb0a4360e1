//! Branches and loops of traced functions.

use std::sync::Arc;

use oarlock_core::schema::latest_opset;
use oarlock_core::{Dtype, Tensor};
use oarlock_engine::graph::Node;
use oarlock_engine::{RuntimeValue, SessionOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::trace_object::FunctionTrace;
use crate::error::OrRaise as _;
use crate::signals::detach_interruptible;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;
use crate::trace::{FinishedGraph, TRACES, add_node, operand_value, python_line, traced_model, zeros_of};

/// Adds a node that runs one of two branches, and returns its results.
#[pyfunction]
pub(crate) fn _cond(
    py: Python<'_>,
    predicate: &Bound<'_, PyTensor>,
    then_branch: &FunctionTrace,
    else_branch: &FunctionTrace,
) -> PyResult<Vec<PyTensor>> {
    let branches = [then_branch.finished()?, else_branch.finished()?];
    add_control_flow(py, "If", &[predicate.get().tensor()], branches, ["then_branch", "else_branch"])
}

/// Adds a node that repeats a body as long as a condition holds, and returns the last state.
#[pyfunction]
pub(crate) fn _while_loop(
    py: Python<'_>,
    condition: &Bound<'_, PyTensor>,
    state: Vec<Bound<'_, PyTensor>>,
    body: &FunctionTrace,
) -> PyResult<Vec<PyTensor>> {
    let inputs: Vec<Tensor> =
        [condition].into_iter().chain(&state).map(|array| array.get().tensor()).collect();
    add_control_flow(py, "Loop", &inputs, [body.finished()?], ["body"])
}

fn add_control_flow<const COUNT: usize>(
    py: Python<'_>,
    op: &str,
    inputs: &[Tensor],
    bodies: [FinishedGraph; COUNT],
    attributes: [&str; COUNT],
) -> PyResult<Vec<PyTensor>> {
    if inputs.first().is_none_or(|first| first.dtype() != Dtype::Bool) {
        return Err(PyTypeError::new_err("expected a truth value as condition, found numbers"));
    }
    let given = TRACES.with_borrow_mut(|traces| {
        inputs.iter().map(|input| operand_value(traces, input).map(Some)).collect::<PyResult<Vec<_>>>()
    })?;
    // A body of a loop also says whether to go on.
    let is_loop = op == "Loop";
    let kinds: Vec<_> = bodies[0].kinds.iter().skip(usize::from(is_loop)).cloned().collect();
    // The number of rounds of a loop is left out: only the condition ends it.
    let given = is_loop.then_some(None).into_iter().chain(given);
    let subgraphs = bodies.into_iter().zip(attributes).map(|(body, attribute)| body.into_subgraph(attribute));
    let node =
        Node { subgraphs: subgraphs.collect(), ..Node::new("", op, latest_opset("").or_raise()?, given, []) };
    let is_nested = TRACES.with_borrow(|traces| traces.len() > 1);
    let zeros = if is_nested { zeros_of(&kinds, inputs[0].device())? } else { None };
    let outputs = zeros.map_or_else(|| run_node(py, &node, kinds.len()), Ok)?;
    let line = python_line(py)?;
    TRACES.with_borrow_mut(|traces| add_node(traces, node, &outputs, line));
    Ok(outputs.into_iter().map(PyTensor::new).collect())
}

/// Runs a node of the innermost graph on the tensors that its values have, as a model of its own.
fn run_node(py: Python<'_>, node: &Node, outputs: usize) -> PyResult<Vec<Tensor>> {
    let runtime = shared_runtime(py)?.clone();
    let (graph, tensors) = TRACES
        .with_borrow(|traces| traces.last().map(|trace| trace.graph_of_node(node, outputs)))
        .ok_or_else(|| PyTypeError::new_err("expected a trace, found none"))?;
    let model = traced_model(graph)?;
    let devices = tensors.first().map(|tensor| tensor.device().clone()).into_iter().collect();
    let options = SessionOptions { devices, ..SessionOptions::default() };
    let inputs: Vec<RuntimeValue> = tensors.into_iter().map(RuntimeValue::Tensor).collect();
    let run = || oarlock_engine::Session::new(Arc::clone(&runtime), &model, &options)?.run(&inputs);
    let outputs = detach_interruptible(py, run)?.or_raise()?;
    outputs
        .into_iter()
        .map(|output| match output {
            RuntimeValue::Tensor(tensor) => Ok(tensor),
            _ => Err(PyTypeError::new_err("expected arrays as results of a branch or loop")),
        })
        .collect()
}
