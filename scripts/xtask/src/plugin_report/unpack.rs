//! Finds plugin files, also in wheels and Debian packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use zip::ZipArchive;

/// Every plugin has this symbol, and hardly any other file.
const ENTRY_SYMBOL: &[u8] = b"oarlock_plugin_query";

/// A plugin file, unpacked.
pub(crate) struct PublishedPlugin {
    /// The file or directory that was named, or the package in it.
    pub(crate) package: String,
    pub(crate) file: PathBuf,
}

/// All plugins in files and directories, in the order of their names. Packages are unpacked into `place`.
pub(crate) fn find_plugins(places: &[PathBuf], place: &Path) -> Result<Vec<PublishedPlugin>> {
    let mut plugins = Vec::new();
    for named in places {
        let named = std::path::absolute(named)?;
        for file in files_below(&named)? {
            let package =
                file.strip_prefix(named.parent().unwrap_or(&named)).unwrap_or(&file).display().to_string();
            let target = place.join(format!("package-{}", plugins.len()));
            let unpacked = match file.extension().and_then(|ending| ending.to_str()) {
                Some("whl") => unpack_wheel(&file, &target).map(|()| target)?,
                Some("deb") => unpack_deb(&file, &target).map(|()| target)?,
                _ => file,
            };
            for file in files_below(&unpacked)? {
                if is_plugin(&file)? {
                    plugins.push(PublishedPlugin { package: package.clone(), file });
                }
            }
        }
    }
    Ok(plugins)
}

/// The file, or all files of the directory and those below it, sorted. Links are not followed.
fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    let metadata =
        path.symlink_metadata().with_context(|| format!("expected a file at `{}`", path.display()))?;
    if !metadata.is_dir() {
        return Ok(if metadata.is_file() { vec![path.to_path_buf()] } else { Vec::new() });
    }
    let entries: std::io::Result<Vec<_>> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
    let mut entries = entries?;
    entries.sort();
    let nested: Result<Vec<_>> = entries.iter().map(|entry| files_below(entry)).collect();
    Ok(nested?.concat())
}

fn is_plugin(file: &Path) -> Result<bool> {
    if file.extension().is_none_or(|ending| ending != "so") {
        return Ok(false);
    }
    let bytes = fs::read(file)?;
    Ok(bytes.windows(ENTRY_SYMBOL.len()).any(|window| window == ENTRY_SYMBOL))
}

fn unpack_wheel(file: &Path, target: &Path) -> Result<()> {
    let archive = fs::File::open(file)?;
    let unpacked = ZipArchive::new(archive).and_then(|mut archive| archive.extract(target));
    unpacked.with_context(|| format!("expected to unpack `{}`", file.display()))
}

fn unpack_deb(file: &Path, target: &Path) -> Result<()> {
    let output = Command::new("dpkg-deb").arg("--extract").arg(file).arg(target).output();
    let output = output.context("expected the command `dpkg-deb`; the Debian package `dpkg` has it")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "expected to unpack `{}`, found: {}", file.display(), said.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn plugins_are_found_as_files_and_in_wheels_and_other_libraries_are_not() {
        let place = tempfile::tempdir().expect("a directory");
        let published = place.path().join("published");
        fs::create_dir_all(published.join("below")).expect("a directory");
        let bytes = [b"\x7fELF ".as_slice(), ENTRY_SYMBOL, b"\0"].concat();
        fs::write(published.join("below/libb.so"), &bytes).expect("a plugin");
        fs::write(published.join("libdriver.so"), "\x7fELF").expect("a library");
        fs::write(published.join("notes.txt"), &bytes).expect("a text");
        let wheel = fs::File::create(published.join("acme.whl")).expect("a wheel");
        let mut wheel = ZipWriter::new(wheel);
        wheel.start_file("acme/plugins/liba.so", SimpleFileOptions::default()).expect("an entry");
        wheel.write_all(&bytes).expect("bytes");
        wheel.finish().expect("a wheel");
        let found = find_plugins(&[published], place.path()).expect("plugins");
        let names: Vec<(&str, &str)> = found
            .iter()
            .map(|plugin| {
                (
                    plugin.package.as_str(),
                    plugin.file.file_name().and_then(|name| name.to_str()).unwrap_or(""),
                )
            })
            .collect();
        assert_eq!(names, [("published/acme.whl", "liba.so"), ("published/below/libb.so", "libb.so")]);
    }

    #[test]
    fn a_wheel_that_is_none_is_named() {
        let place = tempfile::tempdir().expect("a directory");
        let wheel = place.path().join("broken.whl");
        fs::write(&wheel, "no archive").expect("a file");
        let error = find_plugins(&[wheel], place.path()).err().expect("an error");
        assert!(error.to_string().contains("broken.whl"), "{error:#}");
    }
}
