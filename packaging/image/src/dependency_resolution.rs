//! Resolves the Debian packages of each layer: the named ones and all their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::deb::version;
use oarlock_formats::error::Error;

use super::images::{ImageCatalog, ImageKind};
use super::lock::{DebianLock, LockedPackage};
use super::mirror::SuiteIndex;

/// The newest version of every available package.
struct PackageCandidates<'i> {
    packages: BTreeMap<&'i str, PackageCandidate<'i>>,
    /// Providers of virtual packages.
    providers: BTreeMap<&'i str, BTreeSet<&'i str>>,
}

#[derive(Clone, Copy)]
struct PackageCandidate<'i> {
    suite: &'i str,
    version: &'i str,
    paragraph: &'i ControlParagraph,
}

/// Resolves the lock of all images from the indexes of their suites.
///
/// # Errors
///
/// When a package does not exist, or a choice between packages is ambiguous.
pub fn resolve_lock(images: &ImageCatalog, indexes: &[(String, SuiteIndex)]) -> Result<DebianLock, Error> {
    let known = PackageCandidates::new(images, indexes)?;
    let nothing = BTreeMap::new();
    let mut layers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut passed_over = BTreeSet::new();
    for (name, layer) in &images.layers {
        let left_out = if layer.kind == ImageKind::Prod { &images.debian.left_out } else { &nothing };
        let needed = known.transitive_closure(&layer.debian, left_out, &mut passed_over);
        for package in needed.map_err(|error| Error::new(format!("layer `{name}`: {error}")))? {
            layers.entry(package).or_default().push(name.clone());
        }
    }
    if let Some(unused) = images.debian.left_out.keys().find(|name| !passed_over.contains(name.as_str())) {
        return Err(Error::new(format!(
            "expected a package that depends on `{unused}`, which is left out; found none"
        )));
    }
    let packages = layers.into_iter().map(|(name, layers)| known.packages[name].lock_package(name, layers));
    Ok(DebianLock {
        architecture: images.architecture,
        date: indexes.iter().map(|(_, index)| index.date).max().unwrap_or(0),
        packages: packages.collect::<Result<_, _>>()?,
    })
}

impl<'i> PackageCandidates<'i> {
    fn new(images: &ImageCatalog, indexes: &'i [(String, SuiteIndex)]) -> Result<Self, Error> {
        let mut packages: BTreeMap<&str, PackageCandidate<'_>> = BTreeMap::new();
        for (suite, index) in indexes {
            let only = images.debian.only.get(suite);
            let is_taken = |paragraph: &&ControlParagraph| {
                only.is_none_or(|only| only.contains(&source_name(paragraph)))
            };
            for paragraph in index.packages.iter().filter(is_taken) {
                let candidate =
                    PackageCandidate { suite, version: paragraph.require_field("Version")?, paragraph };
                let there = packages.entry(paragraph.require_field("Package")?).or_insert(candidate);
                if version::compare_versions(candidate.version, there.version).is_gt() {
                    *there = candidate;
                }
            }
        }
        let mut providers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, candidate) in &packages {
            for provided in dependency_alternatives(candidate.paragraph, "Provides").flatten() {
                providers.entry(provided).or_default().insert(name);
            }
        }
        Ok(Self { packages, providers })
    }

    /// The roots and all their dependencies.
    fn transitive_closure(
        &self,
        roots: &'i [String],
        left_out: &'i BTreeMap<String, String>,
        passed_over: &mut BTreeSet<&'i str>,
    ) -> Result<BTreeSet<&'i str>, Error> {
        let mut needed: BTreeSet<&str> = roots.iter().map(String::as_str).collect();
        let mut left: Vec<&str> = needed.iter().copied().collect();
        while let Some(name) = left.pop() {
            let package = self.packages.get(name).ok_or_else(|| {
                Error::new(format!("expected the package `{name}` in one of the suites, found none"))
            })?;
            let depends = ["Pre-Depends", "Depends"]
                .into_iter()
                .flat_map(|field| dependency_alternatives(package.paragraph, field));
            for choice in depends {
                if let Some((out, _)) = choice.iter().find_map(|name| left_out.get_key_value(*name)) {
                    passed_over.insert(out);
                    continue;
                }
                if choice.iter().any(|name| needed.contains(name)) {
                    continue;
                }
                let chosen = self.choose_alternative(&choice, &needed);
                let chosen = chosen.map_err(|error| Error::new(format!("`{name}` depends on {error}")))?;
                if needed.insert(chosen) {
                    left.push(chosen);
                }
            }
        }
        Ok(needed)
    }

    /// The first available alternative.
    fn choose_alternative(&self, choice: &[&'i str], needed: &BTreeSet<&'i str>) -> Result<&'i str, Error> {
        for name in choice {
            if self.packages.contains_key(name) {
                return Ok(name);
            }
            let Some(providers) = self.providers.get(name) else { continue };
            if let Some(there) = providers.intersection(needed).next() {
                return Ok(there);
            }
            let providers: Vec<&str> = providers.iter().copied().collect();
            let [only] = providers[..] else {
                return Err(Error::new(format!(
                    "`{name}`, which {} all provide; name one of them too",
                    providers.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                )));
            };
            return Ok(only);
        }
        Err(Error::new(format!("`{}`, which no package is or provides", choice.join("` or `"))))
    }
}

impl PackageCandidate<'_> {
    fn lock_package(&self, name: &str, layers: Vec<String>) -> Result<LockedPackage, Error> {
        let need = |field: &str| self.paragraph.require_field(field).map(str::to_owned);
        let size = need("Size")?;
        Ok(LockedPackage {
            name: name.to_owned(),
            version: self.version.to_owned(),
            architecture: need("Architecture")?,
            layers,
            suite: self.suite.to_owned(),
            path: need("Filename")?,
            size: size
                .parse()
                .map_err(|_| Error::new(format!("`{name}`: expected a size, found `{size}`")))?,
            sha256: need("SHA256")?,
        })
    }
}

/// The source package; its default is the name of the package.
fn source_name(paragraph: &ControlParagraph) -> String {
    let named = paragraph.get("Source").or_else(|| paragraph.get("Package")).unwrap_or_default();
    named.split(' ').next().unwrap_or_default().to_owned()
}

/// The alternatives of each dependency in a field such as `Depends`, without versions and architectures.
pub(super) fn dependency_alternatives<'p>(
    paragraph: &'p ControlParagraph,
    field: &str,
) -> impl Iterator<Item = Vec<&'p str>> {
    let value = paragraph.get(field).unwrap_or_default();
    let choices = value.split(',').map(str::trim).filter(|choice| !choice.is_empty());
    choices.map(|choice| {
        let names =
            choice.split('|').map(|one| one.trim().split([' ', '(', '[', ':']).next().unwrap_or_default());
        names.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oarlock_matrix::CpuArchitecture;

    const PACKAGES_TEXT: &str = "\
Package: base
Version: 1
Depends: libc (>= 2) | other, left, virtual

Package: libc
Version: 2.9

Package: python
Version: 3
Pre-Depends: libc:any
Depends: base [amd64], one-of-two | two

Package: provider
Version: 1
Provides: virtual (= 1), many

Package: second
Version: 1
Provides: many

Package: two
Version: 1
";

    const BACKPORTS_TEXT: &str = "\
Package: python
Version: 4

Package: tool
Source: tools (2)
Version: 2
Depends: left, tool-library

Package: tool-library
Source: tools
Version: 2
";

    fn example_indexes(packages: &str) -> Vec<(String, SuiteIndex)> {
        let index = |text: &str, date| {
            let mut packages = ControlParagraph::parse_all(text).expect("packages");
            for paragraph in &mut packages {
                let name = paragraph.require_field("Package").expect("a name").to_owned();
                paragraph.set("Architecture", "amd64");
                paragraph.set("Filename", &format!("pool/{name}.deb"));
                paragraph.set("Size", "1");
                paragraph.set("SHA256", &"00".repeat(32));
            }
            SuiteIndex { packages, date }
        };
        let newer = "Package: libc\nVersion: 2.10\n";
        vec![
            ("security".to_owned(), index(newer, 5)),
            ("main".to_owned(), index(packages, 9)),
            ("old".to_owned(), index("Package: libc\nVersion: 1\n", 1)),
            ("backports".to_owned(), index(BACKPORTS_TEXT, 1)),
        ]
    }

    fn resolve_example(packages: &str, roots: &str) -> Result<DebianLock, Error> {
        let text = format!(
            "name = \"x\"\n[debian]\nsuites = []\narchitectures = [\"amd64\"]\nleft_out.left = \"w\"\nonly.backports = []\n\
             [layers.base]\npurpose = \"p\"\ndebian = [\"base\"]\n[layers.more]\npurpose = \"p\"\ndebian = {roots}\n\
             [[images]]\nsuffix = \"\"\ntitle = \"t\"\nlayers = [\"base\", \"more\"]\nbudget_mb = 1\n"
        );
        let images = ImageCatalog::from_toml("images.toml", &text, CpuArchitecture::X86_64).expect("images");
        resolve_lock(&images, &example_indexes(packages))
    }

    #[test]
    fn a_layer_needs_what_is_named_and_all_that_it_depends_on() {
        let lock = resolve_example(PACKAGES_TEXT, "[\"python\"]").expect("a lock");
        let said: Vec<String> = lock
            .packages
            .iter()
            .map(|it| format!("{} {} {} {}", it.name, it.version, it.suite, it.layers.join("+")))
            .collect();
        assert_eq!(
            said,
            [
                "base 1 main base+more",
                "libc 2.10 security base+more",
                "provider 1 main base+more",
                "python 3 main more",
                "two 1 main more",
            ]
        );
        assert_eq!(lock.date, 9);
    }

    #[test]
    fn of_some_suites_nothing_is_taken_but_what_is_built_of_named_sources() {
        let images = |only: &str| {
            let text = format!(
                "name = \"x\"\n[debian]\nsuites = []\narchitectures = [\"amd64\"]\nleft_out.left = \"w\"\nonly.backports = {only}\n\
                 [layers.run]\npurpose = \"p\"\ndebian = [\"python\"]\n\
                 [layers.build]\nkind = \"dev\"\npurpose = \"p\"\ndebian = [\"tool\", \"left\"]\n\
                 [[images]]\nsuffix = \"\"\ntitle = \"t\"\nlayers = [\"run\"]\nbudget_mb = 1\n\
                 [[images]]\nsuffix = \"-dev\"\ntitle = \"t\"\nlayers = [\"build\"]\nbudget_mb = 1\n"
            );
            ImageCatalog::from_toml("images.toml", &text, CpuArchitecture::X86_64).expect("images")
        };
        let packages = format!("{PACKAGES_TEXT}\nPackage: left\nVersion: 1\n");
        let lock = |only: &str| resolve_lock(&images(only), &example_indexes(&packages));
        let of_tools = lock("[\"tools\"]").expect("a lock");
        let said = |name: &str| {
            of_tools
                .packages
                .iter()
                .find(|it| it.name == name)
                .map(|it| (it.version.as_str(), it.suite.as_str()))
        };
        assert_eq!(said("python"), Some(("3", "main")));
        assert_eq!(said("tool-library"), Some(("2", "backports")));
        // Build images contain the packages that `prod` images leave out.
        let of_build: Vec<&str> = of_tools.packages_of_layer("build").map(|it| it.name.as_str()).collect();
        assert_eq!(of_build, ["left", "tool", "tool-library"]);
        let error = lock("[\"others\"]").expect_err("a refusal").to_string();
        assert_eq!(error, "layer `build`: expected the package `tool` in one of the suites, found none");
    }

    #[test]
    fn what_cannot_be_chosen_is_said_with_who_needs_it() {
        let refused = |packages: &str, roots: &str| {
            resolve_example(packages, roots).expect_err("a refusal").to_string()
        };
        let nowhere = refused(PACKAGES_TEXT, "[\"nothing\"]");
        assert_eq!(nowhere, "layer `more`: expected the package `nothing` in one of the suites, found none");
        let many = PACKAGES_TEXT.replace("one-of-two | two", "many");
        assert!(
            refused(&many, "[\"python\"]")
                .contains("`python` depends on `many`, which `provider`, `second` all provide")
        );
        assert!(resolve_example(&many, "[\"python\", \"second\"]").is_ok());
        let missing = PACKAGES_TEXT.replace("one-of-two | two", "neither | nor");
        assert!(
            refused(&missing, "[\"python\"]").contains("`neither` or `nor`, which no package is or provides")
        );
        let stale = PACKAGES_TEXT.replace("left, ", "");
        assert!(refused(&stale, "[]").contains("depends on `left`, which is left out"));
    }
}
