//! The recipe of the packages: `oarlock-plugin.toml`, which a vendor writes.

use std::path::{Component, Path, PathBuf};

use oarlock_formats::deb::is_package_name;
use oarlock_formats::error::Error;
use serde::Deserialize;

/// The name of the file.
pub const RECIPE_FILE: &str = "oarlock-plugin.toml";

/// What goes into the packages beside what the plugin says of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageRecipe {
    /// The name of both packages.
    pub package: String,
    /// One line about it, without a full stop.
    pub summary: String,
    /// A paragraph about it.
    pub description: String,
    /// Name and address of who answers for the packages, such as `Acme <plugins@acme.example>`.
    pub maintainer: String,
    /// An SPDX expression.
    pub license: String,
    /// The files with the texts of the licenses, from the directory of the recipe.
    pub license_files: Vec<PathBuf>,
    /// The shared object, from the directory of the recipe.
    pub library: PathBuf,
    /// The vendor's page.
    pub homepage: Option<String>,
    /// Further shared objects, which are installed beside the plugin.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// What provides the libraries that the plugin needs and that not every machine has.
    #[serde(default)]
    pub libraries: Vec<LibraryProvider>,
}

/// A library that a plugin needs, and what provides it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryProvider {
    /// The name that the plugin is linked to or opens.
    pub soname: String,
    /// The Debian package, as in `Depends`.
    pub debian: Option<String>,
    /// The Python package, as in `Requires-Dist`.
    pub python: Option<String>,
}

impl PackageRecipe {
    /// Reads a recipe.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or says what a package cannot.
    pub fn read_file(file: &Path) -> Result<Self, Error> {
        let text =
            std::fs::read_to_string(file).map_err(|error| Error::from(error).in_file(file.display()))?;
        Self::from_toml(&file.display().to_string(), &text)
    }

    /// Reads a recipe from text; `file` is for messages.
    ///
    /// # Errors
    ///
    /// When it says what a package cannot.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, Error> {
        let recipe: Self = toml::from_str(text).map_err(|error| Error::from_toml(file, text, &error))?;
        recipe.check_fields().map_err(|error| error.in_file(file))?;
        Ok(recipe)
    }

    fn check_fields(&self) -> Result<(), Error> {
        let refuse = |key: &str, expected: &str, found: &str| {
            Err(Error::new(format!("expected {expected} in `{key}`, found `{}`", found.escape_debug())))
        };
        // Debian and Python both take these, and neither changes them.
        let is_plain =
            |name: &str| is_package_name(name) && !name.contains(['+', '.']) && !name.ends_with('-');
        if !is_plain(&self.package) {
            return refuse("package", "lower-case letters, digits and `-`", &self.package);
        }
        let is_line = |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r']);
        let lines = [
            ("summary", Some(&self.summary)),
            ("license", Some(&self.license)),
            ("homepage", self.homepage.as_ref()),
        ];
        for (key, value) in lines.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))) {
            if !is_line(value) {
                return refuse(key, "one line of text", value);
            }
        }
        if self.summary.len() > 80 || self.summary.ends_with('.') {
            return refuse("summary", "at most 80 bytes without a full stop", &self.summary);
        }
        // Debian's words for packages begin without one.
        if ["a ", "an ", "the "].iter().any(|article| self.summary.to_ascii_lowercase().starts_with(article))
        {
            return refuse("summary", "a noun without an article", &self.summary);
        }
        if self.description.trim().is_empty() {
            return refuse("description", "a sentence", &self.description);
        }
        let has_address = self.maintainer.split_once(" <").is_some_and(|(name, address)| {
            !name.is_empty() && address.ends_with('>') && address.contains('@')
        });
        if !is_line(&self.maintainer) || !has_address {
            return refuse(
                "maintainer",
                "a name and an address, such as `Acme <plugins@acme.example>`,",
                &self.maintainer,
            );
        }
        if self.license_files.is_empty() {
            return Err(Error::new("expected at least one file in `license_files`, found none"));
        }
        for provider in &self.libraries {
            let is_soname = provider.soname.contains(".so") && !provider.soname.contains(['/', ' ', '\n']);
            if !is_soname {
                return refuse("libraries", "a name such as `libacme.so.2` as `soname`", &provider.soname);
            }
            if [&provider.debian, &provider.python].into_iter().flatten().any(|text| !is_line(text)) {
                return refuse("libraries", "one line of text for what provides it", &provider.soname);
            }
        }
        let paths = self.license_files.iter().chain(&self.files).chain([&self.library]);
        let leaves = |path: &&PathBuf| {
            path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
        };
        match paths.into_iter().find(leaves) {
            Some(path) => {
                refuse("library", "paths within the directory of the recipe", &path.display().to_string())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A valid recipe.
    pub(crate) const EXAMPLE: &str = "package = \"oarlock-acme\"\nsummary = \"device Acme for Oarlock\"\n\
        description = \"Where it is installed, the device is there.\"\nmaintainer = \"Acme <plugins@acme.example>\"\n\
        license = \"MIT\"\nlicense_files = [\"LICENSE\"]\nlibrary = \"build/libacme.so\"\n";

    #[test]
    fn a_recipe_that_a_package_cannot_follow_is_refused() {
        assert!(PackageRecipe::from_toml("r", EXAMPLE).is_ok());
        for (key, value, expected) in [
            ("package", "\"Acme\"", "lower-case"),
            ("package", "\"a.b\"", "lower-case"),
            ("summary", "\"A sentence.\"", "without a full stop"),
            ("summary", "\"two\\nlines\"", "one line"),
            ("summary", "\"The device Acme\"", "without an article"),
            ("description", "\" \"", "a sentence"),
            ("maintainer", "\"Acme\"", "an address"),
            ("license_files", "[]", "at least one"),
            ("library", "\"../libacme.so\"", "within the directory"),
            ("library", "\"/libacme.so\"", "within the directory"),
            ("files", "[\"../x.so\"]", "within the directory"),
            ("libraries", "[{ soname = \"acme\" }]", "libacme.so.2"),
            ("unknown", "1", "unknown field"),
        ] {
            let mut text: String = EXAMPLE
                .lines()
                .filter(|line| !line.starts_with(key))
                .map(|line| format!("{line}\n"))
                .collect();
            text += &format!("{key} = {value}\n");
            let error = PackageRecipe::from_toml("r", &text).expect_err(key).to_string();
            assert!(error.contains(expected), "{key}: {error}");
        }
    }
}
