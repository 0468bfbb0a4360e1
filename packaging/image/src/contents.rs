//! Checks the contents of an image: it contains the packages of the lock and of its layers. A `prod` image contains exactly
//! their files, unchanged.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::deb::md5_hex;
use oarlock_formats::error::Error;
use oarlock_formats::tree::{FileTree, TreeEntry, TreeNode};

use super::config::{DescribedLayer, ImageConfig};
use super::image_reader::LoadedImage;
use super::image_root::{
    self, CA_CERTIFICATES, DPKG_INFO_DIRECTORY, DPKG_STATUS, ImageRoot, is_setuid_or_setgid,
};
use super::images::{ImageCatalog, ImageKind, ImageSpec};
use super::lock::DebianLock;
use serde_json::Value;

/// Compilers, linkers and their internal programs.
const COMPILER_NAMES: [&str; 28] = [
    "ar", "as", "c++", "c89", "c99", "cargo", "cc", "cc1", "cc1plus", "clang", "clang++", "collect2", "cpp",
    "g++", "gcc", "gfortran", "go", "gold", "ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "nvcc", "ptxas",
    "rustc", "tcc", "zig",
];

/// An image specification to check archives against.
pub struct ExpectedImage<'e> {
    /// The catalog that it is in.
    pub images: &'e ImageCatalog,
    /// The image.
    pub image: &'e ImageSpec,
    /// The Debian packages in images.
    pub lock: &'e DebianLock,
}

impl ExpectedImage<'_> {
    /// Checks an image, and returns its files as a container sees them.
    ///
    /// # Errors
    ///
    /// When a package is missing or unexpected, a file is unknown or modified, a program is a compiler or setuid, a link is
    /// broken, or the configuration differs.
    pub fn check_image(&self, found: &LoadedImage) -> Result<FileTree, Error> {
        self.check_config(found)?;
        let mut tree = FileTree::default();
        for layer in &found.layers {
            check_overlay(&tree, &layer.tree)?;
            tree.overlay_tree(layer.tree.clone())?;
        }
        let packages = self.installed_packages(&tree)?;
        if self.images.kind_of_image(self.image)? == ImageKind::Prod {
            self.check_files(&tree, &packages)?;
        }
        Ok(tree)
    }

    /// Checks that the configuration is exactly the one that follows from the layers.
    fn check_config(&self, found: &LoadedImage) -> Result<(), Error> {
        let version = found.tag.strip_suffix(&self.image.suffix).unwrap_or(&found.tag);
        let seconds = found.layers.first().map_or(0, |layer| layer.seconds);
        if found.layers.iter().any(|layer| layer.seconds != seconds) {
            return Err(Error::new("expected layers of one time, found several"));
        }
        let mut described = Vec::new();
        for (name, layer) in self.image.layers.iter().zip(&found.layers) {
            let purpose = &self.images.find_layer(name)?.purpose;
            described.push(DescribedLayer { name, purpose, packed: &layer.packed });
        }
        let expected = ImageConfig::for_image(self.images, self.image, version, seconds)?.to_json(&described);
        let Some((name, expected, found)) = first_difference("", &expected, &found.config) else {
            return Ok(());
        };
        Err(Error::new(format!("expected {expected} as `{name}` of the image, found {found}")))
    }

    /// The names of the installed packages, which must be those of the lock and the layers.
    fn installed_packages(&self, tree: &FileTree) -> Result<BTreeSet<String>, Error> {
        let locked = self.lock.packages_of_images(&[self.image]).into_iter();
        let locked = locked.map(|it| (it.name.as_str(), Some(it.version.as_str())));
        let own = self.images.own_packages(self.image)?.into_iter().map(|name| (name, None));
        let mut expected: BTreeMap<&str, Option<&str>> = locked.chain(own).collect();
        let status = tree.file_bytes(DPKG_STATUS).ok_or_else(|| missing_file(DPKG_STATUS))?;
        let mut names = BTreeSet::new();
        for package in ControlParagraph::parse_all(&String::from_utf8_lossy(status))? {
            let (name, version) = (package.require_field("Package")?, package.require_field("Version")?);
            match expected.remove(name) {
                Some(wanted) if wanted.is_none_or(|wanted| wanted == version) => {}
                Some(wanted) => {
                    let wanted = wanted.unwrap_or_default();
                    return Err(Error::new(format!(
                        "expected `{name}` {wanted} in the image, as the lock names it; found {version}"
                    )));
                }
                None => {
                    let image = self.image.label();
                    return Err(Error::new(format!(
                        "expected no package `{name}` in the image `{image}`, found one"
                    )));
                }
            }
            names.insert(name.to_owned());
        }
        match expected.into_keys().next() {
            Some(name) => Err(Error::new(format!("expected the package `{name}` in the image, found none"))),
            None => Ok(names),
        }
    }

    /// Checks that each file comes from a package, unchanged, or is part of every image.
    fn check_files(&self, tree: &FileTree, packages: &BTreeSet<String>) -> Result<(), Error> {
        let ours = ImageRoot::base_files(self.images, self.image)?;
        let authorities = image_root::bundle_ca_certificates(tree);
        let packaged = InstalledFiles::of_packages(tree, packages);
        for (path, package) in &packaged.files {
            if tree.file_bytes(path).is_none_or(|bytes| md5_hex(bytes) != package.hash) {
                let (name, found) =
                    (package.name, if tree.get(path).is_some() { "another one" } else { "none" });
                return Err(Error::new(format!(
                    "expected `{path}` as the package `{name}` installed it, found {found}"
                )));
            }
        }
        for (path, entry) in ours.entries() {
            if tree.get(path) != Some(entry) {
                return Err(Error::new(format!(
                    "expected `{path}` as every such image has it, found another one or none"
                )));
            }
        }
        for (path, entry) in tree.entries() {
            let is_known = ours.get(path).is_some() || packaged.is_from_package(path, entry);
            let unwanted = match &entry.node {
                _ if is_compiler(path, entry) => "no compiler in an image to run programs",
                _ if is_setuid_or_setgid(entry) => "no setuid or setgid program",
                TreeNode::Link(_) if !tree.resolves_to_entry(path) => "links to what is there",
                _ if ours.get(path).is_none() && !has_usual_permissions(path, entry) => {
                    "what root alone may change, and programs that may be run"
                }
                TreeNode::File(bytes)
                    if path == CA_CERTIFICATES && Some(&**bytes) == authorities.as_deref() =>
                {
                    continue;
                }
                TreeNode::File(_) | TreeNode::Link(_) if !is_known => "no file that no package installed",
                _ => continue,
            };
            return Err(Error::new(format!("expected {unwanted}, found `{path}`")));
        }
        Ok(())
    }
}

/// Checks that a layer deletes nothing and writes through no link of a lower layer: engines would replace such a link with a
/// directory.
fn check_overlay(below: &FileTree, layer: &FileTree) -> Result<(), Error> {
    for (path, entry) in layer.entries() {
        let refuse = |what: &str| Err(Error::new(format!("expected layers that {what}, found `{path}`")));
        if path.rsplit('/').next().is_some_and(|name| name.starts_with(".wh.")) {
            return refuse("take nothing away of those below");
        }
        let is_link = |there: &TreeEntry| matches!(there.node, TreeNode::Link(_));
        let is_over_link = entry.node == TreeNode::Directory && below.get(path).is_some_and(is_link);
        if is_over_link || below.resolve_parent_links(path)? != path {
            return refuse("go through no link of those below");
        }
    }
    Ok(())
}

/// The first difference between two configurations: its name, the expected value and the found one.
fn first_difference(name: &str, expected: &Value, found: &Value) -> Option<(String, String, String)> {
    let shown = |value: &Value| if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    match (expected, found) {
        (Value::Object(wanted), Value::Object(there)) => wanted.keys().chain(there.keys()).find_map(|key| {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            first_difference(&name, &expected[key], &found[key])
        }),
        _ if expected == found => None,
        _ => Some((name.to_owned(), shown(expected), shown(found))),
    }
}

/// True if owner and mode are those of packaged files: owned by root, writable by root alone, and executable in program
/// directories.
fn has_usual_permissions(path: &str, entry: &TreeEntry) -> bool {
    let is_program = ["usr/bin/", "usr/sbin/"].iter().any(|directory| path.starts_with(directory));
    let modes: &[u32] = match entry.node {
        TreeNode::Directory => &[0o755],
        TreeNode::Link(_) => &[0o777],
        TreeNode::File(_) if is_program => &[0o755],
        TreeNode::File(_) => &[0o644, 0o755],
    };
    entry.owner == (0, 0) && modes.contains(&entry.mode)
}

/// The files that a package installed in an image.
pub fn package_files<'t>(tree: &'t FileTree, package: &str) -> impl Iterator<Item = (String, &'t [u8])> {
    let packaged = InstalledFiles::of_packages(tree, &[package.to_owned()].into());
    packaged.files.into_keys().filter_map(|path| tree.file_bytes(&path).map(|bytes| (path, bytes)))
}

/// The files of installed packages, from dpkg's lists in the image.
struct InstalledFiles<'t> {
    files: BTreeMap<String, InstalledFile<'t>>,
    /// All paths, including links and directories.
    paths: BTreeSet<String>,
    /// The paths of the lists themselves.
    lists: BTreeSet<&'t str>,
}

/// The package that installed a file, and the hash that it recorded.
struct InstalledFile<'t> {
    name: &'t str,
    hash: &'t str,
}

impl<'t> InstalledFiles<'t> {
    /// Reads the lists of these packages.
    fn of_packages(tree: &'t FileTree, installed: &BTreeSet<String>) -> Self {
        let mut packaged = Self { files: BTreeMap::new(), paths: BTreeSet::new(), lists: BTreeSet::new() };
        // `/lib` is a link, so a packaged path below it must be resolved.
        let place = |path: &str| tree.resolve_parent_links(path).unwrap_or_else(|_| path.to_owned());
        for (list, bytes) in tree.files() {
            let named = list.strip_prefix(DPKG_INFO_DIRECTORY).and_then(|name| name.rsplit_once('.'));
            let Some((name, kind)) = named else { continue };
            let name = name.split(':').next().unwrap_or_default();
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            match kind {
                _ if !installed.contains(name) => continue,
                "list" => packaged.paths.extend(text.lines().map(place)),
                "md5sums" => {
                    let lines = text.lines().filter_map(|line| line.split_once("  "));
                    packaged
                        .files
                        .extend(lines.map(|(hash, path)| (place(path), InstalledFile { name, hash })));
                }
                _ => continue,
            }
            packaged.lists.insert(list);
        }
        packaged
    }

    /// True if a path comes from a package, or is a package list or compiled Python bytecode.
    fn is_from_package(&self, path: &str, entry: &TreeEntry) -> bool {
        match entry.node {
            TreeNode::Directory | TreeNode::Link(_) => self.paths.contains(path),
            TreeNode::File(_) => {
                let is_module = |path: &String| self.files.contains_key(path);
                path == DPKG_STATUS
                    || self.lists.contains(path)
                    || self.files.contains_key(path)
                    || bytecode_source(path).as_ref().is_some_and(is_module)
            }
        }
    }
}

/// The source of a bytecode file, such as `a/b.py` for `a/__pycache__/b.cpython-313.pyc`.
fn bytecode_source(path: &str) -> Option<String> {
    let (directory, name) = path.split_once("__pycache__/")?;
    let (name, version) = name.strip_suffix(".pyc")?.rsplit_once('.')?;
    (version.starts_with("cpython-") && !name.contains('/')).then(|| format!("{directory}{name}.py"))
}

/// True for a compiler or a link to one, including names such as `x86_64-linux-gnu-gcc-14`.
fn is_compiler(path: &str, entry: &TreeEntry) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let short = name.trim_end_matches(|last: char| last.is_ascii_digit() || "-.".contains(last));
    let short = short.rsplit_once("-linux-gnu-").map_or(short, |(_, short)| short);
    let may_run = match entry.node {
        TreeNode::Directory => false,
        TreeNode::File(_) => entry.mode & 0o111 != 0,
        TreeNode::Link(_) => true,
    };
    may_run && [name, short].iter().any(|name| COMPILER_NAMES.contains(name))
}

fn missing_file(path: &str) -> Error {
    Error::new(format!("expected `{path}` in the image, found none"))
}
