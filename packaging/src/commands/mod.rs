//! The subcommands and options, and the output of results.

mod app;
mod apt_key;
mod apt_repo;
mod build;
mod check;
mod completions;
mod container_engine;
mod deb;
mod help;
mod image;
mod image_report;
mod image_selection;
mod index;
mod inspect;
mod matrix;
mod options;
mod pages;
mod progress;
mod release;
mod repack;
mod say;
mod sdk;
mod select;
mod serve;
mod vendor;
mod verify;

use std::error::Error;

use clap::{Args, Parser, Subcommand};

/// Builds what people install: wheels, packages, images and releases
///
/// Everything is derived from one table, the matrix: it lists the wheels, their names and their contents.
#[derive(Debug, Parser)]
#[command(name = "oarlock-pack", version, after_help = help::EXAMPLES, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct PackArguments {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show what the command would do, without writing anything
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    #[command(subcommand)]
    pub(crate) command: PackCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PackCommand {
    /// Show the matrix of wheels
    #[command(after_help = help::MATRIX)]
    Matrix(matrix::MatrixArguments),
    /// Write pages of links for `pip install --find-links`
    #[command(after_help = help::PAGES)]
    Pages(pages::PagesArguments),
    /// Build wheels; each part is compiled once for all of them
    #[command(after_help = help::BUILD)]
    Build(build::BuildArguments),
    /// Build Debian packages from the same parts as the wheels
    #[command(after_help = help::DEB)]
    Deb(deb::DebArguments),
    /// Write a Dockerfile and a Kubernetes Job for your program
    #[command(after_help = help::APP)]
    App(app::AppArguments),
    /// Check that wheels match the matrix and each other
    #[command(after_help = help::CHECK)]
    Check(check::WheelCheckArguments),
    /// Check that each part has the same bytes in all wheels, packages and images, that images contain no compiler, and that
    /// nothing exceeds its size limit
    #[command(after_help = help::VERIFY)]
    Verify(verify::VerifyArguments),
    /// Write container images without Docker or podman, and load them into one on request
    #[command(after_help = help::IMAGE)]
    Image(image::ImageArguments),
    /// Build a release: everything that people install, signed, in one directory
    #[command(after_help = help::RELEASE)]
    Release(release::ReleaseArguments),
    /// Download everything that a build needs, for builds without a network
    #[command(after_help = help::VENDOR)]
    Vendor(vendor::VendorArguments),
    /// Write an index of wheels for pip and uv
    #[command(after_help = help::INDEX)]
    Index(index::IndexArguments),
    /// List the instruction sets that a library uses
    #[command(after_help = help::INSPECT)]
    Inspect(inspect::InspectArguments),
    /// Translate build options of PaddlePaddle, such as `-D WITH_GPU=OFF`, to rows of the matrix
    #[command(after_help = help::OPTIONS)]
    Options(options::OptionsArguments),
    /// Choose what to install on this machine, with reasons
    #[command(after_help = help::SELECT)]
    Select(select::SelectArguments),
    /// Write an apt repository of Debian packages
    #[command(after_help = help::APT_REPO)]
    AptRepo(apt_repo::AptRepoArguments),
    /// Make a key that signs repositories
    #[command(after_help = help::APT_KEY)]
    AptKey(apt_key::AptKeyArguments),
    /// Serve an index or a repository over HTTP until interrupted
    #[command(after_help = help::SERVE)]
    Serve(serve::ServeArguments),
    /// Check wheels and pack them again, reproducibly and as small as possible
    #[command(after_help = help::REPACK)]
    Repack(repack::RepackArguments),
    /// Write the wheel `oarlock-sdk`: what vendors compile plugins against
    #[command(after_help = help::SDK)]
    Sdk(sdk::SdkArguments),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(completions::CompletionsArguments),
}

/// The matrix to use.
#[derive(Args, Debug)]
pub(crate) struct MatrixChoice {
    /// The matrix that PaddlePaddle published for this version: 1.5, 2.2.1 or 2.3.2
    #[arg(long, value_name = "VERSION", conflicts_with = "matrix")]
    era: Option<String>,
    /// A matrix file to use instead of Oarlock's own
    #[arg(long, value_name = "FILE")]
    matrix: Option<std::path::PathBuf>,
}

impl MatrixChoice {
    fn read_matrix(&self) -> Result<oarlock_matrix::WheelMatrix, Box<dyn Error>> {
        use oarlock_matrix::{OWN_MATRIX, WheelMatrix};
        let matrix = match (&self.era, &self.matrix) {
            (Some(era), _) => WheelMatrix::historical(era),
            (None, Some(file)) => {
                let name = file.display().to_string();
                let text = std::fs::read_to_string(file).map_err(|error| format!("`{name}`: {error}"))?;
                WheelMatrix::from_toml(&name, &text)
            }
            (None, None) => WheelMatrix::from_toml("packaging/matrix.toml", OWN_MATRIX),
        };
        Ok(matrix?)
    }
}

/// Runs the requested subcommand.
pub(crate) fn run(arguments: &PackArguments) -> Result<(), Box<dyn Error>> {
    match &arguments.command {
        PackCommand::Matrix(call) => matrix::run(call, arguments.json),
        PackCommand::Pages(call) => pages::run(call, arguments.json, arguments.dry_run),
        PackCommand::Build(call) => build::run(call, arguments.json, arguments.dry_run),
        PackCommand::Deb(call) => deb::run(call, arguments.json, arguments.dry_run),
        PackCommand::Verify(call) => verify::run(call, arguments.json),
        PackCommand::App(call) => app::run(call, arguments.json, arguments.dry_run),
        PackCommand::Check(call) => check::run(call, arguments.json),
        PackCommand::Image(call) => image::run(call, arguments.json, arguments.dry_run),
        PackCommand::Index(call) => index::run(call, arguments.json, arguments.dry_run),
        PackCommand::AptRepo(call) => apt_repo::run(call, arguments.json, arguments.dry_run),
        PackCommand::AptKey(call) => apt_key::run(call, arguments.json, arguments.dry_run),
        PackCommand::Inspect(call) => inspect::run(call, arguments.json),
        PackCommand::Options(call) => options::run(call, arguments.json),
        PackCommand::Select(call) => select::run(call, arguments.json),
        PackCommand::Serve(call) => serve::run(call, arguments.json, arguments.dry_run),
        PackCommand::Release(call) => release::run(call, arguments.json, arguments.dry_run),
        PackCommand::Vendor(call) => vendor::run(call, arguments.json, arguments.dry_run),
        PackCommand::Repack(call) => repack::run(call, arguments.json, arguments.dry_run),
        PackCommand::Sdk(call) => sdk::run(call, arguments.json, arguments.dry_run),
        PackCommand::Completions(call) => completions::run(call),
    }
}

/// A count with its noun, such as `1 wheel` or `2 wheels`.
fn count_label(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Prints an error: as JSON to stdout, or as text to stderr.
pub(crate) fn print_error(error: &dyn Error, json: bool) {
    if json {
        say::say!("{}", serde_json::json!({ "error": { "message": error.to_string() } }));
    } else {
        anstream::eprintln!("{ERROR_STYLE}error:{ERROR_STYLE:#} {error}");
    }
}

/// Prints a problem that does not stop the command but should be fixed.
fn print_warning(words: &str) {
    anstream::eprintln!("{WARNING_STYLE}warning:{WARNING_STYLE:#} {words}");
}

const WARNING_STYLE: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();

const ERROR_STYLE: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
