//! Probes plugins without a manifest in another interpreter, so that a crash does no harm.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use oarlock_host::ProbeCommand;
use pyo3::prelude::*;

/// The probe imports only the native half of this package.
const PROBE_SCRIPT: &str = "\
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
loader = ExtensionFileLoader('_oarlock', sys.argv[1])
module = module_from_spec(spec_from_file_location('_oarlock', sys.argv[1], loader=loader))
loader.exec_module(module)
sys.exit(module._probe(sys.argv[2]))
";

/// `None` if the interpreter is embedded in a program: the probe would start that program again.
pub(crate) fn probe_command(py: Python<'_>) -> PyResult<Option<ProbeCommand>> {
    let program: Option<PathBuf> = py.import("sys")?.getattr("executable")?.extract()?;
    let is_interpreter = |program: &PathBuf| {
        let name = program.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("python"))
    };
    let Some(program) = program.filter(is_interpreter) else { return Ok(None) };
    let native: PathBuf = py.import("oarlock._oarlock")?.getattr("__file__")?.extract()?;
    // Isolated and without `site`, it starts fast and runs no user code.
    let options = ["-I", "-S", "-c", PROBE_SCRIPT].map(Into::into);
    Ok(Some(ProbeCommand { program, arguments: options.into_iter().chain([native.into()]).collect() }))
}

/// Probes a plugin in an interpreter that was started for it; returns the exit status.
#[pyfunction]
pub(crate) fn _probe(path: PathBuf) -> u8 {
    u8::from(oarlock_host::probe_child_main(Path::new(&path), crate::adapters::ADAPTERS) != ExitCode::SUCCESS)
}
