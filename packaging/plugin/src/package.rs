//! What goes into the packages of a plugin.

use oarlock_formats::error::Error;
use serde::Deserialize;

use crate::architecture::PackageArchitecture;
use crate::recipe::PackageRecipe;
use crate::version::PackageVersion;

/// A file with its name, without a directory.
#[derive(Clone, Debug)]
pub struct PackagedFile {
    /// The name.
    pub name: String,
    /// What it contains.
    pub bytes: Vec<u8>,
}

/// The support level that a plugin claims.
#[derive(Clone, Debug)]
pub struct SupportClaim {
    /// Such as `hardware-verified`.
    pub level: String,
    /// The evidence: chip, driver, date.
    pub note: String,
}

/// A plugin with everything that its packages contain.
#[derive(Clone, Debug)]
pub struct PluginPackage {
    /// What the vendor says of the packages.
    pub recipe: PackageRecipe,
    /// The shared object of the plugin.
    pub library: PackagedFile,
    /// Its manifest.
    pub manifest: PackagedFile,
    /// What is installed beside it as it is, such as a signature.
    pub companions: Vec<PackagedFile>,
    /// Shared objects that are installed beside it.
    pub libraries: Vec<PackagedFile>,
    /// The texts of the licenses.
    pub licenses: Vec<PackagedFile>,
    /// The text of the `Cargo.lock` beside the recipe, which names the crates in a plugin in Rust.
    pub cargo_lock: Option<String>,
    /// How well the plugin says it is tested, if it says so.
    pub support: Option<SupportClaim>,
    /// The time of everything, in seconds since 1970.
    pub seconds: u64,
}

/// The keys of a manifest that packages need.
#[derive(Deserialize)]
struct ManifestKeys {
    name: String,
    version: String,
    architecture: String,
}

/// What a manifest says that packages need.
pub(crate) struct PluginIdentity {
    pub(crate) name: String,
    pub(crate) version: PackageVersion,
    pub(crate) architecture: PackageArchitecture,
}

impl PluginPackage {
    /// The files that are installed beside each other: the plugin first.
    pub(crate) fn installed_files(&self) -> impl Iterator<Item = &PackagedFile> {
        [&self.library, &self.manifest].into_iter().chain(&self.companions).chain(&self.libraries)
    }

    /// All shared objects.
    pub(crate) fn shared_objects(&self) -> impl Iterator<Item = &PackagedFile> {
        [&self.library].into_iter().chain(&self.libraries)
    }

    pub(crate) fn identity(&self) -> Result<PluginIdentity, Error> {
        let text = std::str::from_utf8(&self.manifest.bytes).map_err(|_| Error::new("expected UTF-8"));
        let keys = text.and_then(|text| {
            toml::from_str::<ManifestKeys>(text)
                .map_err(|error| Error::from_toml(&self.manifest.name, text, &error))
        })?;
        Ok(PluginIdentity {
            version: PackageVersion::parse_version(&keys.version)?,
            architecture: PackageArchitecture::parse_manifest(&keys.architecture)?,
            name: keys.name,
        })
    }
}
