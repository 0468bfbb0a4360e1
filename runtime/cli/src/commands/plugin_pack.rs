//! `oarlock plugin pack`: makes a wheel and a Debian package of a plugin.

use std::fs;
use std::path::{Path, PathBuf};

use oarlock_formats::date;
use oarlock_host::{ManifestSignatures, PluginManifest, RequiredLibrary};
use oarlock_plugin_package::{PackageRecipe, PackagedFile, PluginPackage, RECIPE_FILE, SupportClaim};
use serde_json::json;

use super::plugin_manifest::{ProbedPlugin, probe_plugin, replace_file};
use super::trust::sign::sign_plugin;
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, PackArguments, PackageFormat};
use crate::messages::PluginMessages;
use crate::output::{self, CommandOutput};
use crate::problem::CommandError;
use crate::render::{json_name, print_labeled};
use crate::session::{host_options, unusable_file};

/// Where packages go, from the directory of the recipe.
const DEFAULT_OUTPUT: &str = "dist";

pub(crate) fn pack_plugin(
    global: &GlobalOptions,
    wish: &PackArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let recipe_file = find_recipe(&wish.path)?;
    let directory = recipe_file.parent().unwrap_or(Path::new("."));
    let recipe = PackageRecipe::read_file(&recipe_file).map_err(CommandError::new)?;
    let library = match wish.path.extension() {
        Some(ending) if ending == "so" => wish.path.clone(),
        _ => directory.join(&recipe.library),
    };
    let library = std::path::absolute(&library).map_err(|error| unusable_file(&library, &error))?;
    if !library.exists() {
        let problem =
            format!("`{}`: expected the plugin that `{RECIPE_FILE}` names, found none", library.display());
        return Err(CommandError::new(problem).with_hint("build it first"));
    }
    let package = collect_package(global, recipe, directory, &library, &wish.keys)?;
    let needs = package.audit().map_err(|error| {
        CommandError::new(format!("`{}`: {error}", library.display()))
            .with_hint("mend that, build again, and pack again")
    })?;
    for note in &needs.notes {
        output::print_message(global.color, "note", note, None);
    }
    let mut packages = Vec::new();
    if wish.only != Some(PackageFormat::Deb) {
        packages.push(package.build_wheel(&needs).map_err(CommandError::new)?);
    }
    if wish.only != Some(PackageFormat::Wheel) {
        packages.push(package.build_deb(&needs).map_err(CommandError::new)?);
    }
    let target = wish.output.clone().unwrap_or_else(|| directory.join(DEFAULT_OUTPUT));
    let mut written = Vec::new();
    for PackagedFile { name, bytes } in packages {
        let file = target.join(name);
        let done =
            fs::create_dir_all(&target).and_then(|()| oarlock_formats::file::write_file(&file, &bytes));
        done.map_err(|error| {
            CommandError::new(format!("`{}`: expected to write the package, found: {error}", file.display()))
                .with_hint("name another directory with `--output`")
        })?;
        written.push((file, oarlock_formats::digest::sha256_hex(&bytes)));
    }
    if global.json {
        let row = |(file, sha256): &(PathBuf, String)| json!({ "file": file, "sha256": sha256 });
        let (major, minor) = needs.glibc;
        let value = json!({ "packages": written.iter().map(row).collect::<Vec<_>>(), "glibc": format!("{major}.{minor}"),
            "libraries": needs.libraries, "signed": !package.companions.is_empty(), "notes": needs.notes });
        super::print_json(output, &value)?;
    } else {
        for (file, sha256) in written {
            print_labeled(output, "", 0, &file.display().to_string());
            print_labeled(output, "  ", 2, &format!("sha256 {sha256}"));
        }
    }
    Ok(true)
}

/// The recipe that a path means: itself, the one in a directory, or the nearest above a shared object.
fn find_recipe(path: &Path) -> Result<PathBuf, CommandError> {
    let absolute = std::path::absolute(path).map_err(|error| unusable_file(path, &error))?;
    let metadata = fs::metadata(&absolute).map_err(|error| unusable_file(path, &error))?;
    if metadata.is_file() && absolute.extension().is_some_and(|ending| ending == "toml") {
        return Ok(absolute);
    }
    let above = if metadata.is_dir() { 1 } else { usize::MAX };
    let directories = absolute.ancestors().skip(usize::from(metadata.is_file())).take(above);
    let found = directories.map(|directory| directory.join(RECIPE_FILE)).find(|file| file.is_file());
    found.ok_or_else(|| {
        CommandError::new(format!(
            "`{}`: expected the recipe `{RECIPE_FILE}` there, found none",
            path.display()
        ))
        .with_hint("`oarlock plugin new` writes one; the page \"Pack a plugin\" of the book describes it")
    })
}

/// Reads everything that goes into the packages. The plugin is probed, and its manifest is written beside it.
fn collect_package(
    global: &GlobalOptions,
    recipe: PackageRecipe,
    directory: &Path,
    library: &Path,
    keys: &[PathBuf],
) -> Result<PluginPackage, CommandError> {
    let read = |path: &Path| {
        let bytes = fs::read(path).map_err(|error| unusable_file(path, &error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok::<_, CommandError>(PackagedFile { name, bytes })
    };
    let read_all = |paths: &[PathBuf]| -> Result<Vec<PackagedFile>, CommandError> {
        paths.iter().map(|path| read(&directory.join(path))).collect()
    };
    let options = host_options(global, &PluginMessages::new(global))?;
    let path = PluginManifest::path_beside(library);
    let ProbedPlugin { info, mut manifest } = probe_plugin(library, &path, &options, global)?;
    manifest.package = Some(recipe.package.clone());
    let linked = oarlock_formats::library_needs::LibraryNeeds::from_library(&read(library)?.bytes)
        .map_err(CommandError::new)?;
    for provider in recipe.libraries.iter().filter(|provider| !linked.libraries.contains(&provider.soname)) {
        if manifest.requires.iter().all(|required| required.soname != provider.soname) {
            let package = provider.debian.as_ref().and_then(|package| package.split_whitespace().next());
            manifest.requires.push(RequiredLibrary {
                soname: provider.soname.clone(),
                version: None,
                package: package.map(str::to_owned),
                optional: true,
            });
        }
    }
    let text = manifest.to_toml().map_err(CommandError::new)?;
    let signature = ManifestSignatures::path_beside(library);
    if keys.is_empty() {
        write_unsigned(&path, &text, &signature)?;
    } else {
        replace_file(&path, &text).map_err(|error| unusable_file(&path, &error))?;
        sign_plugin(library, keys)?;
    }
    let companions = if signature.is_file() { vec![read(&signature)?] } else { Vec::new() };
    for companion in &companions {
        ManifestSignatures::parse_bytes(&companion.bytes).map_err(|problem| {
            CommandError::new(format!("`{}`: expected signatures, found {problem}", signature.display()))
                .with_hint("sign the manifest with `--key FILE`, or remove the file")
        })?;
    }
    let modified = fs::metadata(library).and_then(|metadata| metadata.modified()).ok();
    let modified =
        modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).map(|time| time.as_secs());
    let level = json_name(&info.support_level);
    Ok(PluginPackage {
        library: read(library)?,
        manifest: read(&path)?,
        companions,
        libraries: read_all(&recipe.files)?,
        licenses: read_all(&recipe.license_files)?,
        cargo_lock: fs::read_to_string(directory.join("Cargo.lock")).ok(),
        support: Some(SupportClaim { level, note: info.support_note }),
        seconds: date::source_date_epoch().map_err(CommandError::new)?.or(modified).unwrap_or_default(),
        recipe,
    })
}

/// Writes the manifest, unless it is there already. The signatures of another one would be wrong.
fn write_unsigned(path: &Path, text: &str, signature: &Path) -> Result<(), CommandError> {
    if fs::read(path).ok().as_deref() == Some(text.as_bytes()) {
        return Ok(());
    }
    if signature.is_file() {
        let problem = format!(
            "`{}`: expected the manifest that is signed in `{}`, found that the packages need another one",
            path.display(),
            signature.display()
        );
        return Err(
            CommandError::new(problem).with_hint("sign it again with `--key FILE`, or remove the signature")
        );
    }
    replace_file(path, text).map_err(|error| unusable_file(path, &error))
}
