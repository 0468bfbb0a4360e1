//! A package as a repository lists it.

use std::path::{Path, PathBuf};

use crate::deb::control::ControlParagraph;
use crate::deb::{DebPackage, is_package_name};
use crate::error::Error;
use crate::wheel::sha256_hex;

/// A package as a repository lists it.
#[derive(Debug)]
pub(super) struct ListedPackage {
    /// Where it is now.
    pub(super) file: PathBuf,
    /// Where it lies in the repository.
    pub(super) path: String,
    pub(super) component: String,
    pub(super) architecture: String,
    pub(super) sha256: String,
    size: usize,
    control: ControlParagraph,
}

/// What Debian parts packages by: what they and what they need may be used for.
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
        // The name of what it is built from, behind which there may be a version.
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

    /// What a list says of it.
    pub(super) fn to_paragraph(&self) -> ControlParagraph {
        let mut paragraph = self.control.clone();
        paragraph.set("Filename", &self.path);
        paragraph.set("Size", &self.size.to_string());
        paragraph.set("SHA256", &self.sha256);
        paragraph
    }
}
