//! Packages as entries of a repository.

use std::path::{Path, PathBuf};

use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::deb::{DebPackage, is_package_name};
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;

/// A package with the facts that a repository lists.
#[derive(Debug)]
pub(super) struct ListedPackage {
    /// Its current file.
    pub(super) file: PathBuf,
    /// Its path in the repository.
    pub(super) path: String,
    pub(super) component: String,
    pub(super) architecture: String,
    pub(super) sha256: String,
    size: usize,
    control: ControlParagraph,
}

/// Debian's components, which separate packages by license.
const DEBIAN_COMPONENTS: [&str; 4] = ["main", "contrib", "non-free", "non-free-firmware"];

impl ListedPackage {
    /// Reads and checks a package.
    pub(super) fn read_package(file: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(file)?;
        let package = DebPackage::from_bytes(&bytes)?;
        let section = package.control.get("Section").unwrap_or_default();
        let component = section.split_once('/').map_or(DEBIAN_COMPONENTS[0], |(component, _)| component);
        if !DEBIAN_COMPONENTS.contains(&component) {
            return Err(Error::new(format!(
                "expected a section as `science` or of a component, such as `contrib/science`, found `{section}`"
            )));
        }
        // The source package, possibly followed by its version.
        let source = package.control.get("Source").and_then(|source| source.split(' ').next());
        let source = source.map_or_else(|| package.name(), Ok)?;
        if !is_package_name(source) {
            return Err(Error::new(format!("expected the name of a package in `Source`, found `{source}`")));
        }
        let shelf = &source[..if source.starts_with("lib") { source.len().min(4) } else { 1 }];
        Ok(Self {
            path: format!("pool/{component}/{shelf}/{source}/{}", package.file_name()?),
            component: component.to_owned(),
            architecture: package.architecture()?.to_owned(),
            sha256: sha256_hex(&bytes),
            size: bytes.len(),
            file: file.to_owned(),
            control: package.control,
        })
    }

    /// Its paragraph in a package list.
    pub(super) fn to_paragraph(&self) -> ControlParagraph {
        let mut paragraph = self.control.clone();
        paragraph.set("Filename", &self.path);
        paragraph.set("Size", &self.size.to_string());
        paragraph.set("SHA256", &self.sha256);
        paragraph
    }
}
