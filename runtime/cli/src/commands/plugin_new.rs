//! `oarlock plugin new`: writes a plugin to start from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oarlock_scaffold::{
    PluginNames, PluginScaffold, ScaffoldFile, ScaffoldKind, ScaffoldLanguage, SdkSource, default_device_type,
};
use serde_json::json;

use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, NewPluginArguments};
use crate::output::{self, CommandOutput};
use crate::problem::CommandError;
use crate::render::print_labeled;

pub(crate) fn create_plugin(
    global: &GlobalOptions,
    wish: &NewPluginArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let Some(name) = &wish.name else { return list_templates(global, output) };
    oarlock_scaffold::check_plugin_name(name).map_err(CommandError::from_usage)?;
    let device_type = wish.device_type.clone().unwrap_or_else(|| default_device_type(name));
    if wish.device_type.is_some() && !wish.kind.has_device() {
        let message =
            format!("expected no `--device-type` for the kind `{}`, which has no device", wish.kind.name());
        return Err(CommandError::from_usage(message));
    }
    let vendor = wish.vendor.clone().unwrap_or_else(|| default_device_type(name));
    let sdk = wish.sdk.as_deref().map(|path| sdk_directory(path, wish.lang)).transpose()?;
    let scaffold = PluginScaffold {
        names: PluginNames { name, device_type: &device_type, vendor: &vendor },
        language: wish.lang,
        kind: wish.kind,
        license: wish.license,
        sdk: sdk.as_deref().map_or(SdkSource::Vendored, SdkSource::Path),
    };
    let files = scaffold.files().map_err(CommandError::from_usage)?;
    let directory = wish.directory.clone().unwrap_or_else(|| PathBuf::from(name));
    check_new_directory(&directory)?;
    write_directory(&directory, &files).map_err(|error| {
        CommandError::new(format!("`{}`: expected to write the plugin, found: {error}", directory.display()))
            .with_hint("name another directory with `--directory`")
    })?;
    let (build, library) = (scaffold.build_command(), scaffold.library_path());
    if global.json {
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let device_type = wish.kind.has_device().then_some(&device_type);
        let value = json!({ "directory": directory, "name": name, "language": wish.lang.name(), "kind": wish.kind.name(),
            "device_type": device_type, "build": build, "library": library, "files": paths });
        super::print_json(output, &value)?;
    } else {
        output::print_message(
            global.color,
            "note",
            &format!("wrote {} files into `{}`", files.len(), directory.display()),
            None,
        );
        output.write_line(&format!("cd {}", shell_word(&directory)));
        output.write_line(build);
        output.write_line(&format!("oarlock plugin check {library}"));
    }
    Ok(true)
}

/// The path as a word of a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if text.bytes().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn list_templates(global: &GlobalOptions, output: &mut CommandOutput) -> CommandVerdict {
    let languages = |kind: ScaffoldKind| -> Vec<&str> {
        let has_template = |language: &ScaffoldLanguage| PluginScaffold::has_template(*language, kind);
        ScaffoldLanguage::ALL.into_iter().filter(has_template).map(ScaffoldLanguage::name).collect()
    };
    if global.json {
        let row = |kind: ScaffoldKind| json!({ "kind": kind.name(), "languages": languages(kind), "summary": kind.summary() });
        super::print_json(output, &ScaffoldKind::ALL.map(row))?;
        return Ok(true);
    }
    for kind in ScaffoldKind::ALL {
        let text = format!("in {}: {}", languages(kind).join(", "), kind.summary());
        print_labeled(output, &format!("{:<9}", kind.name()), 9, &text);
    }
    Ok(true)
}

/// The directory of the SDK as an absolute path, which a manifest can hold.
fn sdk_directory(path: &Path, language: ScaffoldLanguage) -> Result<String, CommandError> {
    if language != ScaffoldLanguage::Rust {
        let message = format!(
            "expected no `--sdk` for the language `{}`, whose headers are written out",
            language.name()
        );
        return Err(CommandError::from_usage(message));
    }
    let message = |found: &str| {
        CommandError::new(format!(
            "`{}`: expected the directory of the crate `oarlock-sdk`, found {found}",
            path.display()
        ))
        .with_hint("name the directory with its `Cargo.toml`, or leave out `--sdk`")
    };
    let absolute = fs::canonicalize(path).map_err(|error| message(&error.to_string()))?;
    let manifest =
        fs::read_to_string(absolute.join("Cargo.toml")).map_err(|_| message("no `Cargo.toml` in it"))?;
    if !manifest.lines().any(|line| line.trim() == "name = \"oarlock-sdk\"") {
        return Err(message("another crate"));
    }
    match absolute.to_str() {
        Some(text) if !text.contains(['"', '\\', '\n']) => Ok(text.to_owned()),
        _ => Err(message("a path that TOML cannot hold")),
    }
}

/// Nothing that exists is ever overwritten.
fn check_new_directory(directory: &Path) -> Result<(), CommandError> {
    let refuse = |found: &str| {
        CommandError::new(format!(
            "`{}`: expected an empty directory or none, found {found}",
            directory.display()
        ))
        .with_hint("name another with `--directory`")
    };
    match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err(refuse("files in it"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(refuse("a file")),
        Err(error) => Err(refuse(&error.to_string())),
    }
}

/// Writes all files or none: they go into a directory beside, which then takes the name.
fn write_directory(directory: &Path, files: &[ScaffoldFile]) -> io::Result<()> {
    let directory = std::path::absolute(directory)?;
    let parent = directory.parent().unwrap_or(&directory);
    fs::create_dir_all(parent)?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = parent.join(format!(".{name}.{}.new", std::process::id()));
    fs::create_dir(&unfinished)?;
    let written = write_files(&unfinished, files).and_then(|()| fs::rename(&unfinished, &directory));
    if written.is_err() {
        // The first error is the one to report.
        _ = fs::remove_dir_all(&unfinished);
    }
    written
}

fn write_files(directory: &Path, files: &[ScaffoldFile]) -> io::Result<()> {
    for ScaffoldFile { path, text } in files {
        let file = directory.join(path);
        fs::create_dir_all(file.parent().unwrap_or(directory))?;
        fs::write(&file, text)?;
    }
    Ok(())
}
