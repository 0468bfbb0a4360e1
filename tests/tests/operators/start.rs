//! The runtime that models and operators are tested on: every device that is built in, of which the simulated one does its work in
//! an order of its own, on memory that is full of nonsense.

use std::path::{Path, PathBuf};

use oarlock_core::Runtime;
use oarlock_core::flags::Flags;
use oarlock_host::{BuiltIn, Config, Environment, HostOptions, Identity};

const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
    BuiltIn { name: "oarlock-sim", query: oarlock_plugin_sim::QUERY },
    BuiltIn { name: "oarlock-opencl", query: oarlock_plugin_opencl::QUERY },
];

pub(crate) fn start() -> Runtime {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let script = b"[plugin.oarlock-sim]\nscript = 'mode random; seed 1; poison on; devices 1'";
    let config = Config::parse(Path::new("test.toml"), script).expect("a valid configuration");
    let mut options = HostOptions::new("tests 1.0", config, environment);
    options.built_in = BUILT_IN.to_vec();
    // Programs that a driver compiles are kept for the next run.
    options.cache_home = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let flags = Flags::from_environment(|_| None).expect("the defaults of the flags");
    Runtime::start(options, flags).expect("a runtime")
}
