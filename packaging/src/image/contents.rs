//! What an image may be: of the packages that the lock and its layers name, and, where it is to run programs, of what those brought,
//! as they brought it, and of nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::config::{Config, Described};
use super::images::{Image as About, Images, Kind};
use super::lock::Lock;
use super::read::Image;
use super::root::{self, AUTHORITIES, LISTS_OF_FILES, Root, STATUS, runs_as_others};
use crate::deb::control::Paragraph;
use crate::deb::md5;
use crate::error::Error;
use crate::tree::{Entry, Node, Tree};

/// Programs that make programs, or are of those that do.
const COMPILERS: [&str; 28] = [
    "ar", "as", "c++", "c89", "c99", "cargo", "cc", "cc1", "cc1plus", "clang", "clang++", "collect2", "cpp",
    "g++", "gcc", "gfortran", "go", "gold", "ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "nvcc", "ptxas",
    "rustc", "tcc", "zig",
];

/// What an image is held to.
pub(crate) struct Expected<'e> {
    pub(crate) images: &'e Images,
    pub(crate) image: &'e About,
    pub(crate) lock: &'e Lock,
}

impl Expected<'_> {
    /// That an image is such a one. Gives all that a container sees of it.
    ///
    /// # Errors
    ///
    /// When it has another package, lacks one, has a file that is of none or not as that brought it, a program that makes programs or
    /// is run as somebody else, a link that leads nowhere, or says something else of itself.
    pub(crate) fn check(&self, found: &Image) -> Result<Tree, Error> {
        self.check_config(found)?;
        let mut tree = Tree::default();
        for layer in &found.layers {
            check_over(&tree, &layer.tree)?;
            tree.lay(layer.tree.clone())?;
        }
        let packages = self.packages(&tree)?;
        if self.images.kind(self.image)? == Kind::Prod {
            self.check_files(&tree, &packages)?;
        }
        Ok(tree)
    }

    /// That an image says of itself, to the last word, what one of these layers should.
    fn check_config(&self, found: &Image) -> Result<(), Error> {
        let version = found.tag.strip_suffix(&self.image.suffix).unwrap_or(&found.tag);
        let seconds = found.layers.first().map_or(0, |layer| layer.seconds);
        if found.layers.iter().any(|layer| layer.seconds != seconds) {
            return Err(Error::new("expected layers of one time, found several"));
        }
        let mut described = Vec::new();
        for (name, layer) in self.image.layers.iter().zip(&found.layers) {
            let purpose = &self.images.layer(name)?.purpose;
            described.push(Described { name, purpose, packed: &layer.packed });
        }
        let expected = Config::of(self.images, self.image, version, seconds)?.to_json(&described);
        let Some((name, expected, found)) = difference("", &expected, &found.config) else { return Ok(()) };
        Err(Error::new(format!("expected {expected} as `{name}` of the image, found {found}")))
    }

    /// The names of the packages that are installed, which are those of the lock and of the layers.
    fn packages(&self, tree: &Tree) -> Result<BTreeSet<String>, Error> {
        let locked = self.lock.of_images(&[self.image]).into_iter();
        let locked = locked.map(|it| (it.name.as_str(), Some(it.version.as_str())));
        let own = self.images.own_of(self.image)?.into_iter().map(|name| (name, None));
        let mut expected: BTreeMap<&str, Option<&str>> = locked.chain(own).collect();
        let status = tree.file(STATUS).ok_or_else(|| missing(STATUS))?;
        let mut names = BTreeSet::new();
        for package in Paragraph::read(&String::from_utf8_lossy(status))? {
            let (name, version) = (package.need("Package")?, package.need("Version")?);
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

    /// That files are those that packages brought, and those that every image has.
    fn check_files(&self, tree: &Tree, packages: &BTreeSet<String>) -> Result<(), Error> {
        let ours = Root::of_no_package(self.images, self.image)?;
        let authorities = root::authorities(tree);
        let brought = Brought::of(tree, packages);
        for (path, package) in &brought.files {
            if tree.file(path).is_none_or(|bytes| md5(bytes) != package.hash) {
                let (name, found) =
                    (package.name, if tree.get(path).is_some() { "another one" } else { "none" });
                return Err(Error::new(format!(
                    "expected `{path}` as the package `{name}` brought it, found {found}"
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
            let is_known = ours.get(path).is_some() || brought.has(path, entry);
            let unwanted = match &entry.node {
                _ if is_compiler(path, entry) => "no compiler in an image to run programs",
                _ if runs_as_others(entry) => "no program that runs as somebody else",
                Node::Link(_) if !tree.leads(path) => "links to what is there",
                _ if ours.get(path).is_none() && !is_usual(path, entry) => {
                    "what root alone may change, and programs that may be run"
                }
                Node::File(bytes) if path == AUTHORITIES && Some(&**bytes) == authorities.as_deref() => {
                    continue;
                }
                Node::File(_) | Node::Link(_) if !is_known => "no file that no package brought",
                _ => continue,
            };
            return Err(Error::new(format!("expected {unwanted}, found `{path}`")));
        }
        Ok(())
    }
}

/// That a layer takes nothing away of those below, and goes through no link of them: engines would put a directory there.
fn check_over(below: &Tree, layer: &Tree) -> Result<(), Error> {
    for (path, entry) in layer.entries() {
        let refuse = |what: &str| Err(Error::new(format!("expected layers that {what}, found `{path}`")));
        if path.rsplit('/').next().is_some_and(|name| name.starts_with(".wh.")) {
            return refuse("take nothing away of those below");
        }
        let is_link = |there: &Entry| matches!(there.node, Node::Link(_));
        let is_over_link = entry.node == Node::Directory && below.get(path).is_some_and(is_link);
        if is_over_link || below.through_links(path)? != path {
            return refuse("go through no link of those below");
        }
    }
    Ok(())
}

/// What is first not as expected, by its name: what should be there, and what is.
fn difference(name: &str, expected: &Value, found: &Value) -> Option<(String, String, String)> {
    let shown = |value: &Value| if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    match (expected, found) {
        (Value::Object(wanted), Value::Object(there)) => wanted.keys().chain(there.keys()).find_map(|key| {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            difference(&name, &expected[key], &found[key])
        }),
        _ if expected == found => None,
        _ => Some((name.to_owned(), shown(expected), shown(found))),
    }
}

/// Whether something is as packages bring it: root's, and nobody else's to change; where programs lie, everybody may run it.
fn is_usual(path: &str, entry: &Entry) -> bool {
    let is_program = ["usr/bin/", "usr/sbin/"].iter().any(|directory| path.starts_with(directory));
    let modes: &[u32] = match entry.node {
        Node::Directory => &[0o755],
        Node::Link(_) => &[0o777],
        Node::File(_) if is_program => &[0o755],
        Node::File(_) => &[0o644, 0o755],
    };
    entry.owner == (0, 0) && modes.contains(&entry.mode)
}

/// The files that a package brought into an image.
pub(crate) fn files_of<'t>(tree: &'t Tree, package: &str) -> impl Iterator<Item = (String, &'t [u8])> {
    let brought = Brought::of(tree, &[package.to_owned()].into());
    brought.files.into_keys().filter_map(|path| tree.file(&path).map(|bytes| (path, bytes)))
}

/// What packages brought, as lists in the image say.
struct Brought<'t> {
    files: BTreeMap<String, Package<'t>>,
    /// Those, links and directories.
    paths: BTreeSet<String>,
    /// Where the lists are.
    lists: BTreeSet<&'t str>,
}

/// The package that brought a file, and the hash of what it brought.
struct Package<'t> {
    name: &'t str,
    hash: &'t str,
}

impl<'t> Brought<'t> {
    /// By packages that are installed.
    fn of(tree: &'t Tree, installed: &BTreeSet<String>) -> Self {
        let mut brought = Self { files: BTreeMap::new(), paths: BTreeSet::new(), lists: BTreeSet::new() };
        // What a package has below `/lib` lies where that leads.
        let place = |path: &str| tree.through_links(path).unwrap_or_else(|_| path.to_owned());
        for (list, bytes) in tree.files() {
            let named = list.strip_prefix(LISTS_OF_FILES).and_then(|name| name.rsplit_once('.'));
            let Some((name, kind)) = named else { continue };
            let name = name.split(':').next().unwrap_or_default();
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            match kind {
                _ if !installed.contains(name) => continue,
                "list" => brought.paths.extend(text.lines().map(place)),
                "md5sums" => {
                    let lines = text.lines().filter_map(|line| line.split_once("  "));
                    brought.files.extend(lines.map(|(hash, path)| (place(path), Package { name, hash })));
                }
                _ => continue,
            }
            brought.lists.insert(list);
        }
        brought
    }

    /// Whether something is of packages, or made of that: a list of it, or what Python compiled of a module.
    fn has(&self, path: &str, entry: &Entry) -> bool {
        match entry.node {
            Node::Directory | Node::Link(_) => self.paths.contains(path),
            Node::File(_) => {
                let is_module = |path: &String| self.files.contains_key(path);
                path == STATUS
                    || self.lists.contains(path)
                    || self.files.contains_key(path)
                    || module(path).as_ref().is_some_and(is_module)
            }
        }
    }
}

/// The module that compiled bytes of Python are of, such as `a/b.py` for `a/__pycache__/b.cpython-313.pyc`.
fn module(path: &str) -> Option<String> {
    let (directory, name) = path.split_once("__pycache__/")?;
    let (name, version) = name.strip_suffix(".pyc")?.rsplit_once('.')?;
    (version.starts_with("cpython-") && !name.contains('/')).then(|| format!("{directory}{name}.py"))
}

/// Whether something is, or leads to, a program that makes programs, under a name such as `gcc` or `x86_64-linux-gnu-gcc-14`.
fn is_compiler(path: &str, entry: &Entry) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let short = name.trim_end_matches(|last: char| last.is_ascii_digit() || "-.".contains(last));
    let short = short.rsplit_once("-linux-gnu-").map_or(short, |(_, short)| short);
    let may_run = match entry.node {
        Node::Directory => false,
        Node::File(_) => entry.mode & 0o111 != 0,
        Node::Link(_) => true,
    };
    may_run && [name, short].iter().any(|name| COMPILERS.contains(name))
}

fn missing(path: &str) -> Error {
    Error::new(format!("expected `{path}` in the image, found none"))
}
