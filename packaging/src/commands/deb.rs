//! `oarlock-pack deb`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_matrix::CpuArchitecture;
use oarlock_pack::build::{PackagePlan, WorkspaceBuilder};
use oarlock_pack::packages::{OWN_PACKAGES, PackageCatalog};

use super::progress::ProgressReporter;
use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct DebArguments {
    /// The packages, such as `liboarlock1`; by default all
    #[arg(value_name = "PACKAGE")]
    names: Vec<String>,
    #[command(flatten)]
    choice: MatrixChoice,
    /// The architecture, by Debian's name: amd64 or arm64
    #[arg(long, value_name = "NAME", default_value = "amd64")]
    architecture: CpuArchitecture,
    /// The package revision, instead of the one in `packages.toml`
    #[arg(long, value_name = "NUMBER")]
    revision: Option<u32>,
    /// A secret key of the repository, from `apt-key new`, whose public key also becomes a package
    #[arg(long = "key", value_name = "FILE")]
    keys: Vec<PathBuf>,
    /// The directory to write to
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/deb")]
    out: PathBuf,
    /// The command `oarlock`, which queries plugins; by default cargo builds it
    #[arg(long, value_name = "FILE")]
    oarlock: Option<PathBuf>,
}

pub(crate) fn run(call: &DebArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let mut packages = PackageCatalog::from_toml("packaging/packages.toml", OWN_PACKAGES)?;
    packages.revision = call.revision.unwrap_or(packages.revision);
    let matrix = call.choice.read_matrix()?;
    let mut keys = Vec::new();
    for file in &call.keys {
        keys.extend(super::apt_repo::read_secret_key(file)?.to_public_packets());
    }
    let plan = PackagePlan::new(&matrix, &packages, call.architecture, &call.names, keys)?;
    if dry_run {
        let parts: Vec<String> = plan.recipes().map(ToString::to_string).collect();
        let names: Vec<&str> = plan.names().collect();
        if json {
            say!("{:#}", json!({ "compiled": parts, "packages": names }));
        } else {
            parts.iter().for_each(|part| say!("would compile {part}"));
            names.iter().for_each(|name| say!("would write {name}"));
        }
        return Ok(());
    }
    let progress = ProgressReporter::new();
    let builder = WorkspaceBuilder::new(".".as_ref())?.with_command(call.oarlock.clone());
    let written = builder
        .build_packages(&plan, &call.out, &|step| progress.begin_step(step.done, step.all, &step.text));
    drop(progress);
    let written = written?;
    if json {
        let packages: Vec<_> =
            written.iter().map(|(file, bytes)| json!({ "file": file, "bytes": bytes })).collect();
        say!("{:#}", json!({ "packages": packages }));
        return Ok(());
    }
    for (file, bytes) in &written {
        say!("{} ({:.2} MB)", file.display(), *bytes as f64 / 1e6);
    }
    say!("{}", count_label(written.len(), "package"));
    Ok(())
}
