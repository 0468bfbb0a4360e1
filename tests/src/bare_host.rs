//! What the hosts of tests start with: nothing of the environment that the tests run in, but for the instruction set that
//! `OARLOCK_TEST_ISA` forces on the kernels of the CPU. `scripts/test-isa` sets it.

use std::collections::BTreeMap;
use std::path::Path;

use oarlock_core::{Attributes, Dtype, Expected, Op, Readied, Runtime, Tensor};
use oarlock_host::{BuiltIn, Config, Environment, HostOptions, Identity};

/// The plugin of the CPU. Tests have it from here, so that none forgets the instruction set that is forced.
pub const CPU: BuiltIn = BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY };
/// The plugin of the simulated device, which runs the kernels of the CPU.
pub const SIM: BuiltIn = BuiltIn { name: "oarlock-sim", query: oarlock_plugin_sim::QUERY };

/// The instruction set that kernels of the CPU have to use, if one is forced.
pub fn forced_isa() -> Option<String> {
    let isa = std::env::var_os("OARLOCK_TEST_ISA")?;
    Some(isa.into_string().expect("`OARLOCK_TEST_ISA` as text in UTF-8"))
}

/// Options of a host with this configuration and these plugins.
///
/// # Panics
///
/// If the configuration is none.
pub fn host_options(host: &str, config: &str, built_in: &[BuiltIn]) -> HostOptions {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let mut config = Config::parse(Path::new("test.toml"), config.as_bytes()).expect("a valid configuration");
    if let Some(isa) = forced_isa() {
        for plugin in [CPU, SIM] {
            let options: &mut BTreeMap<_, _> = config.options.entry(plugin.name.to_owned()).or_default();
            options.insert("isa".to_owned(), isa.clone());
        }
    }
    let mut options = HostOptions::new(host, config, environment);
    options.built_in = built_in.to_vec();
    options
}

/// Checks that kernels of the CPU use the instruction set that is forced. One is asked that says its set: the kernel for
/// convolutions of bytes.
pub fn check_forced_isa(runtime: &Runtime) -> Result<(), String> {
    let told = convolution(runtime).map_err(|error| error.to_string())?;
    let used = told.rsplit(", ").next().unwrap_or_default();
    match forced_isa() {
        Some(forced) if forced == used => Ok(()),
        Some(forced) => Err(format!("expected kernels for `{forced}`, found one that says `{told}`")),
        None if ["scalar", "avx2", "avx512", "amx"].contains(&used) => Ok(()),
        None => {
            Err(format!("expected a kernel that names its instruction set, found one that says `{told}`"))
        }
    }
}

/// How the CPU does a convolution of bytes, in the words of its kernel.
fn convolution(runtime: &Runtime) -> oarlock_core::Result<String> {
    let op = Op::new(runtime, "oarlock", "QuantizedConv", 1, Attributes::new())?;
    let cpu = runtime.device("cpu")?;
    let dims: &[i64] = &[1, 1, 1, 1];
    let image = Expected { dtype: Dtype::U8, dims, is_constant: false, value: None };
    let weights = Expected { dtype: Dtype::I8, is_constant: true, ..image };
    let scale = Expected { dtype: Dtype::F32, dims: &[], ..weights };
    let inputs = [image, weights, scale].map(Some);
    let constant = |index, _| match index {
        1 => Tensor::from_slice(&cpu, dims, &[1i8]),
        _ => Tensor::from_slice(&cpu, &[], &[1f32]),
    };
    match op.ready(runtime, &cpu, cpu.stream()?, &inputs, 1, constant)? {
        Readied::Kernel(kernel) => Ok(kernel.description().to_owned()),
        Readied::Nothing(explanation) => Err(explanation.error()),
        Readied::NeedsValues => {
            panic!("expected a kernel that needs no values of a convolution, found one that does")
        }
    }
}
