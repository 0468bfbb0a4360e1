//! How plugins without a manifest are asked who they are: in another interpreter, so that one that crashes harms nobody.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use oarlock_host::ProbeCommand;
use pyo3::prelude::*;

/// What the other interpreter runs: the native half of this package, and nothing else.
const PROBE_SCRIPT: &str = "\
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
loader = ExtensionFileLoader('_oarlock', sys.argv[1])
module = module_from_spec(spec_from_file_location('_oarlock', sys.argv[1], loader=loader))
loader.exec_module(module)
sys.exit(module._probe(sys.argv[2]))
";

/// The command that probes a plugin. There is none in a program that has an interpreter inside, which would start itself.
pub(crate) fn probe_command(py: Python<'_>) -> PyResult<Option<ProbeCommand>> {
    let program: Option<PathBuf> = py.import("sys")?.getattr("executable")?.extract()?;
    let is_interpreter = |program: &PathBuf| {
        let name = program.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("python"))
    };
    let Some(program) = program.filter(is_interpreter) else { return Ok(None) };
    let native: PathBuf = py.import("oarlock._oarlock")?.getattr("__file__")?.extract()?;
    // Isolated, and without the site's packages, it starts fast and runs nothing of the user's.
    let options = ["-I", "-S", "-c", PROBE_SCRIPT].map(Into::into);
    Ok(Some(ProbeCommand { program, arguments: options.into_iter().chain([native.into()]).collect() }))
}

/// Probes a plugin, in an interpreter that was started for it; gives the status to end with.
#[pyfunction]
pub(crate) fn _probe(path: PathBuf) -> u8 {
    u8::from(oarlock_host::probe_child_main(Path::new(&path)) != ExitCode::SUCCESS)
}
