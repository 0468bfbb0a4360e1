//! The arguments of `oarlock plugin check`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Debug)]
pub(crate) struct PluginCheckChoice {
    /// The shared object
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Skip the conformance suite
    #[arg(long, conflicts_with_all = ["html", "junit", "report", "record", "profile"])]
    pub(crate) quick: bool,
    /// Check only this profile: `core`, `async`, `kernels` or `layer`
    #[arg(long, value_name = "NAME", value_parser = ["core", "async", "kernels", "layer"], conflicts_with = "record")]
    pub(crate) profile: Option<String>,
    /// Write the report of the suite as an HTML page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Write the report as a JUnit file, for systems that run tests
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Write the report as JSON, whose hash `--record` puts into the manifest
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Write the run into the manifest beside the plugin, if it passes
    #[arg(long)]
    pub(crate) record: bool,
}
