//! Describes a plan, for `explain`.

use oarlock_engine::passes::PassEffect;
use oarlock_engine::{FallbackSummary, RuntimeValue, Session, StepView};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use oarlock_report::graph_text::step_op_name;
use oarlock_report::pass_report::PassReport;

use crate::error::OrRaise as _;

/// The plan for given inputs: the effects of passes, the kernel of each step, and the memory of a run.
pub(crate) fn describe_plan<'py>(
    py: Python<'py>,
    session: &Session,
    inputs: &[RuntimeValue],
) -> PyResult<Bound<'py, PyDict>> {
    let (plan, fallback) = py
        .detach(|| session.plan(inputs).and_then(|plan| Ok((plan, session.fallback_summary(inputs)?))))
        .or_raise()?;
    let before = session.effects().iter().map(|effect| describe_pass(py, effect, false));
    let after = plan.effects().iter().map(|effect| describe_pass(py, effect, true));
    let steps = plan.steps().map(|info| describe_step(py, info));
    let arenas = PyDict::new(py);
    for (device, bytes) in plan.arenas() {
        arenas.set_item(device.name(), bytes)?;
    }
    let all = PyDict::new(py);
    all.set_item("passes", PyList::new(py, before.chain(after).collect::<PyResult<Vec<_>>>()?)?)?;
    all.set_item("steps", PyList::new(py, steps.collect::<PyResult<Vec<_>>>()?)?)?;
    all.set_item("arenas", arenas)?;
    all.set_item("fallback", describe_fallback(py, &fallback)?)?;
    Ok(all)
}

fn describe_pass<'py>(
    py: Python<'py>,
    effect: &PassEffect,
    with_shapes: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let report = PassReport::from_effect(effect, with_shapes);
    let all = PyDict::new(py);
    all.set_item("name", report.pass)?;
    all.set_item("purpose", report.purpose)?;
    all.set_item("with_shapes", report.with_shapes)?;
    all.set_item("changes", report.changes)?;
    all.set_item("nodes_before", report.nodes_before)?;
    all.set_item("nodes_after", report.nodes_after)?;
    Ok(all)
}

pub(crate) fn describe_step<'py>(py: Python<'py>, info: StepView<'_>) -> PyResult<Bound<'py, PyDict>> {
    let node = info.node();
    let all = PyDict::new(py);
    all.set_item("op", step_op_name(info))?;
    all.set_item("node", &*node.name)?;
    all.set_item("device", info.device().name())?;
    all.set_item("kernel", info.runner())?;
    all.set_item("how", info.description())?;
    all.set_item("why", info.host_affinity())?;
    let cost = info.cost();
    all.set_item("flops", cost.flops)?;
    all.set_item("bytes", cost.bytes)?;
    Ok(all)
}

/// The number of nodes on each device, and the nodes that fell back.
fn describe_fallback<'py>(py: Python<'py>, summary: &FallbackSummary) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("nodes", summary.fallback_nodes())?;
    report.set_item("of", summary.nodes)?;
    report.set_item("cpu_named", summary.is_cpu_named)?;
    report.set_item("devices", &summary.nodes_by_device)?;
    let ops = summary.ops.iter().map(|op| {
        let entry = PyDict::new(py);
        entry.set_item("op", &op.op)?;
        entry.set_item("count", op.count)?;
        entry.set_item("missing", op.missing.name())?;
        entry.set_item("reason", &op.reason)?;
        entry.set_item("first_node", &op.first_node)?;
        Ok(entry)
    });
    report.set_item("ops", PyList::new(py, ops.collect::<PyResult<Vec<_>>>()?)?)?;
    report.set_item("shapes", summary.shape_nodes)?;
    report.set_item("text", summary.text_nodes)?;
    report.set_item("too_small", summary.small_nodes)?;
    Ok(report)
}
