//! The runtime for tests of models and operators: every built-in device. The simulated one runs its work in random order, on
//! poisoned memory.

use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::Trial;
use oarlock_core::Runtime;
use oarlock_core::flags::Flags;
use oarlock_host::BuiltInPlugin;
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, check_forced_isa, host_options};

const OPENCL_PLUGIN: BuiltInPlugin =
    BuiltInPlugin { name: "oarlock-opencl", query: oarlock_plugin_opencl::QUERY };

pub(crate) fn start_runtime() -> Runtime {
    let config = "[plugin.oarlock-sim]\nscript = 'mode random; seed 1; poison on; devices 1'";
    let mut options = host_options("tests 1.0", config, &[CPU_PLUGIN, SIM_PLUGIN, OPENCL_PLUGIN]);
    // Compiled programs are cached for the next run.
    options.cache_home = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let flags = Flags::from_environment(|_| None).expect("the defaults of the flags");
    Runtime::start(options, flags).expect("a runtime")
}

/// A trial that CPU kernels use the forced ISA.
pub(crate) fn isa_trial(runtime: &Arc<Runtime>) -> Trial {
    let runtime = runtime.clone();
    Trial::test("kernels of the CPU use the instruction set that is forced", move || {
        Ok(check_forced_isa(&runtime)?)
    })
}
