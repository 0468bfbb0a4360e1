//! The catalog of Debian packages.

use std::path::{Path, PathBuf};

use oarlock_formats::error::Error;
use oarlock_matrix::checked_values::deserialize_address;
use oarlock_matrix::{CpuArchitecture, MatrixRow, WheelMatrix};

use serde::Deserialize;

/// A catalog file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageCatalog {
    /// The value of the field `Maintainer`.
    pub(crate) maintainer: String,
    /// The value of the field `Homepage`.
    #[serde(deserialize_with = "deserialize_address")]
    pub(crate) homepage: String,
    /// The Debian revision, which counts packages of the same Oarlock version.
    pub revision: u32,
    #[serde(default)]
    pub(crate) sets: Vec<PackageSet>,
    /// The packages.
    pub(crate) packages: Vec<PackageSpec>,
}

/// A set of packages with a limit on their total size.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackageSet {
    pub(crate) name: String,
    pub(crate) packages: Vec<String>,
    pub(crate) budget_mb: u64,
}

/// The description and contents of a package.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageSpec {
    /// The package name.
    pub name: String,
    pub(crate) section: String,
    #[serde(default)]
    pub(crate) architecture: PackageArchitecture,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) multi_arch: Option<String>,
    /// The soname of its library.
    pub(crate) soname: Option<String>,
    #[serde(default)]
    pub(crate) depends: Vec<String>,
    #[serde(default)]
    pub(crate) recommends: Vec<String>,
    #[serde(default)]
    pub(crate) suggests: Vec<String>,
    #[serde(default)]
    pub(crate) provides: Vec<String>,
    #[serde(default)]
    pub(crate) conflicts: Vec<String>,
    #[serde(default)]
    pub(crate) replaces: Vec<String>,
    /// Maintainer scripts; each is in `packaging/debian` under the names of the package and the script.
    #[serde(default)]
    pub(crate) scripts: Vec<String>,
    pub(crate) contents: Vec<PackageContent>,
}

/// The architectures of a package.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackageArchitecture {
    /// Architectures that compiled code runs on.
    #[default]
    Any,
    /// Independent of the architecture.
    All,
}

/// An item of a package's contents.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `at`, and one of `part`, `file`, `template`, `link`, `keys`, `says` and `writes`"
)]
pub(crate) enum PackageContent {
    /// A compiled part of the matrix: a file, or the Python package in a directory.
    Part {
        #[serde(flatten)]
        compiled: PackagePart,
        at: String,
    },
    /// A file or directory of the sources.
    File { file: String, at: String },
    /// A source file with placeholders between `@` for values known at build time.
    Template { template: String, at: String },
    /// A symbolic link.
    Link { link: String, at: String },
    /// The public keys of the archive that will list the packages, if given.
    Keys { keys: PublishedKeys, at: String },
    /// The output of the command `oarlock` with these arguments.
    Says { says: Vec<String>, at: String },
    /// The files that the command writes with these arguments and a directory.
    Writes { writes: Vec<String>, at: String },
}

/// A choice of keys.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PublishedKeys {
    /// The public keys.
    Public,
}

/// A part with its build settings.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct PackagePart {
    pub(crate) part: String,
    /// True if it must not contain AVX instructions.
    #[serde(default)]
    pub(crate) without_avx: bool,
}

impl PackageSpec {
    /// True if each of its parts is in a wheel for the architecture, or in no wheel at all.
    pub(crate) fn is_built_for(&self, matrix: &WheelMatrix, architecture: CpuArchitecture) -> bool {
        let is_built = |part: &PackagePart| {
            let mut rows = matrix.wheels.iter().filter(|row| row.parts.contains(&part.part)).peekable();
            let is_for = |row: &MatrixRow| row.architecture() == Some(architecture);
            matrix.core_row(architecture, part.without_avx).is_ok()
                && (rows.peek().is_none() || rows.any(is_for))
        };
        self.contents.iter().filter_map(PackageContent::compiled_part).all(is_built)
    }
}

impl PackageContent {
    /// The part to compile for this content, if any.
    pub(crate) fn compiled_part(&self) -> Option<&PackagePart> {
        match self {
            Self::Part { compiled, .. } => Some(compiled),
            _ => None,
        }
    }

    pub(crate) fn installed_path(&self) -> &str {
        match self {
            Self::Part { at, .. }
            | Self::File { at, .. }
            | Self::Template { at, .. }
            | Self::Link { at, .. }
            | Self::Keys { at, .. }
            | Self::Says { at, .. }
            | Self::Writes { at, .. } => at,
        }
    }
}

impl PackageCatalog {
    /// Parses a catalog; `source` names it in errors.
    ///
    /// # Errors
    ///
    /// When the text is not a catalog, or names are not unique.
    pub fn from_toml(source: &str, text: &str) -> Result<Self, Error> {
        let packages: Self = toml::from_str(text).map_err(|error| Error::from_toml(source, text, &error))?;
        let refuse = |message: String| Err(Error::new(message).in_file(source));
        for (place, about) in packages.packages.iter().enumerate() {
            if packages.packages[..place].iter().any(|it| it.name == about.name) {
                return refuse(format!("expected one package of a name, found two `{}`", about.name));
            }
        }
        let is_there = |name: &&String| packages.packages.iter().any(|it| it.name == **name);
        match packages.sets.iter().flat_map(|set| &set.packages).find(|name| !is_there(name)) {
            Some(missing) => refuse(format!("expected packages in [[sets]], found no `{missing}`")),
            None => Ok(packages),
        }
    }

    /// Checks the total size of written packages against their sets.
    ///
    /// # Errors
    ///
    /// When a set is too large; the error lists the sizes of its packages.
    pub(crate) fn check_set_sizes(&self, written: &[(PathBuf, u64)]) -> Result<(), Error> {
        for set in &self.sets {
            let mut found = Vec::new();
            for name in &set.packages {
                let begin = format!("{name}_");
                let is_it =
                    |file: &Path| file.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&begin));
                found.extend(written.iter().find(|(file, _)| is_it(file)).map(|(_, bytes)| (name, *bytes)));
            }
            let bytes: u64 = found.iter().map(|(_, bytes)| bytes).sum();
            if bytes > set.budget_mb * 1_000_000 {
                let each: Vec<String> = found.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
                return Err(Error::new(format!(
                    "expected at most {} MB for the packages of the set `{}`, found {bytes} bytes: {}",
                    set.budget_mb,
                    set.name,
                    each.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Selects packages by name, or all; those with keys only if keys are given.
    ///
    /// # Errors
    ///
    /// When a name is unknown, or a package requires keys and none are given.
    pub fn select_packages(&self, names: &[String], has_keys: bool) -> Result<Vec<&PackageSpec>, Error> {
        let all = || self.packages.iter().map(|it| it.name.as_str());
        let find = |name: &String| {
            let found = self.packages.iter().find(|it| it.name == *name);
            found.ok_or_else(|| {
                let all = all().collect::<Vec<_>>().join(", ");
                Error::new(format!("expected a package, one of {all}; found `{name}`"))
            })
        };
        let lacks_keys = |about: &PackageSpec| {
            !has_keys && about.contents.iter().any(|content| matches!(content, PackageContent::Keys { .. }))
        };
        if names.is_empty() {
            return Ok(self.packages.iter().filter(|about| !lacks_keys(about)).collect());
        }
        let named: Vec<&PackageSpec> = names.iter().map(find).collect::<Result<_, _>>()?;
        match named.iter().find(|about| lacks_keys(about)) {
            Some(about) => Err(Error::new(format!(
                "expected keys for `{}`, found none; name some with `--key`",
                about.name
            ))),
            None => Ok(named),
        }
    }
}
