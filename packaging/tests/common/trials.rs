//! Tests that need external programs; without those there is one ignored test that says what is missing.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Runs tests by name, unless something is missing.
pub(crate) fn run_trials(tests: &[(&str, fn())], missing: Option<String>) -> ExitCode {
    let arguments = Arguments::from_args();
    if let Some(missing) = missing {
        eprintln!("Nothing is installed. {missing}.");
        let ignored = Trial::test(missing, || Ok(())).with_ignored_flag(true);
        return libtest_mimic::run(&arguments, vec![ignored]).exit_code();
    }
    let trial = |(name, test): &(&str, fn())| {
        let test = *test;
        Trial::test(*name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, tests.iter().map(trial).collect()).exit_code()
}
