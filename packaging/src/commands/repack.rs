//! `oarlock-pack repack`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_formats::file;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;

use super::say::say;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct RepackArguments {
    /// The wheels
    #[arg(required = true, value_name = "WHEEL")]
    wheels: Vec<PathBuf>,
    /// The directory to write to; names stay the same
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    out: PathBuf,
    /// Pack quickly; the files are a few percent larger
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(call: &RepackArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let effort = if call.quick { CompressionEffort::Usual } else { CompressionEffort::Most };
    let mut written = Vec::new();
    for source in &call.wheels {
        let name =
            source.file_name().ok_or_else(|| format!("expected a file, found `{}`", source.display()))?;
        let target = call.out.join(name);
        let wheel = Wheel::read_file(source)?;
        if dry_run {
            if !json {
                say!("{} would be written", target.display());
            }
            continue;
        }
        if !call.quick {
            eprintln!("packing {}, which takes some minutes", target.display());
        }
        let bytes = wheel.to_bytes(&effort.into())?;
        file::write_file(&target, &bytes)?;
        if !json {
            say!("{} ({:.2} MB)", target.display(), bytes.len() as f64 / 1e6);
        }
        written.push(serde_json::json!({ "file": target, "bytes": bytes.len() }));
    }
    if json {
        say!("{:#}", serde_json::json!({ "wheels": written }));
    }
    Ok(())
}
