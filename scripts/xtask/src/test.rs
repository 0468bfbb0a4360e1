//! Runs all tests of the workspace, and ends with a one-line summary.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::test_programs::{self, TestResults};
use crate::workspace::CargoWorkspace;
use crate::{cargo, root};

/// The arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Also write the final summary line to this file
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// Runs every test program even after a failure.
pub(crate) fn run(arguments: &TestArguments) -> Result<()> {
    let (cargo, root) = (cargo(), root());
    let workspace = CargoWorkspace::of_cargo(&cargo, &root)?;
    // Cargo compiles doc tests when it runs them, while other programs run in parallel.
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

/// The number of passed tests, and the programs that failed with their last lines.
fn summarize(TestResults { passed, failed, skipped, bad_programs, last_lines }: &TestResults) -> String {
    let mut summary = format!("{passed} passed, {failed} failed, {skipped} skipped\n");
    if !bad_programs.is_empty() {
        summary += &format!("{last_lines}did not end well: {}\n", bad_programs.join(", "));
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
        results.last_lines = "    1 is not 2\n".to_owned();
        results.failed = 1;
        assert_eq!(
            summarize(&results),
            "7 passed, 1 failed, 2 skipped\n    1 is not 2\ndid not end well: oarlock-core, unit tests (signal: 11)\n"
        );
    }
}
