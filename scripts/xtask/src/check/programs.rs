//! Test programs: found among what cargo compiled, and run where cargo would run them.
//!
//! Everything is compiled for the whole workspace, as `scripts/test` does it, and only some of it is run. Were only some crates
//! chosen, cargo would compile what they depend on with other features, which is all of it once more, for each choice of crates.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::selection::{Program, Selection};
use super::workspace::{Member, Workspace};

/// A test program that was compiled.
pub(super) struct Compiled {
    name: String,
    file: PathBuf,
    /// Where it is run.
    directory: PathBuf,
    /// Whether its crate has changed, and not something that the crate depends on.
    is_of_change: bool,
}

/// How many tests passed, and the programs that failed.
#[derive(Default)]
pub(super) struct Results {
    pub(super) passed: u64,
    pub(super) failed: Vec<String>,
}

/// Compiles what was chosen and gives back the programs to run, first those of crates that changed.
pub(super) fn compile(cargo: &OsString, workspace: &Workspace, chosen: &Selection) -> Result<Vec<Compiled>> {
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"]);
    if !chosen.whole.is_empty() {
        command.args(["--lib", "--bins"]);
    }
    for test in chosen.integration_tests(workspace) {
        command.args(["--test", &test]);
    }
    let output =
        command.current_dir(&workspace.root).stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "the tests do not compile");
    let mut programs = programs(workspace, chosen, &String::from_utf8_lossy(&output.stdout))?;
    programs.sort_by_key(|program| !program.is_of_change);
    Ok(programs)
}

/// The programs that were chosen, of what cargo says that it compiled, a line each.
fn programs(workspace: &Workspace, chosen: &Selection, messages: &str) -> Result<Vec<Compiled>> {
    let mut found = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("reading what cargo compiled")?;
        let Some((target, file)) = message.target.zip(message.executable) else { continue };
        if !message.profile.is_some_and(|profile| profile.test) {
            continue;
        }
        let directory = message.manifest_path.as_deref().and_then(Path::parent).unwrap_or(&workspace.root);
        let from_root = directory.strip_prefix(&workspace.root).unwrap_or(directory);
        let Some(member) = workspace.members.values().find(|member| member.directory == from_root) else {
            continue;
        };
        let program = match target.kind.iter().any(|kind| kind == "test") {
            true => Program::Integration(&target.name),
            false => Program::Unit,
        };
        if chosen.has(member, program) {
            found.push(Compiled {
                name: name_of(member, program),
                file,
                directory: directory.to_owned(),
                is_of_change: !chosen.dependants.contains(&member.name),
            });
        }
    }
    Ok(found)
}

fn name_of(member: &Member, program: Program<'_>) -> String {
    match program {
        Program::Unit => format!("{}, unit tests", member.name),
        Program::Integration(test) => format!("{}, `{test}`", member.name),
    }
}

/// Runs the programs one after the other. What one printed is shown where it failed.
pub(super) fn run(programs: &[Compiled]) -> Result<Results> {
    let libraries = libraries()?;
    let mut results = Results::default();
    for Compiled { name, file, directory, .. } in programs {
        print!("    {name}: ");
        std::io::stdout().flush()?;
        let begin = Instant::now();
        let output = Command::new(file)
            .arg("--quiet")
            .current_dir(directory)
            .env("CARGO_MANIFEST_DIR", directory)
            .env("LD_LIBRARY_PATH", &libraries)
            .output()
            .with_context(|| format!("starting `{}`", file.display()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let passed = passed(&printed);
        results.passed += passed;
        let seconds = begin.elapsed().as_secs_f64();
        if output.status.success() {
            println!("{passed} passed, {seconds:.1} s");
        } else {
            println!("failed, {seconds:.1} s");
            println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
            results.failed.push(format!("{name} ({})", output.status));
        }
    }
    Ok(results)
}

/// How many tests passed, by the lines that close what test programs print.
fn passed(printed: &str) -> u64 {
    let lines = printed.lines().filter_map(|line| line.strip_prefix("test result: "));
    let counts = lines.filter_map(|line| line.split(". ").nth(1)?.split(' ').next()?.parse::<u64>().ok());
    counts.sum()
}

/// Where test programs of macros find the compiler's own libraries, as cargo would say it.
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

/// What cargo prints of a thing that it compiled, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn of_what_was_compiled_only_programs_that_were_chosen_are_run() {
        let member = |name: &str, dependencies: &[&str]| Member {
            name: name.into(),
            directory: name.into(),
            dependencies: dependencies.iter().map(|it| (*it).to_owned()).collect(),
            tests: [("slow".to_owned(), "tests/slow.rs".into())].into(),
            ..Member::default()
        };
        let members = [member("core", &[]), member("engine", &["core"]), member("pack", &[])];
        let members = members.map(|member| (member.name.clone(), member)).into();
        let workspace = Workspace { root: "/tree".into(), members };
        let chosen = Selection::of_crates(&workspace, BTreeSet::from(["core".to_owned()]));
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
        let found = programs(&workspace, &chosen, &lines.join("\n")).expect("programs");
        let names: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.is_of_change)).collect();
        assert_eq!(
            names,
            [("engine, unit tests", false), ("core, unit tests", true), ("core, `slow`", true)]
        );
        assert_eq!(found[1].directory, Path::new("/tree/core"));
    }

    #[test]
    fn tests_that_passed_are_counted_over_all_lines() {
        let printed = "running 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 1 ignored\n\
                       test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        assert_eq!(passed(printed), 5);
    }
}
