//! Compatibility in both directions: plugins that were built with each minor version of the contract work on today's host, and
//! today's plugins work on a host of each older minor version. `tests/frozen/README.md` says what is there.
//!
//! This program is also the probe: the host starts it with `__probe` and a file.

mod newer_plugins;
mod older_plugins;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use oarlock_host::{Digest, probe_child_main};
use oarlock_sdk::abi;

const PROBE_COMMAND: &str = "__probe";

/// What is frozen of one minor version.
#[derive(Clone)]
struct FrozenMinor {
    minor: u32,
    directory: PathBuf,
}

impl FrozenMinor {
    /// The plugins for this machine; none if it is not one of those they were built for.
    fn plugin_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.directory.join(std::env::consts::ARCH)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
        files.sort();
        files
    }

    /// The plugin that was built from this source in this language.
    fn plugin_file(&self, kind: &str, language: &str) -> PathBuf {
        self.directory.join(std::env::consts::ARCH).join(format!("{kind}-{language}.so"))
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == PROBE_COMMAND) {
        return probe_child_main(Path::new(&arguments.next().unwrap_or_default()), &[]);
    }
    let minors = frozen_minors();
    let mut trials = vec![Trial::test("every minor version is frozen", {
        let minors = minors.clone();
        move || check_all_are_frozen(&minors)
    })];
    for minor in &minors {
        let of = minor.clone();
        let name = format!("what is frozen of 1.{} is as it was", minor.minor);
        trials.push(Trial::test(name, move || check_sums(&of)));
        let of = minor.clone();
        let name = format!("the contract still has every fact of 1.{}", minor.minor);
        trials.push(Trial::test(name, move || check_lock(&of)));
    }
    // A host refuses plugins without its sanitizer, and there is no frozen plugin with one.
    let can_load = abi::SANITIZER == abi::Sanitizer::NONE;
    let ignored = !can_load || minors.iter().all(|minor| minor.plugin_files().is_empty());
    if ignored {
        let machine = std::env::consts::ARCH;
        eprintln!("skipped: there are no frozen plugins for {machine} with this sanitizer");
    }
    for trial in older_plugins::list_trials(&minors).into_iter().chain(newer_plugins::list_trials(&minors)) {
        trials.push(trial.with_ignored_flag(ignored));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn frozen_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("frozen")
}

/// The frozen versions, oldest first.
fn frozen_minors() -> Vec<FrozenMinor> {
    let parse = |directory: PathBuf| {
        let minor = directory.file_name()?.to_str()?.strip_prefix("1.")?.parse().ok()?;
        Some(FrozenMinor { minor, directory })
    };
    let entries = fs::read_dir(frozen_directory()).expect("the frozen plugins").flatten();
    let mut minors: Vec<_> = entries.filter_map(|entry| parse(entry.path())).collect();
    minors.sort_by_key(|frozen| frozen.minor);
    minors
}

/// The version that is being written is frozen once it is released; all before it are.
fn check_all_are_frozen(minors: &[FrozenMinor]) -> Result<(), Failed> {
    let numbers: Vec<u32> = minors.iter().map(|frozen| frozen.minor).collect();
    let expected: Vec<u32> = (0..abi::CONTRACT_MINOR).collect();
    if numbers.starts_with(&expected) && abi::CONTRACT_MAJOR == 1 {
        return Ok(());
    }
    let advice = "freeze the last minor version with `scripts/freeze-plugins MINOR --write`";
    Err(format!("expected every minor version before 1.{}, found {numbers:?}; {advice}", abi::CONTRACT_MINOR)
        .into())
}

/// Compares the frozen files with the hashes that were taken then. Nobody may change one, not even to improve it.
fn check_sums(frozen: &FrozenMinor) -> Result<(), Failed> {
    let sums = fs::read_to_string(frozen.directory.join("SHA256SUMS"))?;
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").ok_or("expected a hash, two spaces and a name")?;
        let found = Digest::hash_bytes(&fs::read(frozen.directory.join(name))?);
        if found.to_string() != sum {
            return Err(format!("expected `{name}` with the hash {sum}, found {found}; restore it").into());
        }
    }
    let listed: BTreeSet<&str> = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
    let expected = ["abi.lock", "include/oarlock/contract.h", "src/kernels.c", "src/device.rs"];
    match expected.into_iter().find(|name| !listed.contains(name)) {
        None => Ok(()),
        Some(missing) => Err(format!("expected a hash of `{missing}`, found none").into()),
    }
}

fn lock_facts(text: &str) -> BTreeSet<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Lines may be missing only if they are in the closed list of those that were withdrawn.
fn check_lock(frozen: &FrozenMinor) -> Result<(), Failed> {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device-sdk/contract");
    let [then, today, withdrawn] =
        [frozen.directory.join("abi.lock"), contract.join("abi.lock"), contract.join("abi.withdrawn")]
            .map(fs::read_to_string);
    let (then, today, withdrawn) = (then?, today?, withdrawn?);
    let (today, withdrawn) = (lock_facts(&today), lock_facts(&withdrawn));
    let lost: Vec<&str> = lock_facts(&then)
        .into_iter()
        .filter(|fact| !today.contains(fact) && !withdrawn.contains(fact))
        .collect();
    if lost.is_empty() {
        Ok(())
    } else {
        Err(format!("expected these facts, found none of them: {lost:#?}").into())
    }
}
