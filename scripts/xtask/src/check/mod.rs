//! Checks a change in about a minute: formatting, clippy, all tests of the changed crates, and the quick tests of crates that
//! depend on them.

mod changes;
mod selection;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use self::selection::TestSelection;
use crate::test_programs::{self, TestResults};
use crate::workspace::CargoWorkspace;
use crate::{cargo, root};

/// The arguments of `scripts/check`.
#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    /// Run all tests of the dependent crates, not only the quick ones
    #[arg(long)]
    all: bool,
    /// Select the crates that changed since this commit
    #[arg(long, value_name = "REVISION", conflicts_with = "crates")]
    since: Option<String>,
    /// The crates, by package, directory or short name; by default, the changed ones
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

/// A finished step.
struct CheckStep {
    name: &'static str,
    took: Duration,
    /// The error, if the step failed.
    failure: Option<String>,
}

/// Runs all steps even after a failure, and prints a summary.
pub(crate) fn run(arguments: &CheckArguments) -> Result<()> {
    let begin = Instant::now();
    let (cargo, root) = (cargo(), root());
    let workspace = CargoWorkspace::of_cargo(&cargo, &root)?;
    let chosen = choose(&workspace, arguments)?;
    say_what_is_checked(&chosen);

    let mut steps = vec![
        step("formatting", || {
            calls(&cargo, &root, &["fmt", "--all", "--check"], "`cargo fmt --all` formats it")
        }),
        step("clippy", || {
            let arguments =
                ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
            calls(&cargo, &root, &arguments, "fix the errors above")
        }),
    ];
    let mut results = TestResults::default();
    if !chosen.is_empty() {
        let mut compiled = Vec::new();
        steps.push(step("compiling tests", || {
            compiled = test_programs::compile(
                &cargo,
                &workspace,
                &chosen.cargo_arguments(&workspace),
                |member, kind| chosen.has(member, kind),
            )?;
            compiled.sort_by_key(|program| chosen.dependents.contains(&program.member));
            Ok(())
        }));
        steps.push(step("tests", || {
            results = test_programs::run(&compiled)?;
            if results.bad_programs.is_empty() {
                Ok(())
            } else {
                bail!("{}", results.bad_programs.join(", "))
            }
        }));
    }
    summarize(&steps, results.passed, begin.elapsed());
    say_what_is_left_out(&workspace, &chosen, arguments);
    if steps.iter().any(|step| step.failure.is_some()) {
        bail!("the change does not pass yet; see above");
    }
    Ok(())
}

/// Selects the tests: those of the named crates, or of the crates with changed files.
fn choose(workspace: &CargoWorkspace, arguments: &CheckArguments) -> Result<TestSelection> {
    let mut chosen = if arguments.crates.is_empty() {
        let base = changes::base(&workspace.root, arguments.since.as_deref())?;
        let files = changes::files(&workspace.root, &base)?;
        println!("==> files that differ from {:.9}: {}", base, files.len());
        TestSelection::of_files(workspace, files, |manifest| workspace.root.join(manifest).is_file())
    } else {
        let names = arguments.crates.iter().map(|name| Ok(workspace.find(name)?.name.clone()));
        TestSelection::of_crates(workspace, names.collect::<Result<BTreeSet<_>>>()?)
    };
    chosen.is_all = arguments.all;
    Ok(chosen)
}

fn say_what_is_checked(chosen: &TestSelection) {
    let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if !chosen.whole.is_empty() {
        println!("==> all tests of {}", list(&chosen.whole));
    }
    if !chosen.single.is_empty() {
        let tests: BTreeSet<String> =
            chosen.single.iter().map(|(name, test)| format!("`{test}` of {name}")).collect();
        println!("==> of tests alone: {}", list(&tests));
    }
    if !chosen.dependents.is_empty() {
        let which = if chosen.is_all { "all" } else { "quick" };
        println!("==> {which} tests of the crates that depend on them: {}", list(&chosen.dependents));
    }
    if chosen.is_empty() {
        println!("==> no crate has changed, so no test is run; `scripts/check CRATE` runs those of one");
    }
}

/// Runs one step and reports its duration.
fn step(name: &'static str, work: impl FnOnce() -> Result<()>) -> CheckStep {
    println!("==> {name}");
    let begin = Instant::now();
    let failure = work().err().map(|error| format!("{error:#}"));
    if let Some(failure) = &failure {
        eprintln!("error: {name}: {failure}");
    }
    CheckStep { name, took: begin.elapsed(), failure }
}

/// Runs cargo in the root of the tree; the error includes advice.
fn calls(cargo: &OsString, root: &Path, arguments: &[&str], advice: &str) -> Result<()> {
    let status = Command::new(cargo).args(arguments).current_dir(root).status().context("starting cargo")?;
    if !status.success() {
        bail!("`cargo {}` failed; {advice}", arguments.join(" "));
    }
    Ok(())
}

/// Prints a table of the steps.
fn summarize(steps: &[CheckStep], passed: u64, took: Duration) {
    println!();
    for CheckStep { name, took, failure } in steps {
        let result = if failure.is_some() { "failed" } else { "well" };
        println!("    {name:<16} {:>4.0} s   {result}", took.as_secs_f64());
    }
    println!("    {:<16} {:>4.0} s   {passed} tests passed", "together", took.as_secs_f64());
}

/// Prints what was not checked, and the command for that.
fn say_what_is_left_out(workspace: &CargoWorkspace, chosen: &TestSelection, arguments: &CheckArguments) {
    let left_out = chosen.left_out(workspace);
    if !left_out.is_empty() {
        let of_each = left_out.iter().map(|(member, tests)| format!("{} of {member}", tests.join(", ")));
        let again = arguments.since.iter().flat_map(|since| ["--since".to_owned(), since.clone()]);
        let again: Vec<String> = again.chain(arguments.crates.iter().cloned()).collect();
        println!(
            "not run: {}; `scripts/check --all{}{}` runs them",
            of_each.collect::<Vec<_>>().join("; "),
            if again.is_empty() { "" } else { " " },
            again.join(" ")
        );
    }
    if !chosen.of_no_crate.is_empty() {
        let files: Vec<_> = chosen.of_no_crate.iter().map(|file| file.display().to_string()).collect();
        println!("of no crate: {}; `.ci/run` has the checks of the whole tree", files.join(", "));
    }
    println!("examples in documentation, Python and other builds are left to `.ci/run`");
}
