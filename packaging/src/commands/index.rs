//! `oarlock-pack index`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use oarlock_pack::index::WheelIndex;

use super::progress::ProgressReporter;
use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct IndexArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// Where the wheels lie, and nothing else
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    wheels: PathBuf,
    /// Where the index is written, in place of an older one
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/index")]
    out: PathBuf,
    /// A file that gives a reason for each wheel that should not be installed any more: `"NAME.whl" = "why"`
    #[arg(long, value_name = "FILE")]
    yanked: Option<PathBuf>,
    /// The address at which the index will be, which its `install.sh` installs from then; without it, who runs that names one with
    /// `--index`
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// Fail where a wheel of the matrix is missing that can be built
    #[arg(long)]
    complete: bool,
    /// Experimental: also list what lies on pages of its own as wheel variants, after a draft (PEP 825, format 0.1.1) that may
    /// change; installers that do not know it pass over them
    #[arg(long)]
    variants: bool,
}

pub(crate) fn run(call: &IndexArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read_matrix()?;
    let yanked: BTreeMap<String, String> = match &call.yanked {
        Some(file) => {
            let of_file = |error: &dyn Error| format!("`{}`: {error}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| of_file(&error))?;
            toml::from_str(&text).map_err(|error| of_file(&error))?
        }
        None => BTreeMap::new(),
    };
    let progress = ProgressReporter::new();
    let index = WheelIndex::of_directory(&call.wheels, &matrix, &yanked, |done, all| {
        progress.count_step(done, all, "reading wheels");
    })?;
    drop(progress);
    let missing = index.missing_wheels(&matrix);
    if call.complete && !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let directory = call.wheels.display();
        return Err(format!(
            "`{directory}`: expected every wheel of the matrix, found none of {}",
            missing.join(", ")
        )
        .into());
    }
    let index = if call.variants { index.with_variants(&matrix)? } else { index };
    let index = match &call.host {
        Some(host) => index.with_address(host)?,
        None => index,
    };
    if dry_run {
        WheelIndex::check_target(&call.out)?;
    } else {
        index.write_index(&call.out)?;
    }
    if json {
        say!("{:#}", serde_json::json!({ "index": call.out, "wheels": index.wheel_count() }));
    } else {
        let verb = if dry_run { "would list" } else { "lists" };
        say!("{} {verb} {}", call.out.display(), count_label(index.wheel_count(), "wheel"));
    }
    Ok(())
}
