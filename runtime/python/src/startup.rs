//! The process-wide runtime. It starts with the first array, device or model, not at import.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use oarlock_core::Runtime;
use oarlock_core::flags::{FLAG_TABLE, FlagDefinition, Flags, PaddleEffect, paddle_variables};
use oarlock_host::{BuiltInPlugin, HostConfig, HostEnvironment, HostOptions, PhaseWatchdog, ProbeCommand};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyCFunction, PyDict};

use crate::error::{Error, OrRaise as _, type_name};

/// The plugins linked into this library.
const BUILT_IN: &[BuiltInPlugin] = &[
    #[cfg(feature = "cpu")]
    BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
    BuiltInPlugin { name: "fault", query: oarlock_plugin_fault::QUERY },
    BuiltInPlugin { name: "record", query: oarlock_plugin_record::QUERY },
    BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY },
    BuiltInPlugin { name: "validate", query: oarlock_plugin_validate::QUERY },
];

/// Flags chosen by the program before the runtime starts; later changes are errors.
static CHOSEN_FLAGS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

static SHARED_RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();

/// True once a thread has begun to start the runtime.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// True in a child forked after that: the runtime's threads did not survive the fork.
static WAS_FORKED: AtomicBool = AtomicBool::new(false);

/// True in a child forked after the runtime started.
pub(crate) fn was_forked() -> bool {
    WAS_FORKED.load(Ordering::Relaxed)
}

/// The process-wide runtime, started on first use.
#[inline]
pub(crate) fn shared_runtime(py: Python<'_>) -> PyResult<&'static Arc<Runtime>> {
    if was_forked() {
        return Err(forked_error());
    }
    match SHARED_RUNTIME.get() {
        Some(runtime) => {
            crate::warning::emit_warnings(py)?;
            Ok(runtime)
        }
        None => {
            let _starting = StartupGuard::begin_startup();
            let plugins = py.import("oarlock._plugins")?;
            let around = InterpreterEnvironment {
                probe: crate::probe::probe_command(py)?,
                bundled: plugins.call_method0("bundled")?.extract()?,
                wheels: plugins.call_method0("directories")?.extract()?,
            };
            let started = py.detach(|| start_runtime(around))?;
            // Messages after the last call are shown at exit.
            let last = py.import("oarlock._oarlock")?.getattr("_tell_warnings")?;
            py.import("atexit")?.call_method1("register", (last,))?;
            crate::warning::emit_warnings(py)?;
            Ok(started)
        }
    }
}

/// Marks a thread that is starting the runtime. A child forked meanwhile would wait for it forever, so forks wait for it.
struct StartupGuard;

/// The number of these threads.
static STARTING_THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// True on a starting thread, which must not wait for itself when it forks.
    static IS_STARTING: Cell<bool> = const { Cell::new(false) };
}

impl StartupGuard {
    fn begin_startup() -> Self {
        IS_STARTING.set(true);
        STARTING_THREADS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for StartupGuard {
    fn drop(&mut self) {
        STARTING_THREADS.fetch_sub(1, Ordering::SeqCst);
        IS_STARTING.set(false);
    }
}

/// Paths that only the interpreter knows.
struct InterpreterEnvironment {
    probe: Option<ProbeCommand>,
    /// Plugins inside this package.
    bundled: Vec<PathBuf>,
    /// Plugin directories of installed packages.
    wheels: Vec<PathBuf>,
}

#[cold]
fn start_runtime(around: InterpreterEnvironment) -> PyResult<&'static Arc<Runtime>> {
    static FIRST_START: Mutex<()> = Mutex::new(());
    let _first = FIRST_START.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = SHARED_RUNTIME.get() {
        return Ok(runtime);
    }
    HAS_BEGUN.store(true, Ordering::Relaxed);
    let started = start_first_runtime(around);
    HAS_BEGUN.store(started.is_ok(), Ordering::Relaxed);
    started
}

fn start_first_runtime(around: InterpreterEnvironment) -> PyResult<&'static Arc<Runtime>> {
    let environment = HostEnvironment::from_process();
    let invalid = |error: &dyn std::fmt::Display| oarlock_core::Error::invalid_argument(error.to_string());
    let config = HostConfig::load(&environment).map_err(|error| invalid(&error)).or_raise()?;
    let program = concat!("oarlock for Python ", env!("CARGO_PKG_VERSION"));
    let mut options = HostOptions::new(program, config, environment);
    options.built_in = BUILT_IN.to_vec();
    options.adapters = crate::adapters::ADAPTERS.to_vec();
    options.bundled = around.bundled;
    options.probe = around.probe;
    options.wheels = around.wheels;
    options.log = Arc::new(crate::warning::WarningListener);
    // Nobody watches the interpreter from outside.
    options.probes_known = true;
    options.phases = Arc::new(PhaseWatchdog::new(Arc::new(crate::warning::StderrLog)));
    let mut flags = Flags::from_environment(|name| options.environment.variable(name)).or_raise()?;
    for (name, value) in CHOSEN_FLAGS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        flags.set(name, value).or_raise()?;
    }
    let runtime = Runtime::start(options, flags).or_raise()?;
    for note in runtime.host().report().layers_left_out() {
        crate::warning::queue_warning("oarlock", &note);
    }
    Ok(SHARED_RUNTIME.get_or_init(|| Arc::new(runtime)))
}

/// The calls that requested layers do not see, and why.
#[pyfunction]
pub(crate) fn _layers_left_out(py: Python<'_>) -> PyResult<Vec<String>> {
    shared_runtime(py).map(|runtime| runtime.host().report().layers_left_out())
}

/// Sets flags, such as `set_flags({"threads": 2})`. This must precede the first array or model, because the runtime starts
/// with them. `python -m oarlock flags` lists all flags.
#[pyfunction]
pub(crate) fn set_flags(flags: &Bound<'_, PyAny>) -> PyResult<()> {
    let flags = flags.cast::<PyDict>().map_err(|_| {
        let found = type_name(flags);
        PyTypeError::new_err(format!(
            "`set_flags` expected a dictionary of values by names of flags, found {found}"
        ))
    })?;
    if SHARED_RUNTIME.get().is_some() {
        return Err(Error::new_err(
            "expected flags before the first array, device or model, found that the runtime has started\nhint: call \
             `set_flags` right after the import, or set variables such as `OARLOCK_THREADS`",
        ));
    }
    let mut tried = Flags::from_environment(|_| None).or_raise()?;
    let mut chosen = Vec::new();
    for (name, value) in flags {
        let name: String = name.extract().map_err(|_| {
            PyTypeError::new_err(format!("`set_flags` expected names of flags, found {}", type_name(&name)))
        })?;
        let value: String = value.str()?.extract()?;
        tried.set(&name, &value).or_raise()?;
        chosen.push((name, value));
    }
    CHOSEN_FLAGS.lock().unwrap_or_else(PoisonError::into_inner).extend(chosen);
    Ok(())
}

/// Every flag with its name, possible values, default, variable and meaning. Does not start the runtime, so that it also works
/// if a variable has a wrong value.
#[pyfunction]
pub(crate) fn _flags() -> Vec<(&'static str, String, &'static str, String, &'static str)> {
    let entry = |flag: &'static FlagDefinition| {
        (flag.name, flag.kind.to_string(), flag.default, flag.variable_name(), flag.meaning)
    };
    FLAG_TABLE.iter().map(entry).collect()
}

/// Every PaddlePaddle variable with its name, its meaning, and the flag that it sets or what to use instead.
#[pyfunction]
pub(crate) fn _paddle_variables()
-> Vec<(&'static str, &'static str, Option<&'static str>, Option<&'static str>)> {
    let entry = |(name, effect)| match effect {
        PaddleEffect::Sets(flag) => (name, flag.meaning, Some(flag.name), None),
        PaddleEffect::Nothing(variable) => (name, variable.meaning, None, Some(variable.instead)),
    };
    paddle_variables().into_iter().map(entry).collect()
}

/// The values of flags by name: of one, of a list, or of all.
#[pyfunction]
#[pyo3(signature = (flags=None))]
pub(crate) fn get_flags<'py>(
    py: Python<'py>,
    flags: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let values = shared_runtime(py)?.flags();
    let given = PyDict::new(py);
    let Some(flags) = flags else {
        for (flag, value, _) in values.list_flags() {
            given.set_item(flag.name, value.to_string())?;
        }
        return Ok(given);
    };
    let one = flags.extract::<String>().map(|name| vec![name]);
    let names: Vec<String> = one.or_else(|_| flags.extract()).map_err(|_| {
        let found = type_name(flags);
        PyTypeError::new_err(format!(
            "`get_flags` expected the name of a flag, or a list of names, found {found}"
        ))
    })?;
    for name in names {
        let (value, _) = values.get(&name).or_raise()?;
        given.set_item(name, value.to_string())?;
    }
    Ok(given)
}

/// Registers hooks that run before and after a fork.
pub(crate) fn watch_forks(py: Python<'_>) -> PyResult<()> {
    let wait = PyCFunction::new_closure(py, None, None, |arguments, _| {
        while STARTING_THREADS.load(Ordering::SeqCst) > 0 && !IS_STARTING.get() {
            arguments.py().detach(|| std::thread::sleep(Duration::from_millis(1)));
        }
    })?;
    let noted = PyCFunction::new_closure(py, None, None, |_, _| {
        WAS_FORKED.store(HAS_BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
        // A child has only the forking thread.
        STARTING_THREADS.store(usize::from(IS_STARTING.get()), Ordering::SeqCst);
    })?;
    let calls = [("before", wait), ("after_in_child", noted)].into_py_dict(py)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&calls)).map(drop)
}

#[cold]
fn forked_error() -> PyErr {
    Error::new_err(
        "expected a process that started Oarlock itself, found one that was forked after Oarlock had started: its threads \
         and devices stayed with the parent\nhint: start processes with `multiprocessing.set_start_method(\"spawn\")`, or \
         fork before the first use",
    )
}

/// The device in the interpreter's own memory.
pub(crate) fn host_memory_device(py: Python<'_>) -> PyResult<oarlock_core::Device> {
    shared_runtime(py)?.device("cpu").or_raise()
}
