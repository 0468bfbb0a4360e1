//! Queries a plugin without a manifest and initializes its devices in a child process: a plugin that crashes, hangs or ends the
//! process there is refused.
//!
//! The child runs in its own process group. It is killed, with all of its descendants, once it was refused, has ended or timed
//! out. It ends as a program does, so that what a plugin does then is noted. Its answer only decides whether to load the plugin: everything is checked again in this process. The child
//! reports the plugin's identity before it initializes the devices, which distinguishes a later failure from a failed query. The
//! real start reports devices that cannot be initialized.

pub(crate) mod cache;
pub(crate) mod child;
mod dependencies;
mod parent;
mod verdict;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::rand::GetRandomFlags;
use serde::{Deserialize, Serialize};

use crate::probe::parent::watch_child;
use crate::{PluginInfo, Refusal, RefusalReason};

/// Time limit for a plugin's answer, if the configuration does not set one.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The options of each plugin, by plugin name.
pub(crate) type PluginOptions = BTreeMap<String, BTreeMap<String, String>>;

/// Derives the plugin's name from its file name, if options exist for that name: `acme-npu` for both `libacme_npu.so` and
/// `libacme_plugin_npu.so`. This way, a plugin already has its options when it is queried.
fn name_by_file<'a>(path: &Path, options: &'a PluginOptions) -> Option<&'a str> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_prefix("lib").unwrap_or(file).split('.').next()?.replace('_', "-");
    let shorter = stem.replace("-plugin-", "-");
    [stem, shorter].iter().find_map(|name| Some(options.get_key_value(name)?.0.as_str()))
}

/// The command with which the program starts itself to probe a plugin. The path of the plugin is added as the last argument,
/// and the started program calls [`probe_child_main`](crate::probe_child_main) with it.
#[derive(Clone, Debug)]
pub struct ProbeCommand {
    /// The file to run, usually the program itself.
    pub program: PathBuf,
    /// The arguments before the path.
    pub arguments: Vec<OsString>,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The plugin's description, or the reason to refuse it.
    pub verdict: Result<PluginInfo, Refusal>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Probes several plugins in parallel, at most one per processor.
pub(crate) fn probe_all<T: Sync>(items: &[T], probe: impl Fn(&T) -> ProbeResult + Sync) -> Vec<ProbeResult> {
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(items.len());
    if workers <= 1 {
        return items.iter().map(probe).collect();
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, item)) = take_next(items, &next) {
                    let probed = probe(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, probed));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, probed)| probed).collect()
}

fn take_next<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, items.get(index)?))
}

/// The request from the parent to its child, as JSON on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeRequest {
    /// A secret that each answer has to repeat, so that output of the plugin is not mistaken for an answer.
    pub(crate) token: String,
    /// The options of all plugins, since the name of this one is not known yet.
    pub(crate) options: PluginOptions,
}

/// The result of a probe with the name of the plugin.
pub(crate) struct NamedProbeResult {
    pub(crate) probed: ProbeResult,
    /// The name that the plugin gave, even if the plugin was refused later. A plugin that gave no name has not seen its options.
    pub(crate) name: Option<String>,
    /// The libraries that were in the process beside the plugin.
    pub(crate) libraries: Vec<PathBuf>,
}

/// Probes the plugin at `path`, which gets its own part of `options`. It may take `timeout` to answer the query, and the
/// same time again to initialize its devices; one of the two may take twice as long.
pub fn probe_file(
    command: &ProbeCommand,
    path: &Path,
    options: &BTreeMap<String, BTreeMap<String, String>>,
    timeout: Duration,
) -> ProbeResult {
    run_probe(command, path, options, timeout).probed
}

fn run_probe(
    command: &ProbeCommand,
    path: &Path,
    options: &PluginOptions,
    timeout: Duration,
) -> NamedProbeResult {
    let seen = random_token().and_then(|token| {
        let request = ProbeRequest { token, options: options.clone() };
        watch_child(spawn_child(command, path, &request)?, request.token, timeout)
    });
    match seen {
        Ok(seen) => seen.into_result(path, timeout),
        Err(error) => {
            let refusal = Refusal::new(
                RefusalReason::ProbeFailed,
                path,
                format!("to start `{}` as the child process that probes plugins", command.program.display()),
                error.to_string(),
                "give the plugin a manifest, or fix the cause that keeps the program from starting itself",
            );
            let probed = ProbeResult { verdict: Err(refusal), notes: Vec::new() };
            NamedProbeResult { probed, name: None, libraries: Vec::new() }
        }
    }
}

fn spawn_child(command: &ProbeCommand, path: &Path, request: &ProbeRequest) -> io::Result<Child> {
    // Unlike a pipe, a file in memory accepts any number of bytes before the child reads them.
    let mut input = File::from(rustix::fs::memfd_create("oarlock-probe", MemfdFlags::CLOEXEC)?);
    input.write_all(&serde_json::to_vec(request)?)?;
    input.rewind()?;
    Command::new(&command.program)
        .args(&command.arguments)
        .arg(path)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// A token that cannot be guessed.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    // The kernel returns so few bytes in one call.
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().fold(String::new(), |mut token, byte| {
        _ = write!(token, "{byte:02x}");
        token
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_after_its_plugin() {
        let options: PluginOptions =
            ["acme-npu", "oarlock-openblas"].map(|name| (name.to_owned(), [].into())).into();
        let name = |path: &str| name_by_file(Path::new(path), &options);
        assert_eq!(name("/plugins/libacme_npu.so"), Some("acme-npu"));
        assert_eq!(name("/plugins/acme-npu.so.1"), Some("acme-npu"));
        assert_eq!(name("/plugins/liboarlock_plugin_openblas.so"), Some("oarlock-openblas"));
        assert_eq!(name("/acme-npu/libother.so"), None);
        assert_eq!(name("/"), None);
    }
}
