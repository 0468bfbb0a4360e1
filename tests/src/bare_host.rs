//! Hosts for tests. They ignore the environment of the tests, except the ISA that `OARLOCK_TEST_ISA` forces on CPU kernels;
//! `scripts/test-isa` sets it. `OARLOCK_TEST_LAYERS=validate` puts the layer in front of all plugins, and a breach of a rule fails
//! the call.

use std::collections::BTreeMap;
use std::path::Path;

use oarlock_core::{Attributes, ConstantInput, Dtype, ExpectedInput, Op, PrepareOutcome, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, HostConfig, HostEnvironment, HostOptions, OperandInfo, ProcessIdentity};

/// The CPU plugin. Tests use this one, so that all of them respect the forced ISA.
pub const CPU_PLUGIN: BuiltInPlugin = BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY };
/// The simulated device, which runs the kernels of the CPU.
pub const SIM_PLUGIN: BuiltInPlugin = BuiltInPlugin { name: "oarlock-sim", query: oarlock_plugin_sim::QUERY };

/// The layer that checks all calls.
pub const VALIDATE_PLUGIN: BuiltInPlugin =
    BuiltInPlugin { name: "validate", query: oarlock_plugin_validate::QUERY };

/// The ISA forced on CPU kernels, if any.
pub fn forced_isa() -> Option<String> {
    let isa = std::env::var_os("OARLOCK_TEST_ISA")?;
    Some(isa.into_string().expect("`OARLOCK_TEST_ISA` as text in UTF-8"))
}

/// Options for a host with this configuration and these plugins.
///
/// # Panics
///
/// If the configuration does not parse.
pub fn host_options(host: &str, config: &str, built_in: &[BuiltInPlugin]) -> HostOptions {
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut config =
        HostConfig::parse_file(Path::new("test.toml"), config.as_bytes()).expect("a valid configuration");
    if let Some(isa) = forced_isa() {
        for plugin in [CPU_PLUGIN, SIM_PLUGIN] {
            let options: &mut BTreeMap<_, _> = config.options.entry(plugin.name.to_owned()).or_default();
            options.insert("isa".to_owned(), isa.clone());
        }
    }
    let mut options = HostOptions::new(host, config, environment);
    options.built_in = built_in.to_vec();
    if std::env::var_os("OARLOCK_TEST_LAYERS").is_some_and(|layers| layers == "validate") {
        options.built_in.push(VALIDATE_PLUGIN);
        options.layers.push(VALIDATE_PLUGIN.name.to_owned());
        let settings: &mut BTreeMap<_, _> =
            options.config.options.entry(VALIDATE_PLUGIN.name.to_owned()).or_default();
        settings.insert("on_breach".to_owned(), "fail".to_owned());
    }
    options
}

/// Checks that CPU kernels use the forced ISA, by querying a kernel that reports its ISA: the one for 8-bit convolutions.
pub fn check_forced_isa(runtime: &Runtime) -> Result<(), String> {
    let told = convolution_explanation(runtime).map_err(|error| error.to_string())?;
    let used = told.rsplit(", ").next().unwrap_or_default();
    match forced_isa() {
        Some(forced) if forced == used => Ok(()),
        Some(forced) => Err(format!("expected kernels for `{forced}`, found one that says `{told}`")),
        None if ["scalar", "sse4.1", "avx2", "avx-vnni", "avx512", "amx", "neon", "dotprod", "i8mm"]
            .contains(&used) =>
        {
            Ok(())
        }
        None => {
            Err(format!("expected a kernel that names its instruction set, found one that says `{told}`"))
        }
    }
}

/// The kernel's own description of an 8-bit convolution on the CPU.
fn convolution_explanation(runtime: &Runtime) -> oarlock_core::Result<String> {
    let op = Op::new(runtime, "oarlock", "QuantizedConv", 1, Attributes::new())?;
    let cpu = runtime.device("cpu")?;
    let dims: &[i64] = &[1, 1, 1, 1];
    let image = ExpectedInput { dtype: Dtype::U8, dims, is_constant: false, value: None };
    let weights = ExpectedInput { dtype: Dtype::I8, is_constant: true, ..image };
    let scale = ExpectedInput { dtype: Dtype::F32, dims: &[], ..weights };
    let inputs = [image, weights, scale].map(Some);
    let constant = |index, _: Option<&OperandInfo>| {
        let tensor = match index {
            1 => Tensor::from_slice(&cpu, dims, &[1i8]),
            _ => Tensor::from_slice(&cpu, &[], &[1f32]),
        };
        tensor.map(ConstantInput::Tensor)
    };
    match op.prepare_call(runtime, &cpu, cpu.default_stream()?, &inputs, 1, constant)? {
        PrepareOutcome::Kernel(kernel) => Ok(kernel.description().to_owned()),
        PrepareOutcome::NoKernel(explanation) => Err(explanation.to_error()),
        PrepareOutcome::NeedsValues => {
            panic!("expected a kernel that needs no values of a convolution, found one that does")
        }
    }
}
