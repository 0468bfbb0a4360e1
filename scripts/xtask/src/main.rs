//! Oarlock's developer tooling: `cargo xtask --help`.

mod abi_diff;
mod check;
mod cycles;
mod generate;
mod naming;
mod plugin_report;
mod test;
mod test_programs;
mod workspace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Oarlock's developer tooling
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say in words what changed in the plugin contract, and whom it breaks; fails if it breaks somebody
    AbiDiff(abi_diff::AbiDiffArguments),
    /// Check formatting, clippy and tests of crates and of the crates that depend on them; `scripts/check` calls it
    Check(check::CheckArguments),
    /// List the modules of each crate that use each other in a cycle
    Cycles(cycles::CyclesArguments),
    /// Write everything that follows from the plugin contract: headers, bindings, glue, reference page, `abi.lock`; and
    /// the types of the messages in model files
    Generate {
        /// Write nothing; fail if a file is stale or `abi.lock` would lose a line
        #[arg(long)]
        check: bool,
    },
    /// Measure how easily names can be found: count one-word types and functions, and names declared several times
    Naming(naming::NamingArguments),
    /// Say which published plugins the host loads: those in wheels, Debian packages, files and directories
    PluginReport(plugin_report::PluginReportArguments),
    /// Run all tests of the workspace, two programs at a time; `scripts/test` calls it
    Test(test::TestArguments),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::AbiDiff(arguments) => abi_diff::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Cycles(arguments) => cycles::run(&arguments),
        Command::Generate { check } => generate::run(check),
        Command::Naming(arguments) => naming::run(&arguments),
        Command::PluginReport(arguments) => plugin_report::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
    }
}

/// The root of the source tree.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path of the cargo that started this program.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
