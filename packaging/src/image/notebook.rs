//! The tutorial as notebooks, and the program that serves them.

use crate::error::Error;
use crate::tree::{Entry, Tree};

/// What the program is called.
pub(super) const PROGRAM: &str = "oarlock-notebook";

/// Where it listens unless it is told otherwise.
pub(super) const PORT: u16 = 8888;

const TEXT: &str = include_str!("../../../docker/notebook.py");

/// Where the program finds the notebooks.
const PLACE: &str = "usr/share/oarlock/notebooks";

/// The notebooks, and what they read.
const FILES: [(&str, &[u8]); 8] = [
    ("1-arrays.ipynb", include_bytes!("../../../docs/notebooks/1-arrays.ipynb")),
    ("2-other-libraries.ipynb", include_bytes!("../../../docs/notebooks/2-other-libraries.ipynb")),
    ("3-a-line.ipynb", include_bytes!("../../../docs/notebooks/3-a-line.ipynb")),
    ("4-devices.ipynb", include_bytes!("../../../docs/notebooks/4-devices.ipynb")),
    ("5-models.ipynb", include_bytes!("../../../docs/notebooks/5-models.ipynb")),
    ("6-your-own-op.ipynb", include_bytes!("../../../docs/notebooks/6-your-own-op.ipynb")),
    ("digits.npy", include_bytes!("../../../docs/src/models/digits.npy")),
    ("digits.onnx", include_bytes!("../../../docs/src/models/digits.onnx")),
];

/// Puts all of them into an image.
pub(super) fn put(tree: &mut Tree) -> Result<(), Error> {
    tree.put(&format!("usr/bin/{PROGRAM}"), Entry::program(TEXT.as_bytes()))?;
    FILES.iter().try_for_each(|(name, bytes)| tree.put(&format!("{PLACE}/{name}"), Entry::file(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notebook_of_the_book_is_in_the_image() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/notebooks");
        let mut there: Vec<String> = std::fs::read_dir(directory)
            .expect("notebooks")
            .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".ipynb"))
            .collect();
        there.sort();
        let ours = FILES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".ipynb"));
        assert_eq!(there, ours.collect::<Vec<_>>());
    }
}
