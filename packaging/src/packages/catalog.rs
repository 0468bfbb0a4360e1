//! The packages as they are written down.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;
use crate::matrix::checked_values::deserialize_address;

/// A file that describes packages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageCatalog {
    /// Who answers for them.
    pub(crate) maintainer: String,
    /// Where people read more.
    #[serde(deserialize_with = "deserialize_address")]
    pub(crate) homepage: String,
    /// What counts packages of one version of Oarlock.
    pub revision: u32,
    #[serde(default)]
    pub(crate) sets: Vec<PackageSet>,
    /// All of them.
    pub(crate) packages: Vec<PackageSpec>,
}

/// Packages that together take no more than so much.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackageSet {
    pub(crate) name: String,
    pub(crate) packages: Vec<String>,
    pub(crate) budget_mb: u64,
}

/// What is said of a package, and what is in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageSpec {
    /// What it is called.
    pub name: String,
    pub(crate) section: String,
    #[serde(default)]
    pub(crate) architecture: PackageArchitecture,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) multi_arch: Option<String>,
    /// What programs find its library by.
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
    /// What runs when it comes and goes; each lies in `packaging/debian` under the names of both.
    #[serde(default)]
    pub(crate) scripts: Vec<String>,
    pub(crate) contents: Vec<PackageContent>,
}

/// Which machines a package is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackageArchitecture {
    /// Those that what is compiled runs on.
    #[default]
    Any,
    /// All.
    All,
}

/// Something that lies in a package.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `at`, and one of `part`, `file`, `template`, `link`, `keys`, `says` and `writes`"
)]
pub(crate) enum PackageContent {
    /// What is compiled of a part of the matrix: a file, or the Python package in a directory.
    Part {
        #[serde(flatten)]
        compiled: PackagePart,
        at: String,
    },
    /// A file or a directory of the sources.
    File { file: String, at: String },
    /// A file of the sources in which names between `@` stand for what is known only here.
    Template { template: String, at: String },
    /// A symbolic link.
    Link { link: String, at: String },
    /// The keys that vouch for the archive which the packages are to lie in, where they are given.
    Keys { keys: PublishedKeys, at: String },
    /// What the command says when it is asked this.
    Says { says: Vec<String>, at: String },
    /// The files that it writes when it is asked this and the directory.
    Writes { writes: Vec<String>, at: String },
}

/// Which keys are meant.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PublishedKeys {
    /// Those that can be known to everybody.
    Public,
}

/// A part as it is compiled.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct PackagePart {
    pub(crate) part: String,
    /// Whether no instruction of AVX may lie in it.
    #[serde(default)]
    pub(crate) without_avx: bool,
}

impl PackageContent {
    /// The part that is compiled for it, if one is.
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
    /// Reads the packages; `source` is what errors call the text.
    ///
    /// # Errors
    ///
    /// When the text describes no packages, or two of one name.
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

    /// That packages that were written take together no more than their sets allow.
    ///
    /// # Errors
    ///
    /// When a set takes more; the error says which package takes what.
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

    /// Those of these names, or all; those that have keys only where keys are given.
    ///
    /// # Errors
    ///
    /// When there is none of a name, or one is named that has keys, and none are given.
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
