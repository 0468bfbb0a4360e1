//! Asks a plugin without a manifest who it is and has it ready its devices, in a child process: a plugin that crashes,
//! hangs or ends the process there is refused here.
//!
//! The child runs in a process group of its own, and is killed, with everything it may have started, as soon as it has
//! answered or its time is up. What it answers is not trusted beyond deciding whether to load the plugin: everything is
//! checked again in this process. The child tells who the plugin is before it readies the devices, so that what happens
//! afterwards can be told apart; that the devices cannot be readied is left to the real start to say.

pub(crate) mod cache;
pub(crate) mod child;
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

/// How long a plugin may take to answer, if the configuration does not say.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The options of each plugin, by its name.
pub(crate) type PluginOptions = BTreeMap<String, BTreeMap<String, String>>;

/// The name of a plugin by what its file is called, if it has options: `acme-npu` for `libacme_npu.so` as well as for
/// `libacme_plugin_npu.so`. So a plugin has its options already when it is asked who it is.
fn name_by_file<'a>(path: &Path, options: &'a PluginOptions) -> Option<&'a str> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_prefix("lib").unwrap_or(file).split('.').next()?.replace('_', "-");
    let shorter = stem.replace("-plugin-", "-");
    [stem, shorter].iter().find_map(|name| Some(options.get_key_value(name)?.0.as_str()))
}

/// How the program starts itself to probe a plugin: the path is added as the last argument, and the started program
/// calls [`probe_child_main`](crate::probe_child_main) with it.
#[derive(Clone, Debug)]
pub struct ProbeCommand {
    /// The file to run.
    pub program: PathBuf,
    /// What comes before the path.
    pub arguments: Vec<OsString>,
}

/// What a probe found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Who the plugin says it is, or why it is not used.
    pub verdict: Result<PluginInfo, Refusal>,
    /// What the user may want to know.
    pub notes: Vec<String>,
}

/// Probes several plugins, as many at once as there are processors.
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

/// What the parent tells its child, as JSON on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeRequest {
    /// What each answer has to repeat, so that nothing the plugin writes is taken for one.
    pub(crate) token: String,
    /// The options of all plugins, since the name of this one is not known yet.
    pub(crate) options: PluginOptions,
}

/// What a probe found out, and about which plugin.
pub(crate) struct NamedProbeResult {
    pub(crate) probed: ProbeResult,
    /// The name the plugin gave, even if it was refused later; only then can it have seen its options.
    pub(crate) name: Option<String>,
}

/// Probes the plugin at `path`, which gets those of the `options` that are its own. It may take `timeout` to say who it
/// is, and as much again to ready its devices.
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
                "give the plugin a manifest, or correct what keeps the program from starting itself",
            );
            NamedProbeResult { probed: ProbeResult { verdict: Err(refusal), notes: Vec::new() }, name: None }
        }
    }
}

fn spawn_child(command: &ProbeCommand, path: &Path, request: &ProbeRequest) -> io::Result<Child> {
    // A file in memory, unlike a pipe, takes any number of bytes from a parent that does not wait for the child.
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

/// A word that nobody can guess.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    // So few bytes come whole.
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
