//! `oarlock-pack apt-key`.

use std::error::Error;
use std::path::{Path, PathBuf};

use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_formats::{date, file};

use super::say::say;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(crate) struct AptKeyArguments {
    #[command(subcommand)]
    action: AptKeyCommand,
}

#[derive(Debug, Subcommand)]
enum AptKeyCommand {
    /// Make a key that signs repositories. It has no passphrase: anyone with the file can sign in your name
    New(NewKeyArguments),
}

#[derive(Args, Debug)]
struct NewKeyArguments {
    /// The file for the secret key, readable only by you; an existing file is not overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The owner of the key
    #[arg(long, value_name = "NAME", default_value = "Oarlock archive")]
    owner: String,
}

pub(crate) fn run(call: &AptKeyArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let AptKeyCommand::New(NewKeyArguments { out, owner }) = &call.action;
    let key = OpenPgpKey::new(owner, date::build_time()?)?;
    if out.try_exists()? {
        return Err(
            format!("`{}`: expected no file, for no key is replaced; found one", out.display()).into()
        );
    }
    let side_steps = out.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !side_steps.is_dir() {
        let (side_steps, out) = (side_steps.display(), out.display());
        return Err(
            format!("`{out}`: expected the directory `{side_steps}`, found none; make it first").into()
        );
    }
    if !dry_run {
        file::write_secret(out, key.to_secret_armor().as_bytes())?;
    }
    let fingerprint = key.fingerprint_hex();
    match (json, dry_run) {
        // Another run creates a different key.
        (true, true) => say!("{}", serde_json::json!({ "key": out })),
        (true, false) => say!("{}", serde_json::json!({ "key": out, "fingerprint": fingerprint })),
        (false, true) => say!("would write {}", out.display()),
        (false, false) => say!("{} is the secret key {fingerprint}", out.display()),
    }
    Ok(())
}
