//! The runtime's part of `oarlock.extension`: contract headers to compile kernels with, adding plugins, and listing their
//! kernels.

pub(crate) mod function;
pub(crate) mod shutdown;

use std::path::PathBuf;

use oarlock_core::{Dtype, DtypeSet};
use oarlock_host::{HOST_CONTRACT, KernelInfo, OperandInfo};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::{Error, OrRaise as _};
use crate::startup::shared_runtime;

/// The headers of the contract, each with its name.
#[pyfunction]
pub(crate) fn _headers() -> Vec<(&'static str, &'static str)> {
    oarlock_scaffold::CONTRACT_HEADERS.to_vec()
}

/// The files of `oarlock-sdk`, each with its path.
#[pyfunction]
pub(crate) fn _sdk() -> Vec<(&'static str, &'static str)> {
    oarlock_scaffold::sdk_files().collect()
}

/// The version of the contract that the headers are of, such as `1.1`.
#[pyfunction]
pub(crate) fn _contract() -> String {
    HOST_CONTRACT.to_string()
}

/// Adds the plugin in a file to the runtime, and returns its name.
#[pyfunction]
pub(crate) fn _add_plugin(py: Python<'_>, file: PathBuf) -> PyResult<String> {
    let runtime = shared_runtime(py)?;
    let added = py.detach(|| runtime.add_plugin(&file)).or_raise()?;
    crate::warning::emit_warnings(py)?;
    Ok(added.info().name.clone())
}

/// The kernels of a plugin, or of an op, as JSON.
#[pyfunction]
#[pyo3(signature = (*, plugin=None, op=None))]
pub(crate) fn _kernels(py: Python<'_>, plugin: Option<&str>, op: Option<&str>) -> PyResult<String> {
    let registry = shared_runtime(py)?.registry();
    let wanted = registry.entries().iter().filter(|row| {
        plugin.is_none_or(|plugin| row.plugin_name() == plugin) && op.is_none_or(|op| row.info().op == op)
    });
    let rows: Vec<Value> = wanted.map(|row| kernel_json(row.plugin_name(), row.info())).collect();
    serde_json::to_string(&rows).map_err(|error| Error::new_err(error.to_string()))
}

fn kernel_json(plugin: &str, kernel: &KernelInfo) -> Value {
    let all = |operands: &[OperandInfo]| operands.iter().map(operand_json).collect::<Vec<_>>();
    json!({
        "plugin": plugin,
        "op": kernel.op,
        "domain": kernel.domain,
        "versions": kernel.version_range(),
        "device": kernel.device_type,
        "inputs": all(&kernel.inputs),
        "outputs": all(&kernel.outputs),
    })
}

fn operand_json(operand: &OperandInfo) -> Value {
    let taken = Dtype::ALL.iter().filter(|dtype| dtype.is_in(DtypeSet(operand.dtypes)));
    json!({
        "name": operand.name,
        "dtypes": taken.map(|dtype| dtype.numpy_name()).collect::<Vec<_>>(),
        "optional": operand.optional,
        "variadic": operand.variadic,
    })
}
