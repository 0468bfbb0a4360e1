//! The SBOM of a package, in CycloneDX: the plugin, the libraries that it needs, and the crates in it.

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::audit::PackageNeeds;
use crate::package::{PackagedFile, PluginPackage};

/// A `Cargo.lock`, as far as it matters.
#[derive(Deserialize)]
struct CargoLock {
    #[serde(default)]
    package: Vec<LockedCrate>,
}

#[derive(Deserialize)]
struct LockedCrate {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl PluginPackage {
    /// The text of the SBOM. It only depends on what is in the package: it contains no time, no path and no random number.
    pub(crate) fn render_sbom(&self, needs: &PackageNeeds) -> Result<String, Error> {
        let identity = self.identity()?;
        let reference = format!("pkg:generic/{}@{}", self.recipe.package, identity.version.python());
        let linked =
            needs.libraries.iter().map(|soname| describe_library(soname, "required", "linked to it"));
        let opened =
            self.recipe.libraries.iter().filter(|provider| !needs.libraries.contains(&provider.soname));
        let opened =
            opened.map(|provider| describe_library(&provider.soname, "optional", "opened at run time"));
        let shipped = self.libraries.iter().map(|file| {
            json!({ "type": "library", "bom-ref": format!("file:{}", file.name), "name": file.name, "scope": "required",
                "hashes": describe_hashes(file) })
        });
        let components: Vec<Value> =
            shipped.chain(linked).chain(opened).chain(self.describe_crates(&identity.name)?).collect();
        let references: Vec<Value> =
            components.iter().map(|component| component["bom-ref"].clone()).collect();
        let mut plugin = json!({
            "type": "library",
            "bom-ref": reference,
            "name": identity.name,
            "version": identity.version.python(),
            "description": self.recipe.summary,
            "licenses": [{ "expression": self.recipe.license }],
            "supplier": { "name": self.recipe.maintainer.split(" <").next() },
            "hashes": describe_hashes(&self.library),
        });
        if let Some(support) = &self.support {
            plugin["properties"] = json!([
                { "name": SUPPORT_LEVEL_PROPERTY, "value": support.level },
                { "name": "oarlock:support_note", "value": support.note },
            ]);
        }
        let sbom = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "component": plugin },
            "components": components,
            "dependencies": [{ "ref": reference, "dependsOn": references }],
        });
        Ok(format!("{sbom:#}\n"))
    }

    /// The crates that cargo locked, without the plugin itself. Cargo may have locked some that are only for tests.
    fn describe_crates(&self, plugin: &str) -> Result<Vec<Value>, Error> {
        let Some(text) = &self.cargo_lock else { return Ok(Vec::new()) };
        let lock: CargoLock =
            toml::from_str(text).map_err(|error| Error::from_toml("Cargo.lock", text, &error))?;
        let describe = |locked: LockedCrate| {
            let reference = format!("pkg:cargo/{}@{}", locked.name, locked.version);
            let mut described = json!({ "type": "library", "bom-ref": reference, "purl": reference, "name": locked.name,
                "version": locked.version });
            if let Some(checksum) = locked.checksum {
                described["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
            }
            described
        };
        Ok(lock.package.into_iter().filter(|locked| locked.name != plugin).map(describe).collect())
    }
}

/// The property with the support level that a plugin claims.
pub(crate) const SUPPORT_LEVEL_PROPERTY: &str = "oarlock:support_level";

fn describe_library(soname: &str, scope: &str, how: &str) -> Value {
    json!({ "type": "library", "bom-ref": format!("soname:{soname}"), "name": soname, "scope": scope,
        "description": format!("not in this package: {how}") })
}

fn describe_hashes(file: &PackagedFile) -> Value {
    json!([{ "alg": "SHA-256", "content": sha256_hex(&file.bytes) }])
}
