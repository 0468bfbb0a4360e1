//! Oarlock for Rust programs: arrays, ops and models on whatever device is plugged in.
//!
//! [`start`] loads plugins and returns a [`Runtime`] with their devices. A [`Tensor`] is on a device, an [`Op`] computes tensors
//! from tensors, and a [`Session`] runs a model from an ONNX or Paddle file.
//!
//! ```
//! use oarlock::{Op, Tensor};
//!
//! let runtime = oarlock::start("my-program 1.0")?;
//! let device = runtime.default_device()?;
//! let a = Tensor::from_slice(device, &[2, 1], &[1.0f32, 2.0])?;
//! let b = Tensor::from_slice(device, &[3], &[10.0f32, 20.0, 30.0])?;
//! let sum = Op::latest(&runtime, "Add")?.run(&runtime, &[&a, &b])?;
//! assert_eq!(sum.to_vec::<f32>()?, [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]);
//! # Ok::<(), oarlock::Error>(())
//! ```
//!
//! A model takes and returns [`RuntimeValue`]s:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use oarlock::{RuntimeValue, Session, SessionOptions, Tensor};
//!
//! let runtime = Arc::new(oarlock::start("my-program 1.0")?);
//! let model = oarlock::load_model(Path::new("digits.onnx"))?;
//! let session = Session::new(runtime.clone(), &model, &SessionOptions::default())?;
//! let image = Tensor::from_slice(runtime.default_device()?, &[1, 64], &[0.5f32; 64])?;
//! let outputs = session.run(&[RuntimeValue::Tensor(image)])?;
//! # Ok::<(), oarlock::Error>(())
//! ```
//!
//! Feature `cpu`, on by default, links the CPU device into the program. Other devices are plugins, which the configuration, the
//! environment and [`HostOptions::paths`] name. The crates behind this one, such as `oarlock_core`, have everything else.

pub use oarlock_core::flags::{FallbackScope, Flags};
pub use oarlock_core::stream::Stream;
pub use oarlock_core::{
    Attribute, Attributes, Constant, CpuFallback, Device, Dims, Dtype, Element, Error, ErrorKind, Op,
    OpInvocation, OpOutputs, Result, ReusableCall, Runtime, Tensor,
};
pub use oarlock_engine::import::load_model;
pub use oarlock_engine::{Model, ModelOperand, PrecisionMode, RuntimeValue, Session, SessionOptions};
pub use oarlock_host::{
    BuiltInPlugin, HostConfig, HostEnvironment, HostOptions, PluginAdapter, ProbeCommand,
};

/// The plugins that this crate links in.
pub const BUILT_IN: &[BuiltInPlugin] = &[
    #[cfg(feature = "cpu")]
    BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
];

/// What makes plugins for other programs usable.
pub const ADAPTERS: &[PluginAdapter] =
    &[PluginAdapter { entry: oarlock_plugin_paddle::ENTRY, query: oarlock_plugin_paddle::query }];

/// Starts a runtime with the plugins of [`host_options`] and the flags of the environment. `program` is the name and version of
/// the calling program, which plugins see.
pub fn start(program: &str) -> Result<Runtime> {
    start_with(host_options(program)?)
}

/// Starts a runtime with these options and the flags of the environment.
pub fn start_with(options: HostOptions) -> Result<Runtime> {
    let flags = Flags::from_environment(|name| options.environment.variable(name))?;
    Runtime::start(options, flags)
}

/// The plugins that are linked in, and those that the user's configuration and environment name.
pub fn host_options(program: &str) -> Result<HostOptions> {
    let environment = HostEnvironment::from_process();
    let config =
        HostConfig::load(&environment).map_err(|error| Error::invalid_argument(error.to_string()))?;
    let mut options = HostOptions::new(program, config, environment);
    options.built_in = BUILT_IN.to_vec();
    options.adapters = ADAPTERS.to_vec();
    Ok(options)
}
