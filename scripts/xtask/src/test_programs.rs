//! Test programs: found in cargo's build output, and run in the directories where cargo would run them.
//!
//! Cargo always compiles for the whole workspace, even to run only some tests. For a selection of crates it would unify features
//! of their dependencies differently, and so compile everything again for each selection.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::workspace::{CargoWorkspace, WorkspaceMember};

/// The number of test programs at a time, given enough cores. Each starts a thread per core, but many wait long for a single
/// test, for a kernel compiler or for a server.
const LANES: usize = 2;

/// A kind of test program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TestKind<'p> {
    /// The unit tests of a library or a program.
    Unit,
    /// An integration test by name.
    Integration(&'p str),
}

/// A compiled test program.
pub(crate) struct TestProgram {
    name: String,
    pub(crate) member: String,
    command: OsString,
    arguments: Vec<OsString>,
    /// The working directory.
    directory: PathBuf,
}

/// Accumulated results of test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestResults {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// The programs that failed, each with its exit status.
    pub(crate) bad_programs: Vec<String>,
    /// The last lines that each of them printed: the log of a whole run may be too long for whoever reads it.
    pub(crate) last_lines: String,
}

/// Has cargo compile tests, and returns the selected programs.
pub(crate) fn compile(
    cargo: &OsStr,
    workspace: &CargoWorkspace,
    arguments: &[String],
    is_chosen: impl Fn(&WorkspaceMember, TestKind<'_>) -> bool,
) -> Result<Vec<TestProgram>> {
    let output = Command::new(cargo)
        .args(["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .current_dir(&workspace.root)
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "the tests do not compile");
    find(workspace, is_chosen, &String::from_utf8_lossy(&output.stdout))
}

/// The doc tests of all crates, which cargo compiles and runs itself.
pub(crate) fn documentation(cargo: &OsStr, workspace: &CargoWorkspace) -> TestProgram {
    TestProgram {
        name: "examples in documentation".to_owned(),
        member: String::new(),
        command: cargo.to_owned(),
        arguments: ["test", "--workspace", "--locked", "--no-fail-fast", "--doc"].map(OsString::from).into(),
        directory: workspace.root.clone(),
    }
}

/// The selected programs among cargo's messages, one per line.
fn find(
    workspace: &CargoWorkspace,
    is_chosen: impl Fn(&WorkspaceMember, TestKind<'_>) -> bool,
    messages: &str,
) -> Result<Vec<TestProgram>> {
    let mut found = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: CompilerMessage = serde_json::from_str(line).context("reading what cargo compiled")?;
        let Some((target, file)) = message.target.zip(message.executable) else { continue };
        if !message.profile.is_some_and(|profile| profile.test) {
            continue;
        }
        let directory = message.manifest_path.as_deref().and_then(Path::parent).unwrap_or(&workspace.root);
        let from_root = directory.strip_prefix(&workspace.root).unwrap_or(directory);
        let Some(member) = workspace.members.values().find(|member| member.directory == from_root) else {
            continue;
        };
        let kind = match target.kind.iter().any(|kind| kind == "test") {
            true => TestKind::Integration(&target.name),
            false => TestKind::Unit,
        };
        if is_chosen(member, kind) {
            found.push(TestProgram {
                name: match kind {
                    TestKind::Unit => format!("{}, unit tests", member.name),
                    TestKind::Integration(test) => format!("{}, `{test}`", member.name),
                },
                member: member.name.clone(),
                command: file.into(),
                arguments: vec!["--quiet".into()],
                directory: directory.to_owned(),
            });
        }
    }
    Ok(found)
}

/// Runs programs in order, two at a time, and reports each result. The output is only shown for a failure.
pub(crate) fn run(programs: &[TestProgram]) -> Result<TestResults> {
    let libraries = libraries()?;
    let lanes = thread::available_parallelism().map_or(1, usize::from).min(LANES);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(TestResults::default());
    thread::scope(|scope| -> Result<()> {
        let lane = || -> Result<()> {
            while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let begin = Instant::now();
                let output = program.run(&libraries)?;
                let mut results = results.lock().expect("no lane panics while it counts");
                results.add(program, &output, begin.elapsed().as_secs_f64());
            }
            Ok(())
        };
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().expect("no lane panics"))
    })?;
    Ok(results.into_inner().expect("no lane panics"))
}

impl TestProgram {
    fn run(&self, libraries: &OsStr) -> Result<Output> {
        Command::new(&self.command)
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            .env("LD_LIBRARY_PATH", libraries)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting `{}`", self.command.display()))
    }
}

impl TestResults {
    /// Adds the counts from a program's output, and reports its result.
    fn add(&mut self, TestProgram { name, .. }: &TestProgram, output: &Output, seconds: f64) {
        let printed = String::from_utf8_lossy(&output.stdout);
        let before = self.passed;
        self.count(&printed);
        let passed = self.passed - before;
        if output.status.success() {
            println!("    {name}: {passed} passed, {seconds:.1} s");
        } else {
            println!("    {name}: FAILED, {passed} passed, {seconds:.1} s");
            let printed = format!("{printed}{}", String::from_utf8_lossy(&output.stderr));
            println!("{printed}");
            self.last_lines += &keep_last_lines(&printed);
            self.bad_programs.push(format!("{name} ({})", output.status));
        }
    }

    /// Counts tests by the summary lines of test programs:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    fn count(&mut self, printed: &str) {
        for line in printed.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            let counts = line.split_once(". ").map_or("", |(_, counts)| counts);
            for (count, what) in counts.split("; ").filter_map(|it| it.split_once(' ')) {
                let total = match what {
                    "passed" => &mut self.passed,
                    "failed" => &mut self.failed,
                    "ignored" => &mut self.skipped,
                    _ => continue,
                };
                *total += count.parse::<u64>().unwrap_or(0);
            }
        }
    }
}

fn keep_last_lines(printed: &str) -> String {
    const KEPT: usize = 40;
    let lines: Vec<&str> = printed.lines().collect();
    let kept = lines.get(lines.len().saturating_sub(KEPT)..).unwrap_or_default();
    kept.iter().flat_map(|line| ["    ", *line, "\n"]).collect()
}

/// The directory of the compiler's libraries, which test programs of procedural macros need in their library path.
fn libraries() -> Result<OsString> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "sysroot"]).output().context("asking rustc for its sysroot")?;
    let sysroot = String::from_utf8(output.stdout).context("the sysroot of rustc")?;
    let own = Path::new(sysroot.trim_end()).join("lib");
    let before = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(std::env::split_paths(&before).filter(|path| path.is_absolute()));
    std::env::join_paths(all).context("the sysroot of rustc")
}

/// The fields of a cargo message that are needed here.
#[derive(Deserialize)]
struct CompilerMessage {
    manifest_path: Option<PathBuf>,
    target: Option<CompiledTarget>,
    profile: Option<CompiledProfile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CompiledTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct CompiledProfile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_compiled_only_programs_that_were_chosen_are_found() {
        let member = |name: &str| WorkspaceMember {
            name: name.into(),
            directory: name.into(),
            ..WorkspaceMember::default()
        };
        let members = ["core", "engine", "pack"].map(|name| (name.to_owned(), member(name))).into();
        let workspace = CargoWorkspace { root: "/tree".into(), members };
        let line = |directory: &str, name: &str, kind: &str, test: bool| {
            format!(
                r#"{{"manifest_path":"/tree/{directory}/Cargo.toml","target":{{"name":"{name}","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"/target/{name}"}}"#
            )
        };
        let lines = [
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            line("engine", "engine", "lib", true),
            line("engine", "slow", "test", true),
            line("core", "core", "lib", true),
            line("core", "core-tool", "bin", false),
            line("core", "slow", "test", true),
            line("pack", "pack", "lib", true),
        ];
        let is_chosen = |member: &WorkspaceMember, kind: TestKind<'_>| match kind {
            TestKind::Unit => member.name != "pack",
            TestKind::Integration(test) => member.name == "core" && test == "slow",
        };
        let found = find(&workspace, is_chosen, &lines.join("\n")).expect("programs");
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["engine, unit tests", "core, unit tests", "core, `slow`"]);
        assert_eq!((found[1].member.as_str(), &*found[1].directory), ("core", Path::new("/tree/core")));
    }

    #[test]
    fn tests_are_counted_over_all_lines() {
        let mut results = TestResults::default();
        results.count(
            "running 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test result: FAILED. 2 passed; 1 failed; 0 ignored\n",
        );
        assert_eq!(results, TestResults { passed: 5, failed: 1, skipped: 1, ..TestResults::default() });
    }

    #[test]
    fn programs_run_at_a_time_and_those_that_fail_are_named_with_how_they_ended() {
        let program = |name: &str, script: &str| TestProgram {
            name: name.to_owned(),
            member: String::new(),
            command: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: "/".into(),
        };
        let closing = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let programs = [
            program("well", closing),
            program("bad", &format!("{closing}; seq 50 >&2; exit 3")),
            program("again", closing),
        ];
        let results = run(&programs).expect("results");
        assert_eq!((results.passed, results.failed), (3, 0));
        assert_eq!(results.bad_programs, ["bad (exit status: 3)"]);
        assert!(results.last_lines.starts_with("    11\n") && results.last_lines.ends_with("    50\n"));
    }
}
