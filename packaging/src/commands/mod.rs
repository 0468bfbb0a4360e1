//! What the command can be asked, and how it shows the answer.

mod app;
mod apt_key;
mod apt_repo;
mod build;
mod check;
mod completions;
mod deb;
mod engine;
mod help;
mod image;
mod index;
mod inspect;
mod matrix;
mod options;
mod pages;
mod progress;
mod release;
mod repack;
mod say;
mod select;
mod serve;
mod vendor;
mod verify;

use std::error::Error;

use clap::{Args, Parser, Subcommand};

/// Makes what people install of what the workspace builds
///
/// Everything follows from one table, the matrix: which wheels there are, what each is called and what is in it.
#[derive(Debug, Parser)]
#[command(name = "oarlock-pack", version, after_help = help::EXAMPLES, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Print for programs to read
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say what would be done, and write nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show which wheels there are
    #[command(after_help = help::MATRIX)]
    Matrix(matrix::Call),
    /// Write the pages of links to wheels that `pip install --find-links` reads
    #[command(after_help = help::PAGES)]
    Pages(pages::Call),
    /// Build wheels: what they are put together of is compiled once for all of them
    #[command(after_help = help::BUILD)]
    Build(build::Call),
    /// Build packages for Debian, of the same parts as the wheels
    #[command(after_help = help::DEB)]
    Deb(deb::Call),
    /// Write an image and a job for Kubernetes of a program of yours
    #[command(after_help = help::APP)]
    App(app::Call),
    /// Say whether wheels are what the matrix says, and go together
    #[command(after_help = help::CHECK)]
    Check(check::Call),
    /// Say whether each part is the same bytes in all wheels, packages and images that have it, images to run programs have no
    /// compiler, and all of it is within its sizes
    #[command(after_help = help::VERIFY)]
    Verify(verify::Call),
    /// Write images for containers, without an engine, and give them to one if you like
    #[command(after_help = help::IMAGE)]
    Image(image::Call),
    /// Build a release: everything that people install, signed, in one directory
    #[command(after_help = help::RELEASE)]
    Release(release::Call),
    /// Keep beside the sources what building them takes from the network
    #[command(after_help = help::VENDOR)]
    Vendor(vendor::Call),
    /// Write an index of wheels, from which pip and uv install
    #[command(after_help = help::INDEX)]
    Index(index::Call),
    /// Say which instructions lie in a library
    #[command(after_help = help::INSPECT)]
    Inspect(inspect::Call),
    /// Say which rows of the matrix the options of a build stand for, such as `-D WITH_GPU=OFF`
    #[command(after_help = help::OPTIONS)]
    Options(options::Call),
    /// Say what to install on this machine, and why
    #[command(after_help = help::SELECT)]
    Select(select::Call),
    /// Write a repository of Debian packages, from which apt installs
    #[command(after_help = help::APT_REPO)]
    AptRepo(apt_repo::Call),
    /// Make a key that signs repositories
    #[command(after_help = help::APT_KEY)]
    AptKey(apt_key::Call),
    /// Serve an index or a repository over HTTP until it is interrupted
    #[command(after_help = help::SERVE)]
    Serve(serve::Call),
    /// Check wheels and write them anew: the same contents are the same bytes, as small as they get
    #[command(after_help = help::REPACK)]
    Repack(repack::Call),
    /// Print a script that makes a shell complete this command
    #[command(after_help = help::COMPLETIONS)]
    Completions(completions::Call),
}

/// Which matrix is meant.
#[derive(Args, Debug)]
pub(crate) struct MatrixChoice {
    /// The matrix of PaddlePaddle of a version, as it was published: 1.5, 2.2.1 or 2.3.2
    #[arg(long, value_name = "VERSION", conflicts_with = "matrix")]
    era: Option<String>,
    /// A matrix in a file of yours, in place of Oarlock's own
    #[arg(long, value_name = "FILE")]
    matrix: Option<std::path::PathBuf>,
}

impl MatrixChoice {
    fn read(&self) -> Result<oarlock_pack::matrix::Matrix, Box<dyn Error>> {
        use oarlock_pack::matrix::{Matrix, OWN};
        let matrix = match (&self.era, &self.matrix) {
            (Some(era), _) => Matrix::of_era(era),
            (None, Some(file)) => {
                let name = file.display().to_string();
                let text = std::fs::read_to_string(file).map_err(|error| format!("`{name}`: {error}"))?;
                Matrix::read(&name, &text)
            }
            (None, None) => Matrix::read("packaging/matrix.toml", OWN),
        };
        Ok(matrix?)
    }
}

/// Does what is asked.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    match &arguments.command {
        Command::Matrix(call) => matrix::run(call, arguments.json),
        Command::Pages(call) => pages::run(call, arguments.json, arguments.dry_run),
        Command::Build(call) => build::run(call, arguments.json, arguments.dry_run),
        Command::Deb(call) => deb::run(call, arguments.json, arguments.dry_run),
        Command::Verify(call) => verify::run(call, arguments.json),
        Command::App(call) => app::run(call, arguments.json, arguments.dry_run),
        Command::Check(call) => check::run(call, arguments.json),
        Command::Image(call) => image::run(call, arguments.json, arguments.dry_run),
        Command::Index(call) => index::run(call, arguments.json, arguments.dry_run),
        Command::AptRepo(call) => apt_repo::run(call, arguments.json, arguments.dry_run),
        Command::AptKey(call) => apt_key::run(call, arguments.json, arguments.dry_run),
        Command::Inspect(call) => inspect::run(call, arguments.json),
        Command::Options(call) => options::run(call, arguments.json),
        Command::Select(call) => select::run(call, arguments.json),
        Command::Serve(call) => serve::run(call, arguments.json, arguments.dry_run),
        Command::Release(call) => release::run(call, arguments.json, arguments.dry_run),
        Command::Vendor(call) => vendor::run(call, arguments.json, arguments.dry_run),
        Command::Repack(call) => repack::run(call, arguments.json, arguments.dry_run),
        Command::Completions(call) => completions::run(call),
    }
}

/// A number of things, such as `1 wheel` or `2 wheels`.
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Says what went wrong.
pub(crate) fn tell(error: &dyn Error, json: bool) {
    if json {
        say::say!("{}", serde_json::json!({ "error": { "message": error.to_string() } }));
    } else {
        anstream::eprintln!("{ERROR}error:{ERROR:#} {error}");
    }
}

/// Says what does not stop the command and should be mended.
fn warn(words: &str) {
    anstream::eprintln!("{WARNING}warning:{WARNING:#} {words}");
}

const WARNING: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();

const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
