//! Starts a plugin in a process of its own, and accepts its proxies as the plugin.

#![expect(unsafe_code, reason = "the child's host gets functions of this one")]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oarlock_isolation::{HostFunctions, IsolatedPlugin, StartFailure, StartRequest};
use serde::{Deserialize, Serialize};

use crate::load::{QueriedPlugin, accept_isolated};
use crate::services::PluginServices;
use crate::{HostOptions, PluginKind, Refusal, RefusalReason};

/// The time that a plugin may take to load and describe itself. Drivers may be slow.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// What the host of the child has to know, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildSetup {
    /// The name of the plugin.
    pub(crate) name: String,
    /// Name and version of the program.
    pub(crate) program: String,
    /// The options of the plugin.
    pub(crate) options: BTreeMap<String, String>,
    /// The number of threads that its kernels may use.
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Starts a judged plugin in a child process.
pub(crate) fn open_isolated(
    path: &Path,
    name: &str,
    kind: PluginKind,
    options: &HostOptions,
    services: Arc<PluginServices>,
) -> Result<QueriedPlugin, Refusal> {
    if kind != PluginKind::Device {
        let found = match kind {
            PluginKind::Layer => "a layer, which wraps plugins of this process",
            _ => "kernels for a device of another plugin, whose memory they could not reach",
        };
        let expected = "a plugin with a device, since only those can be isolated";
        let remedy = "do not isolate it, or sign it or add its hash to `trusted_files` under `[plugins]` if you trust it";
        return Err(Refusal::new(RefusalReason::CannotIsolate, path, expected, found, remedy));
    }
    let Some(command) = &options.probe else {
        let expected = "a program that can start itself, to isolate a plugin";
        let remedy = "set `HostOptions::probe`, or do not isolate the plugin";
        return Err(Refusal::new(RefusalReason::CannotIsolate, path, expected, "one that cannot", remedy));
    };
    let setup = ChildSetup {
        name: name.to_owned(),
        program: options.program.clone(),
        options: options.config.options.get(name).cloned().unwrap_or_default(),
        threads: options.threads,
    };
    let request = StartRequest {
        program: command.program.clone(),
        arguments: command.arguments.clone(),
        path: path.to_owned(),
        name: name.to_owned(),
        setup: serde_json::to_vec(&setup).unwrap_or_default(),
        limits: options.config.plugins.isolated.to_limits(),
        // SAFETY: the services are kept beside the plugin, which is dropped first.
        host: unsafe { HostFunctions::from_host(services.abi_host()) },
        patience: START_PATIENCE,
    };
    match IsolatedPlugin::start(request) {
        Ok(isolated) => accept_isolated(path, services, isolated),
        Err(StartFailure::Refused(refusal)) => {
            Err(serde_json::from_slice(&refusal).unwrap_or_else(|error| {
                refuse_start(path, "a process that says why it refuses the plugin", &error.to_string())
            }))
        }
        Err(StartFailure::Failed(breach)) => Err(refuse_start(path, &breach.expected, &breach.found)),
    }
}

fn refuse_start(path: &Path, expected: &str, found: &str) -> Refusal {
    let remedy = "find out with `oarlock plugin check` what the plugin does, or tell its vendor";
    Refusal::new(RefusalReason::PluginError, path, expected, found, remedy)
}
