//! Finds, judges, loads, isolates and unloads plugins.
//!
//! The modules are in the order of a plugin's path: [`search_plugins`] finds files, [`judge_candidate`] decides from a file and
//! its manifest alone, [`probe_file`] queries a file without a manifest in a child process, `load` opens the accepted files
//! and checks their answers, and `device` is the interface for programs. [`Host::start`] takes every plugin along this path and
//! records a [`Refusal`] for each one that does not reach the end.

mod child_program;
mod config;
mod conformance;
mod device;
mod device_name;
mod environment;
mod files;
mod foreign_struct;
mod generated;
mod host;
mod isolation;
mod judge;
mod known_devices;
mod live_handles;
mod load;
mod negotiate;
mod options;
mod phase_watchdog;
mod plugin;
mod plugin_phase;
mod plugin_selection;
mod probe;
mod refusal;
mod report;
mod search;
mod services;
mod startup;
mod text;
mod trust;

pub use child_program::probe_child_main;
pub use config::{ConfigError, HostConfig, IsolatedSection, IsolationPolicy, PluginsSection};
pub use device::kernel::{KernelHandle, PreparedKernel};
pub use device::memory::{DeviceBlock, DeviceSpan};
pub use device::pinned::PinnedHostMemory;
pub use device::stream::{PluginEvent, PluginStream};
pub use device::{DeviceDescription, DeviceFlags, MemorySizes, MemoryStats, PluginDevice};
pub use device_name::{DeviceName, MalformedDeviceName};
pub use environment::HostEnvironment;
pub use files::digest::{AllowList, Digest, InvalidDigest};
pub use files::permissions::ProcessIdentity;
pub use host::Host;
pub use judge::adapter::{AdapterQuery, PluginAdapter};
pub use judge::coverage::{CoveredFile, FileCoverage, hash_shipped_files, list_covered_files};
pub use judge::elf::{ExportedSymbol, LinkedLibraries, MemoryDemands, SharedObject, SymbolBinding};
pub use judge::features::IsaFeatures;
pub use judge::isa::IsaPredicate;
pub use judge::manifest::{ConformanceRecord, PluginKind, PluginManifest, RequiredLibrary};
pub use judge::sonames::LibrarySearch;
pub use judge::symbols::{ENTRY_SYMBOL, check_symbols, pinning_symbols};
pub use judge::variants::{group_variants, superseded_refusal};
pub use judge::version::{ContractRange, Version, VersionRange};
pub use judge::{JudgeContext, JudgedPlugin, judge_candidate};
pub use known_devices::{DeviceAbsence, KNOWN_DEVICES, KnownDevice, explain_absence};
pub use live_handles::LiveHandleCounts;
pub use load::plugin_description::{DraftInfo, KernelInfo, OperandInfo, PluginInfo, SupportLevel};
pub use negotiate::{HOST_CONTRACT, OLDEST_MINOR};
pub use options::{BuiltInPlugin, HostOptions};
pub use phase_watchdog::PhaseWatchdog;
pub use plugin::{LoadedKernel, LoadedPlugin};
pub use plugin_phase::{
    FailedStart, PhaseObserver, PhaseStart, PluginPhase, START_TIMEOUT, StartFault, UnwatchedPhases,
    signal_name,
};
pub use plugin_selection::PluginSelection;
pub use probe::{PROBE_TIMEOUT, ProbeCommand, ProbeResult, probe_file};
pub use refusal::{Refusal, RefusalReason};
pub use report::{DeviceReport, LoadReport, LoadedPluginReport, PluginOutcome, PluginReport};
pub use search::{PluginCandidate, PluginOrigin, SearchResult, search_places, search_plugins};
pub use services::errors::{Code, ErrorFlags, FailureDetails, PluginFailure, live_errors};
pub use services::host_call::{CallServices, HostCall};
pub use services::op_runner::{
    HostOperand, HostPlace, OpRequest, OpRunner, RUN_OP, RequestedAttribute, RunOp, with_op_runner,
};
pub use services::stop_request::{StopQuestion, with_stop_check};
pub use services::thread_pool::MAX_WORKERS;
pub use services::{LogLevel, LogSink, SilentLogSink};
pub use text::sanitize::sanitize_text;
pub use text::suggestion::{did_you_mean, nearest_name};
pub use trust::key::{KeyFingerprint, PrivateKey, PublicKey, TrustFileError};
pub use trust::key_directory::{KEY_EXTENSION, KeyFiles, REVOCATION_EXTENSION};
pub use trust::signature::{KeySignature, ManifestSignatures};
pub use trust::statement::KeyStatement;
pub use trust::trusted_keys::{SignatureStanding, TrustFinding, TrustedKey, TrustedKeys};
