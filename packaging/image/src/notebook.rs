//! The tutorial as notebooks, and their server.

use oarlock_formats::error::Error;
use oarlock_formats::tree::{FileTree, TreeEntry};

/// The name of the server program.
pub(super) const NOTEBOOK_PROGRAM: &str = "oarlock-notebook";

/// The default port of the server.
pub(super) const NOTEBOOK_PORT: u16 = 8888;

const SERVER_SCRIPT: &str = include_str!("../../../docker/notebook.py");

/// The directory that the server reads.
const NOTEBOOK_DIRECTORY: &str = "usr/share/oarlock/notebooks";

/// The notebooks and their data files.
const NOTEBOOK_FILES: [(&str, &[u8]); 8] = [
    ("1-arrays.ipynb", include_bytes!("../../../docs/notebooks/1-arrays.ipynb")),
    ("2-other-libraries.ipynb", include_bytes!("../../../docs/notebooks/2-other-libraries.ipynb")),
    ("3-a-line.ipynb", include_bytes!("../../../docs/notebooks/3-a-line.ipynb")),
    ("4-devices.ipynb", include_bytes!("../../../docs/notebooks/4-devices.ipynb")),
    ("5-models.ipynb", include_bytes!("../../../docs/notebooks/5-models.ipynb")),
    ("6-your-own-op.ipynb", include_bytes!("../../../docs/notebooks/6-your-own-op.ipynb")),
    ("digits.npy", include_bytes!("../../../docs/src/models/digits.npy")),
    ("digits.onnx", include_bytes!("../../../docs/src/models/digits.onnx")),
];

/// Installs the notebooks and the server in an image.
pub(super) fn install_notebooks(tree: &mut FileTree) -> Result<(), Error> {
    tree.insert_entry(&format!("usr/bin/{NOTEBOOK_PROGRAM}"), TreeEntry::program(SERVER_SCRIPT.as_bytes()))?;
    NOTEBOOK_FILES.iter().try_for_each(|(name, bytes)| {
        tree.insert_entry(&format!("{NOTEBOOK_DIRECTORY}/{name}"), TreeEntry::file(*bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notebook_of_the_book_is_in_the_image() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notebooks");
        let mut there: Vec<String> = std::fs::read_dir(directory)
            .expect("notebooks")
            .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".ipynb"))
            .collect();
        there.sort();
        let ours = NOTEBOOK_FILES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".ipynb"));
        assert_eq!(there, ours.collect::<Vec<_>>());
    }
}
