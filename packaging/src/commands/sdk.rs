//! `oarlock-pack sdk`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_formats::file;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_pack::sdk_wheel::assemble_sdk_wheel;

use super::say::say;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct SdkArguments {
    /// The directory to write to
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    out: PathBuf,
    /// The root of the source tree
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    root: PathBuf,
}

pub(crate) fn run(call: &SdkArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let (name, wheel) = assemble_sdk_wheel(&call.root)?;
    let target = call.out.join(name);
    let bytes = wheel.to_bytes(&CompressionEffort::Most.into())?;
    if !dry_run {
        file::write_file(&target, &bytes)?;
    }
    if json {
        say!("{:#}", serde_json::json!({ "wheels": [{ "file": target, "bytes": bytes.len() }] }));
    } else {
        let would = if dry_run { " would be written" } else { "" };
        say!("{}{would} ({:.2} MB)", target.display(), bytes.len() as f64 / 1e6);
    }
    Ok(())
}
