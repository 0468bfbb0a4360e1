//! Precompiles Python modules. Python caches bytecode beside the module on first use, but images are read-only for their user,
//! so every start would compile again. Instead, the image's own interpreter compiles it once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;
use std::process::Stdio;

use oarlock_formats::error::Error;
use oarlock_formats::file::StagedDirectory;
use oarlock_formats::tree::{FileTree, TreeEntry, TreeNode};

use super::image_program::image_program;

/// The directory of modules from Debian packages.
const MODULE_DIRECTORY: &str = "usr/lib/python3";

const INTERPRETER_PATH: &str = "usr/bin/python3";

/// Compiles the modules in `new` with the interpreter in `all`. The bytecode only depends on the sources: it contains no
/// timestamp, and Python never checks it against its source, which does not change in an image.
pub(super) fn compile_bytecode(
    all: &FileTree,
    new: &FileTree,
    scratch: &Path,
    runner: Option<&Path>,
) -> Result<FileTree, Error> {
    let is_module = |path: &str| path.starts_with(MODULE_DIRECTORY) && path.ends_with(".py");
    let modules: Vec<&str> = new.files().map(|(path, _)| path).filter(|path| is_module(path)).collect();
    if modules.is_empty() {
        return Ok(FileTree::default());
    }
    let is_linker = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("ld-linux"));
    let linker = all.files().map(|(path, _)| path).find(|path| is_linker(path));
    let (Some(linker), Some(_)) = (linker, all.get(INTERPRETER_PATH)) else {
        return Err(Error::new(format!(
            "expected an interpreter below `{}`, a module of Python; found no `{INTERPRETER_PATH}`",
            modules[0]
        )));
    };
    let place = StagedDirectory::create_beside(&scratch.join("modules"))?;
    let root = place.path().canonicalize()?;
    extract_tree(all, &root)?;
    let libraries = root.join(linker.rsplit_once('/').map_or("", |(directory, _)| directory));
    // Runs the image's interpreter with the image's libraries, not with this machine's.
    let mut command = image_program(&root.join(linker), runner);
    command.arg("--library-path").arg(libraries).arg(root.join(INTERPRETER_PATH));
    command.args(["-S", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"]);
    command.arg("-s").arg(&root).args(["-p", "/", "-i", "-"]);
    command.env("PYTHONHOME", root.join("usr")).env("PYTHONHASHSEED", "0").env("LC_ALL", "C.UTF-8");
    let mut list = tempfile::tempfile()?;
    for module in &modules {
        writeln!(list, "{}", root.join(module).display())?;
    }
    list.rewind()?;
    let mut errors = tempfile::tempfile()?;
    let output = command.stdin(list).stdout(errors.try_clone()?).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| Error::from(error).in_file(linker))?;
    if !output.status.success() {
        let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
        errors.rewind()?;
        errors.read_to_string(&mut text)?;
        return Err(Error::new(format!("compiling modules of Python failed: {}", text.trim())));
    }
    bytecode_files(&root, &modules)
}

/// The bytecode of these modules.
fn bytecode_files(root: &Path, modules: &[&str]) -> Result<FileTree, Error> {
    let mut tree = FileTree::default();
    let directories: BTreeSet<&str> =
        modules.iter().filter_map(|module| Some(module.rsplit_once('/')?.0)).collect();
    for directory in directories {
        let directory = format!("{directory}/__pycache__");
        let Ok(entries) = std::fs::read_dir(root.join(&directory)) else { continue };
        for entry in entries {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let module = name.split('.').next().unwrap_or_default();
            let module = format!("{}/{module}.py", directory.trim_end_matches("/__pycache__"));
            // Other bytecode belongs to an earlier layer.
            if modules.binary_search(&module.as_str()).is_ok() {
                tree.insert_entry(&format!("{directory}/{name}"), TreeEntry::file(std::fs::read(&file)?))?;
            }
        }
    }
    Ok(tree)
}

/// Writes a tree into an empty directory, owned by the current user.
pub(super) fn extract_tree(tree: &FileTree, directory: &Path) -> Result<(), Error> {
    for (path, entry) in tree.entries() {
        let place = directory.join(path);
        match &entry.node {
            TreeNode::Directory => std::fs::create_dir(&place),
            TreeNode::Link(target) => symlink(target, &place),
            TreeNode::File(bytes) => {
                let mut options = File::options();
                let file = options.write(true).create_new(true).mode(entry.mode & 0o777).open(&place);
                file.and_then(|mut file| file.write_all(bytes))
            }
        }
        .map_err(|error| Error::from(error).in_file(place.display()))?;
    }
    Ok(())
}
