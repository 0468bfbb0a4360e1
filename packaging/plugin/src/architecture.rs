//! The architectures that packages know, and what each calls them.

use oarlock_formats::error::Error;

/// An architecture, as Rust, wheels and Debian name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackageArchitecture {
    /// As manifests and wheels name it, such as `x86_64`.
    pub(crate) name: &'static str,
    pub(crate) debian: &'static str,
    /// The directory of libraries below `/usr/lib`.
    pub(crate) library_directory: &'static str,
}

const ARCHITECTURES: [PackageArchitecture; 2] = [
    PackageArchitecture { name: "x86_64", debian: "amd64", library_directory: "x86_64-linux-gnu" },
    PackageArchitecture { name: "aarch64", debian: "arm64", library_directory: "aarch64-linux-gnu" },
];

impl PackageArchitecture {
    /// The architecture in a manifest, such as `x86_64-linux`.
    pub(crate) fn parse_manifest(text: &str) -> Result<Self, Error> {
        let found = ARCHITECTURES.into_iter().find(|it| text.strip_suffix("-linux") == Some(it.name));
        found.ok_or_else(|| {
            let known = ARCHITECTURES.map(|it| format!("`{}-linux`", it.name)).join(" or ");
            Error::new(format!("expected a plugin for {known}, found one for `{text}`"))
        })
    }
}
