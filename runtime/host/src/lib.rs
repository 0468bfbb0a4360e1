//! Finds, judges, loads, isolates and unloads plugins.
//!
//! A plugin's way is the order of the modules: [`search()`] finds files, [`judge()`] decides from a file and its manifest
//! alone, [`probe()`] asks a file without a manifest in a child process, `load` opens what is left and checks what it
//! answers, and `device` is what a program then holds. [`Host::start`] goes that way for every plugin and keeps a
//! [`Refusal`] for each one that does not come to its end.

mod config;
mod conformance;
mod device;
mod environment;
mod generated;
mod host;
mod judge;
mod load;
mod plugin;
mod probe;
mod refusal;
mod report;
mod search;
mod services;
mod start;
mod text;

pub use config::{Config, ConfigError, Plugins};
pub use device::kernel::{CallServices, HostCall, KernelHandle, PreparedKernel};
pub use device::live::Live;
pub use device::memory::{Block, Span};
pub use device::pinned::Pinned;
pub use device::stream::{Event, Stream};
pub use device::{Device, DeviceDescription, DeviceFlags, MemorySizes, MemoryStats};
pub use environment::Environment;
pub use host::{BuiltIn, Host, HostOptions};
pub use judge::digest::{AllowList, Digest, NotADigest};
pub use judge::elf::{Binding, Elf, Export, Links};
pub use judge::features::IsaFeatures;
pub use judge::isa::Predicate;
pub use judge::manifest::{Conformance, Kind, Manifest, Requirement};
pub use judge::permissions::Identity;
pub use judge::signature::TrustedKeys;
pub use judge::sonames::Libraries;
pub use judge::symbols::{ENTRY, check_symbols, pinning_symbols};
pub use judge::variants::{group_variants, passed_over};
pub use judge::version::{ContractRange, Version, VersionRange};
pub use judge::{JudgeContext, Judged, judge};
pub use load::described::{DraftInfo, KernelInfo, OperandInfo, PluginInfo, SupportLevel};
pub use load::negotiate::{HOST_CONTRACT, OLDEST_MINOR};
pub use plugin::{Kernel, Plugin};
pub use probe::child::probe_child_main;
pub use probe::{PROBE_TIMEOUT, ProbeCommand, Probed, probe};
pub use refusal::{Reason, Refusal};
pub use report::{DeviceReport, LoadReport, LoadedPlugin, Outcome, PluginReport};
pub use search::{Candidate, Found, Origin, places, search};
pub use services::errors::{Code, ErrorFlags, Failure, FailureDetails, live_errors};
pub use services::{LogLevel, LogSink, Silent};
pub use text::clean::clean_text;
pub use text::nearest::{did_you_mean, nearest};
