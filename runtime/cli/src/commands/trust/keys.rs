//! `oarlock plugin key`: makes keys, and statements about them.

use std::path::Path;

use oarlock_host::{KEY_EXTENSION, KeyStatement, PrivateKey, PublicKey, REVOCATION_EXTENSION};
use serde_json::{Map, Value};

use super::new_file::{PUBLIC_MODE, SECRET_MODE, check_absent, path_with_extension, write_new_file};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, KeyCommand};
use crate::output::CommandOutput;
use crate::problem::CommandError;
use crate::render::print_labeled;

/// The extension of a private key.
const PRIVATE_EXTENSION: &str = "key";
/// The extension of a statement that a key follows another.
const SUCCESSION_EXTENSION: &str = "successor";

pub(crate) fn run_key_command(
    global: &GlobalOptions,
    command: &KeyCommand,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let rows = match command {
        KeyCommand::New { name } => make_key_pair(name, None)?,
        KeyCommand::Rotate { old, name } => make_key_pair(name, Some(&PrivateKey::read_file(old)?))?,
        KeyCommand::Revoke { key } => revoke_key(key)?,
        KeyCommand::Show { key } => vec![("fingerprint", read_any_key(key)?.fingerprint().to_string())],
    };
    print_rows(global, &rows, output)?;
    Ok(true)
}

/// Writes a pair of keys, and a statement if it follows another key.
fn make_key_pair(
    name: &Path,
    follows: Option<&PrivateKey>,
) -> Result<Vec<(&'static str, String)>, CommandError> {
    let file = |extension| path_with_extension(name, extension);
    let (private, public) = (file(PRIVATE_EXTENSION), file(KEY_EXTENSION));
    let statement = follows.map(|_| file(SUCCESSION_EXTENSION));
    check_absent([&private, &public].into_iter().chain(&statement))?;
    let key = PrivateKey::generate().map_err(|error| {
        CommandError::new(format!("expected random numbers from the kernel, found: {error}"))
    })?;
    let public_key = key.public_key().map_err(CommandError::new)?;
    let mut rows = vec![
        ("fingerprint", public_key.fingerprint().to_string()),
        ("private key", private.display().to_string()),
        ("public key", public.display().to_string()),
    ];
    write_new_file(&private, &key.to_pem(), SECRET_MODE)?;
    write_new_file(&public, &public_key.to_pem(), PUBLIC_MODE)?;
    if let (Some(old), Some(statement)) = (follows, statement) {
        let text = KeyStatement::write_succession(old, &key).map_err(CommandError::new)?;
        write_new_file(&statement, &text, PUBLIC_MODE)?;
        rows.push(("statement", statement.display().to_string()));
    }
    Ok(rows)
}

/// Writes the revocation of a key beside it.
fn revoke_key(file: &Path) -> Result<Vec<(&'static str, String)>, CommandError> {
    let key = PrivateKey::read_file(file)?;
    let statement = file.with_extension(REVOCATION_EXTENSION);
    let text = KeyStatement::write_revocation(&key).map_err(CommandError::new)?;
    write_new_file(&statement, &text, PUBLIC_MODE)?;
    let fingerprint = key.public_key().map_err(CommandError::new)?.fingerprint();
    Ok(vec![("fingerprint", fingerprint.to_string()), ("statement", statement.display().to_string())])
}

/// The public key in a file, or that of the private key in it.
fn read_any_key(file: &Path) -> Result<PublicKey, CommandError> {
    match PublicKey::read_file(file) {
        Ok(key) => Ok(key),
        Err(error) => match PrivateKey::read_file(file).map(|key| key.public_key()) {
            Ok(key) => key.map_err(CommandError::new),
            // A file that is neither is most likely meant to be a public key.
            Err(_) => Err(error.into()),
        },
    }
}

/// Prints facts under their names; in JSON, as an object.
pub(super) fn print_rows(
    global: &GlobalOptions,
    rows: &[(&str, String)],
    output: &mut CommandOutput,
) -> Result<(), CommandError> {
    if global.json {
        let entry = |(name, value): &(&str, String)| (name.replace(' ', "_"), Value::from(value.as_str()));
        return crate::commands::print_json(output, &rows.iter().map(entry).collect::<Map<_, _>>());
    }
    for (name, value) in rows {
        print_labeled(output, &format!("{name:<11}  "), 13, value);
    }
    Ok(())
}
