//! Finds the file of a model in a directory, as Paddle's tools write one for each model.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use oarlock_core::{Error, Result};

use super::error_location::quote_name;
use super::{file_format, paddle};

/// As much of a file as says what it is.
const HEAD_BYTES: u64 = 4096;

/// Errors name no more files than this.
const MAX_NAMED_FILES: usize = 4;

/// Finds the only model file of a directory: a Paddle program or an ONNX model. Directories in it are not searched.
pub(super) fn find_model_file(directory: &Path) -> Result<PathBuf> {
    let shown = quote_name(&directory.display().to_string());
    let unreadable =
        |error: std::io::Error| Error::unavailable(format!("{shown}: expected to read it, found: {error}"));
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let models: Vec<&PathBuf> = files.iter().filter(|path| is_model_file(path)).collect();
    match models[..] {
        [model] => Ok(model.clone()),
        [] => {
            let expected =
                "a directory with a Paddle program (`*.json`, `*.pdmodel` or `__model__`) or an ONNX model";
            let known = files.iter().find_map(|path| {
                let format = file_format::recognize_format(&read_head(path)?)?;
                // Beside a model there may be texts of any kind.
                Some((quote_name(&path.file_name()?.to_string_lossy()), format))
                    .filter(|_| format.is_of_model())
            });
            let (found, advice) = match known {
                Some((name, format)) => (format!("{name}, which is {}", format.name), format.advice),
                None => ("none".to_owned(), "name the file of the model itself"),
            };
            Err(Error::not_found(format!("{shown}: expected {expected}, found {found}")).with_advice(advice))
        }
        _ => {
            let names = models.iter().filter_map(|path| path.file_name()).take(MAX_NAMED_FILES);
            let found: Vec<_> = names.map(|name| quote_name(&name.to_string_lossy())).collect();
            let mut found = found.join(", ");
            if models.len() > MAX_NAMED_FILES {
                found = format!("{} files, among them {found}", models.len());
            }
            let error =
                Error::invalid_argument(format!("{shown}: expected one model in a directory, found {found}"));
            Err(error.with_advice("name one of these files instead of the directory"))
        }
    }
}

/// True for a Paddle program or an ONNX model, by its name and, where many files have such a name, by its first bytes.
fn is_model_file(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == paddle::OLD_PROGRAM_NAME) {
        return true;
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("onnx" | "pdmodel") => true,
        Some("json") => read_head(path).is_some_and(|head| paddle::is_json_program(&head)),
        _ => false,
    }
}

fn read_head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head)).ok()?;
    Some(head)
}
