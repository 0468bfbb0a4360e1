//! `oarlock plugin trust`: adds and removes the keys that the user trusts, and takes in revocations.
//!
//! The keys are files in a directory beside the configuration file, so this command edits no file that people edit.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use oarlock_host::{
    HostConfig, HostEnvironment, KEY_EXTENSION, KeyFiles, KeyStatement, PublicKey, REVOCATION_EXTENSION,
    TrustedKey, TrustedKeys,
};
use oarlock_report::file::replace_file;
use serde_json::json;

use super::keys::print_rows;
use super::new_file::PUBLIC_MODE;
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, TrustArguments};
use crate::output::{self, CommandOutput};
use crate::output_file::unwritable_file;
use crate::problem::CommandError;
use crate::render::print_labeled;
use crate::session::{host_environment, unusable_file};

/// Limit on the size of a file with a key or a statement.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// How many digits of a fingerprint name a key in a file name.
const NAME_DIGITS: usize = 16;
/// How many digits of a fingerprint a user has to type.
const LEAST_DIGITS: usize = 8;

pub(crate) fn run_trust(
    global: &GlobalOptions,
    wish: &TrustArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let environment = host_environment(global)?;
    let config = HostConfig::load(&environment)?;
    let keys = TrustedKeys::load_keys(&config.keys, environment.identity)?;
    if wish.list {
        list_keys(global, &keys, output)?;
        return Ok(true);
    }
    let directory = key_directory(wish.system, &environment)?;
    if let Some(key) = &wish.remove {
        let removed = remove_key(key, &directory, &environment)?;
        print_rows(global, &[("removed", removed.display().to_string())], output)?;
        return Ok(true);
    }
    let Some(file) = &wish.file else { return Ok(true) };
    let bytes = read_small_file(file).map_err(|error| unusable_file(file, &error))?;
    let rows = if KeyStatement::is_statement(&bytes) {
        let statement = KeyStatement::parse_bytes(&bytes).map_err(|found| {
            CommandError::new(format!(
                "`{}`: expected a statement about a key, found {found}",
                file.display()
            ))
            .with_hint("get the file again from the owner of the key")
        })?;
        follow_statement(&statement, &bytes, file, &keys, &directory)?
    } else {
        let key = PublicKey::from_pem(&bytes).map_err(|problem| {
            CommandError::new(format!("`{}`: {problem}", file.display()))
                .with_hint("name the public key of a vendor, or a statement about one")
        })?;
        add_key(&key, file, &keys, &directory)?
    };
    print_rows(global, &rows, output)?;
    warn_if_ignored(global, wish.system)?;
    Ok(true)
}

fn key_directory(is_system: bool, environment: &HostEnvironment) -> Result<PathBuf, CommandError> {
    let config = if is_system {
        Some(HostConfig::system_file().to_path_buf())
    } else {
        HostConfig::user_file(environment)?
    };
    let config = config.ok_or_else(|| {
        CommandError::new("expected a home for the keys, found neither `HOME` nor `XDG_CONFIG_HOME`")
            .with_hint("set one of them, or use `--system`")
    })?;
    Ok(KeyFiles::directory_beside(&config))
}

/// Trusts a key.
fn add_key(
    key: &PublicKey,
    file: &Path,
    keys: &TrustedKeys,
    directory: &Path,
) -> Result<Vec<(&'static str, String)>, CommandError> {
    if let Some(revocation) = keys.revocation_of(key.fingerprint()) {
        let problem = format!(
            "`{}`: expected a key that is not revoked, found one that `{}` revokes",
            file.display(),
            revocation.display()
        );
        return Err(CommandError::new(problem).with_hint("ask the vendor for its new key"));
    }
    let fingerprint = key.fingerprint().to_string();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let path = directory.join(format!("{stem}-{}.{KEY_EXTENSION}", &fingerprint[..NAME_DIGITS]));
    write_key_file(&path, key.to_pem().as_bytes())?;
    Ok(vec![("trusted", fingerprint), ("file", path.display().to_string())])
}

/// Does what a valid statement asks for.
fn follow_statement(
    statement: &KeyStatement,
    bytes: &[u8],
    file: &Path,
    keys: &TrustedKeys,
    directory: &Path,
) -> Result<Vec<(&'static str, String)>, CommandError> {
    match statement {
        KeyStatement::Revocation { key } => {
            let fingerprint = key.fingerprint().to_string();
            let path = directory.join(format!("{}.{REVOCATION_EXTENSION}", &fingerprint[..NAME_DIGITS]));
            write_key_file(&path, bytes)?;
            Ok(vec![("revoked", fingerprint), ("file", path.display().to_string())])
        }
        KeyStatement::Succession { old, new } => {
            let Some(trusted) = keys.valid_keys().find(|trusted| trusted.key == *old) else {
                let problem = format!(
                    "`{}`: expected the successor of a key that you trust, found that of {}",
                    file.display(),
                    old.fingerprint()
                );
                let hint = "name the new public key itself, if you know its fingerprint by another way";
                return Err(CommandError::new(problem).with_hint(hint));
            };
            let mut rows = add_key(new, file, keys, directory)?;
            rows.push(("follows", trusted.file.display().to_string()));
            Ok(rows)
        }
    }
}

/// Deletes the file of a trusted key; a key may be trusted by several files.
fn remove_key(key: &str, directory: &Path, environment: &HostEnvironment) -> Result<PathBuf, CommandError> {
    let files = KeyFiles::list_directory(directory, environment.identity)?;
    let own = TrustedKeys::load_keys(&KeyFiles { revocations: Vec::new(), ..files }, environment.identity)?;
    let trusted: Vec<&TrustedKey> = own.valid_keys().collect();
    let given = PublicKey::read_file(Path::new(key)).ok();
    let is_prefix = key.len() >= LEAST_DIGITS;
    let is_meant = |trusted: &&&TrustedKey| match &given {
        Some(given) => trusted.key == *given,
        None => is_prefix && trusted.key.fingerprint().to_string().starts_with(&key.to_ascii_lowercase()),
    };
    let meant: Vec<&&TrustedKey> = trusted.iter().filter(is_meant).collect();
    match meant[..] {
        [trusted] => {
            let file = &trusted.file;
            fs::remove_file(file).map_err(|error| unwritable_file(file, &error))?;
            Ok(file.clone())
        }
        [] => {
            let problem = format!("expected a key in `{}`, found none that is `{key}`", directory.display());
            Err(CommandError::new(problem)
                .with_hint("`oarlock plugin trust --list` shows the keys and their fingerprints"))
        }
        _ => {
            let problem = format!(
                "expected one key in `{}`, found {} that are `{key}`",
                directory.display(),
                meant.len()
            );
            Err(CommandError::new(problem).with_hint("delete the files that you do not want"))
        }
    }
}

fn list_keys(
    global: &GlobalOptions,
    keys: &TrustedKeys,
    output: &mut CommandOutput,
) -> Result<(), CommandError> {
    let trusted: Vec<(String, &Path)> = keys
        .valid_keys()
        .map(|trusted| (trusted.key.fingerprint().to_string(), trusted.file.as_path()))
        .collect();
    let revoked: Vec<(String, &Path)> =
        keys.revoked_keys().iter().map(|(key, file)| (key.to_string(), file.as_path())).collect();
    if global.json {
        let entry = |(key, file): &(String, &Path)| json!({ "key": key, "file": file.display().to_string() });
        let list = |rows: &[(String, &Path)]| rows.iter().map(entry).collect::<Vec<_>>();
        return crate::commands::print_json(
            output,
            &json!({ "trusted": list(&trusted), "revoked": list(&revoked) }),
        );
    }
    for (what, rows) in [("trusted", &trusted), ("revoked", &revoked)] {
        for (key, file) in rows {
            print_labeled(output, &format!("{what}  "), 9, &format!("{key}  {}", file.display()));
        }
    }
    if trusted.is_empty() && revoked.is_empty() {
        output::print_message(
            global.color,
            "note",
            "no key is trusted, so signatures are not verified",
            None,
        );
    }
    Ok(())
}

/// Where the system has keys of its own or requires signatures, those of the user do not count.
fn warn_if_ignored(global: &GlobalOptions, is_system: bool) -> Result<(), CommandError> {
    let environment = host_environment(global)?;
    let directory = key_directory(false, &environment)?;
    let own = KeyFiles::list_directory(&directory, environment.identity)?;
    let counting = HostConfig::load(&environment)?.keys.trusted;
    if !is_system && own.trusted.iter().any(|file| !counting.contains(file)) {
        let message = "this system has keys of its own or requires signatures, so your keys do not count";
        output::print_message(
            global.color,
            "warning",
            message,
            Some("ask its administrator for `oarlock plugin trust --system`"),
        );
    }
    Ok(())
}

/// Writes a file that the host accepts: nobody else may change it or its directory.
fn write_key_file(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let write = || {
        if let Some(directory) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        replace_file(path, |stream| {
            stream.set_permissions(fs::Permissions::from_mode(PUBLIC_MODE))?;
            io::Write::write_all(stream, bytes)
        })
    };
    write().map_err(|error| unwritable_file(path, &error))
}

/// A regular file of limited size: a pipe could block for ever.
fn read_small_file(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("expected a file of at most {MAX_FILE_BYTES} bytes")));
    }
    fs::read(path)
}
