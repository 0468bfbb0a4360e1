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
    /// The directory of the wheels, with nothing else in it
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    wheels: PathBuf,
    /// The directory to write, replacing an older index
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/index")]
    out: PathBuf,
    /// A file with a reason for each wheel to yank: `"NAME.whl" = "why"`
    #[arg(long, value_name = "FILE")]
    yanked: Option<PathBuf>,
    /// The address of the published index, for its `install.sh`; without it, users pass `--index`
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// Fail if a wheel is missing that can be built
    #[arg(long)]
    complete: bool,
    /// Experimental: also list single-file wheels as wheel variants, after a draft that may change (PEP 825, format 0.1.1);
    /// installers that do not know it ignore them
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
