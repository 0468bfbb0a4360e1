//! The one runtime of the process. It starts with the first array, device or model, and not with the import.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use oarlock_core::Runtime;
use oarlock_core::flags::Flags;
use oarlock_host::{BuiltIn, Config, Environment, HostOptions};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict as _;

use crate::error::{Error, OrRaise as _};

/// The plugins that are linked into the package.
const BUILT_IN: [BuiltIn; 2] = [
    BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
    BuiltIn { name: "trace", query: oarlock_plugin_trace::QUERY },
];

static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();

/// Whether this process is the child of one in which the runtime had started. Its threads stayed behind.
static WAS_FORKED: AtomicBool = AtomicBool::new(false);

/// The runtime.
#[inline]
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Arc<Runtime>> {
    if WAS_FORKED.load(Ordering::Relaxed) {
        return Err(forked());
    }
    match RUNTIME.get() {
        Some(runtime) => Ok(runtime),
        None => py.detach(start),
    }
}

#[cold]
fn start() -> PyResult<&'static Arc<Runtime>> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let environment = Environment::from_process();
    let invalid = |error: &dyn std::fmt::Display| oarlock_core::Error::invalid_argument(error.to_string());
    let config = Config::load(&environment).map_err(|error| invalid(&error)).or_raise()?;
    let program = concat!("oarlock for Python ", env!("CARGO_PKG_VERSION"));
    let mut options = HostOptions::new(program, config, environment);
    options.built_in = BUILT_IN.to_vec();
    let flags = Flags::from_environment(|name| std::env::var_os(name)).or_raise()?;
    let runtime = Runtime::start(options, flags).or_raise()?;
    Ok(RUNTIME.get_or_init(|| Arc::new(runtime)))
}

/// Has the interpreter say when this process becomes a child.
pub(crate) fn watch_forks(py: Python<'_>) -> PyResult<()> {
    let noted = pyo3::types::PyCFunction::new_closure(py, None, None, |_, _| {
        WAS_FORKED.store(RUNTIME.get().is_some(), Ordering::Relaxed);
    })?;
    let call = [("after_in_child", noted)].into_py_dict(py)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&call)).map(drop)
}

#[cold]
fn forked() -> PyErr {
    Error::new_err(
        "expected a process that started Oarlock itself, found one that was forked after Oarlock had started: its threads \
         and devices stayed with the parent\nhint: start processes with `multiprocessing.set_start_method(\"spawn\")`, or \
         fork before the first use",
    )
}
