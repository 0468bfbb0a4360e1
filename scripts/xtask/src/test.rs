//! Runs all tests of the workspace, and closes with one line for all of them.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::test_programs::{self, TestResults};
use crate::workspace::Workspace;
use crate::{cargo, root};

/// What `cargo xtask test` was told.
#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Write the line that closes the run into this file too
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// Runs every program, also after one that failed.
pub(crate) fn run(arguments: &TestArguments) -> Result<()> {
    let (cargo, root) = (cargo(), root());
    let workspace = Workspace::of_cargo(&cargo, &root)?;
    // Examples are compiled when they are run, which takes longest.
    let mut programs = vec![test_programs::documentation(&cargo, &workspace)];
    programs.extend(test_programs::compile(&cargo, &workspace, &[], |_, _| true)?);
    let results = test_programs::run(&programs)?;
    let summary = summarize(&results);
    print!("\n{summary}");
    if let Some(file) = &arguments.summary {
        std::fs::write(file, &summary).with_context(|| format!("writing `{}`", file.display()))?;
    }
    if !results.bad_programs.is_empty() {
        bail!("tests failed; see above");
    }
    Ok(())
}

/// How many tests passed in all, and the programs that did not end well.
fn summarize(TestResults { passed, failed, skipped, bad_programs }: &TestResults) -> String {
    let mut summary = format!("{passed} passed, {failed} failed, {skipped} skipped\n");
    if !bad_programs.is_empty() {
        summary += &format!("did not end well: {}\n", bad_programs.join(", "));
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_closes_a_run_names_programs_that_failed() {
        let mut results = TestResults { passed: 7, skipped: 2, ..TestResults::default() };
        assert_eq!(summarize(&results), "7 passed, 0 failed, 2 skipped\n");
        results.bad_programs.push("oarlock-core, unit tests (signal: 11)".to_owned());
        results.failed = 1;
        assert_eq!(
            summarize(&results),
            "7 passed, 1 failed, 2 skipped\ndid not end well: oarlock-core, unit tests (signal: 11)\n"
        );
    }
}
