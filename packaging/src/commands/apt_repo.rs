//! `oarlock-pack apt-repo`.

use std::error::Error;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use oarlock_pack::date;
use oarlock_pack::openpgp::Key;
use oarlock_pack::repository::{Release, Repository};

use super::progress::Progress;
use super::say::say;
use super::{counted, warn};

#[derive(Args, Debug)]
pub(crate) struct Call {
    /// Packages, or directories of which all files `*.deb` are taken
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<PathBuf>,
    /// Where the repository is written, in place of an older one
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/apt")]
    out: PathBuf,
    #[command(flatten)]
    signing: Signing,
    /// What those who use it call it
    #[arg(long, value_name = "NAME", default_value = "stable")]
    suite: String,
    /// What it is called for as long as it exists, where that is not the suite
    #[arg(long, value_name = "NAME")]
    codename: Option<String>,
    /// Who makes it
    #[arg(long, value_name = "NAME", default_value = "Oarlock")]
    origin: String,
    /// For how many days apt takes it for the newest, from `SOURCE_DATE_EPOCH` or now on
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_for: u32,
    /// The address at which it will be, for its `oarlock.sources`
    #[arg(long, value_name = "URL", default_value = "https://oarlock.example/apt")]
    host: String,
}

/// Who vouches for it.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Signing {
    /// A secret key that signs it, as `apt-key new` makes it; with several, all of them do, so that one can take the place of another
    #[arg(long = "key", value_name = "FILE")]
    keys: Vec<PathBuf>,
    /// Sign nothing: apt refuses the repository unless it is told to trust whoever answers
    #[arg(long)]
    unsigned: bool,
}

pub(crate) fn run(call: &Call, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let keys = call.signing.keys.iter().map(|file| key(file)).collect::<Result<Vec<_>, _>>()?;
    let made = date::of_what_is_made()?;
    let release = Release {
        suite: call.suite.clone(),
        codename: call.codename.as_ref().unwrap_or(&call.suite).clone(),
        origin: call.origin.clone(),
        host: call.host.trim_end_matches('/').to_owned(),
        made,
        ends: made.saturating_add(u64::from(call.valid_for) * date::DAY),
    };
    release.check(&keys, date::now())?;
    let mut files = Vec::new();
    for place in &call.packages {
        if place.is_dir() {
            files.extend(Repository::files(place)?);
        } else {
            files.push(place.clone());
        }
    }
    let progress = Progress::new();
    let repository = Repository::of_files(&files, |done, all| progress.count(done, all, "reading packages"))?;
    drop(progress);
    if dry_run {
        repository.check_place(&call.out, &release)?;
    } else {
        repository.write(&call.out, &release, &keys)?;
    }
    let signed_by: Vec<String> = keys.iter().map(Key::fingerprint_text).collect();
    if json {
        let said = serde_json::json!({
            "repository": call.out,
            "packages": repository.count(),
            "suite": release.suite,
            "signed_by": signed_by,
            "valid_until": date::text(release.ends),
        });
        say!("{said:#}");
    } else {
        let verb = if dry_run { "would have" } else { "has" };
        let packages = counted(repository.count(), "package");
        let signed =
            if keys.is_empty() { "by nobody".to_owned() } else { format!("by {}", signed_by.join(", ")) };
        say!("{} {verb} {packages}, signed {signed}", call.out.display());
        say!("apt takes it until {}", date::text(release.ends));
    }
    Ok(())
}

/// A secret key in a file.
pub(super) fn key(file: &Path) -> Result<Key, Box<dyn Error>> {
    let of_file = |error: &dyn Error| format!("`{}`: {error}", file.display());
    let bytes = std::fs::read(file).map_err(|error| of_file(&error))?;
    let key = Key::read(&String::from_utf8_lossy(&bytes)).map_err(|error| of_file(&error))?;
    let about = std::fs::metadata(file).map_err(|error| of_file(&error))?;
    let mode = about.permissions().mode() & 0o777;
    if about.is_file() && mode & 0o077 != 0 {
        warn(&format!(
            "`{0}`: others may read this secret key (mode {mode:03o}); `chmod 600 {0}`",
            file.display()
        ));
    }
    Ok(key)
}
