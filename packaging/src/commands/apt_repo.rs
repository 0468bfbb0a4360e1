//! `oarlock-pack apt-repo`.

use std::error::Error;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use oarlock_formats::date;
use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_pack::apt_repository::{AptRepository, SuiteRelease};

use super::progress::ProgressReporter;
use super::say::say;
use super::{count_label, print_warning};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct AptRepoArguments {
    /// Packages, or directories of `.deb` files
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<PathBuf>,
    /// The directory to write, replacing an older repository
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/apt")]
    out: PathBuf,
    #[command(flatten)]
    signing: SigningArguments,
    /// The suite: the name that users put into their apt sources
    #[arg(long, value_name = "NAME", default_value = "stable")]
    suite: String,
    /// The codename, if it differs from the suite
    #[arg(long, value_name = "NAME")]
    codename: Option<String>,
    /// The origin
    #[arg(long, value_name = "NAME", default_value = "Oarlock")]
    origin: String,
    /// The number of days until the repository expires, from `SOURCE_DATE_EPOCH` or now
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_for: u32,
    /// The address of the published repository, for its `oarlock.sources`
    #[arg(long, value_name = "URL", default_value = "https://oarlock.example/apt")]
    host: String,
}

/// The keys to sign with, or the choice not to sign.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct SigningArguments {
    /// A secret key from `apt-key new` to sign with; during a key rotation, pass the old and the new one
    #[arg(long = "key", value_name = "FILE")]
    keys: Vec<PathBuf>,
    /// Do not sign: apt then refuses the repository unless it is configured to trust it
    #[arg(long)]
    unsigned: bool,
}

pub(crate) fn run(call: &AptRepoArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let keys = call.signing.keys.iter().map(|file| read_secret_key(file)).collect::<Result<Vec<_>, _>>()?;
    let made = date::build_time()?;
    let release = SuiteRelease {
        suite: call.suite.clone(),
        codename: call.codename.as_ref().unwrap_or(&call.suite).clone(),
        origin: call.origin.clone(),
        host: call.host.trim_end_matches('/').to_owned(),
        made,
        ends: made.saturating_add(u64::from(call.valid_for) * date::SECONDS_PER_DAY),
    };
    release.check_usable(&keys, date::seconds_now())?;
    let mut files = Vec::new();
    for place in &call.packages {
        if place.is_dir() {
            files.extend(AptRepository::package_files(place)?);
        } else {
            files.push(place.clone());
        }
    }
    let progress = ProgressReporter::new();
    let repository =
        AptRepository::of_files(&files, |done, all| progress.count_step(done, all, "reading packages"))?;
    drop(progress);
    if dry_run {
        repository.check_target(&call.out, &release)?;
    } else {
        repository.write_repository(&call.out, &release, &keys)?;
    }
    let signed_by: Vec<String> = keys.iter().map(OpenPgpKey::fingerprint_hex).collect();
    if json {
        let said = serde_json::json!({
            "repository": call.out,
            "packages": repository.package_count(),
            "suite": release.suite,
            "signed_by": signed_by,
            "valid_until": date::format_rfc2822(release.ends),
        });
        say!("{said:#}");
    } else {
        let verb = if dry_run { "would have" } else { "has" };
        let packages = count_label(repository.package_count(), "package");
        let signed =
            if keys.is_empty() { "by nobody".to_owned() } else { format!("by {}", signed_by.join(", ")) };
        say!("{} {verb} {packages}, signed {signed}", call.out.display());
        say!("valid until {}", date::format_rfc2822(release.ends));
    }
    Ok(())
}

pub(super) fn read_secret_key(file: &Path) -> Result<OpenPgpKey, Box<dyn Error>> {
    let of_file = |error: &dyn Error| format!("`{}`: {error}", file.display());
    let bytes = std::fs::read(file).map_err(|error| of_file(&error))?;
    let key = OpenPgpKey::from_armor(&String::from_utf8_lossy(&bytes)).map_err(|error| of_file(&error))?;
    let about = std::fs::metadata(file).map_err(|error| of_file(&error))?;
    let mode = about.permissions().mode() & 0o777;
    if about.is_file() && mode & 0o077 != 0 {
        print_warning(&format!(
            "`{0}`: others may read this secret key (mode {mode:03o}); `chmod 600 {0}`",
            file.display()
        ));
    }
    Ok(key)
}
