//! What an image to run programs may have in it: what packages brought, as they brought it, and no programs but those.

use std::collections::{BTreeMap, BTreeSet};

use super::images::Kind;
use super::notebook;
use super::root::{entry, runs_as_others};
use crate::deb::md5;
use crate::error::Error;
use crate::library::is_compiled;
use crate::tree::{Entry, Node, Tree};

/// Programs that make programs.
const COMPILERS: [&str; 15] = [
    "ar", "as", "c++", "c89", "c99", "cargo", "cc", "clang", "clang++", "cpp", "g++", "gcc", "ld", "nvcc",
    "rustc",
];

/// Where an image says what the files of its packages are.
const LISTS: (&str, &str) = ("var/lib/dpkg/info/", ".md5sums");

/// That there is nothing else in layers, of which the first is the lowest.
///
/// # Errors
///
/// When a file of a package is gone or another one, a program is of no package, is run as somebody else, or makes programs.
pub(crate) fn check(layers: &[Tree]) -> Result<(), Error> {
    let all: BTreeMap<&str, &Entry> = layers.iter().flat_map(Tree::entries).collect();
    let files: BTreeMap<&str, (&[u8], &Entry)> = all.into_iter().filter_map(file).collect();
    let brought: Vec<Brought<'_>> =
        files.iter().flat_map(|(path, (bytes, _))| brought(path, bytes)).collect();
    for Brought { path, package, hash } in &brought {
        let found = match files.get(path) {
            Some((bytes, _)) if md5(bytes) == *hash => continue,
            Some(_) => "another one",
            None => "none",
        };
        return Err(Error::new(format!(
            "expected `{path}` as the package `{package}` brought it, found {found}"
        )));
    }
    let brought: BTreeSet<&str> = brought.iter().map(|it| it.path).collect();
    for (path, (bytes, entry)) in files {
        let is_program = entry.mode & 0o111 != 0 || is_compiled(bytes);
        let unwanted = if is_compiler(path) {
            "no compiler in an image to run programs"
        } else if runs_as_others(entry) {
            "no program that runs as somebody else"
        } else if is_program && !brought.contains(path) && !is_ours(path) {
            "no program that no package brought"
        } else {
            continue;
        };
        return Err(Error::new(format!("expected {unwanted}, found `{path}`")));
    }
    Ok(())
}

/// What is at a path, where that is a file.
fn file<'t>((path, entry): (&'t str, &'t Entry)) -> Option<(&'t str, (&'t [u8], &'t Entry))> {
    match &entry.node {
        Node::File(bytes) => Some((path, (bytes, entry))),
        Node::Directory | Node::Link(_) => None,
    }
}

/// A file that a package brought.
struct Brought<'t> {
    path: &'t str,
    package: &'t str,
    hash: &'t str,
}

/// The files that a list says a package brought, if it is such a list.
fn brought<'t>(list: &'t str, bytes: &'t [u8]) -> impl Iterator<Item = Brought<'t>> {
    let package = list.strip_prefix(LISTS.0).and_then(|list| list.strip_suffix(LISTS.1));
    let text = package.and_then(|_| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    text.lines().filter_map(move |line| {
        let (hash, path) = line.split_once("  ")?;
        Some(Brought { path, package: package?, hash })
    })
}

/// Whether it is what images are made with, beside packages.
fn is_ours(path: &str) -> bool {
    path == entry(Kind::Prod) || path.strip_prefix("usr/bin/") == Some(notebook::PROGRAM)
}

/// Whether a file is a program that makes programs, under a name such as `gcc` or `x86_64-linux-gnu-gcc-14`.
fn is_compiler(path: &str) -> bool {
    let Some((directory, name)) = path.rsplit_once('/') else { return false };
    let name = name.trim_end_matches(|last: char| last.is_ascii_digit() || "-.".contains(last));
    let name = name.rsplit_once("-linux-gnu-").map_or(name, |(_, name)| name);
    directory.ends_with("bin") && COMPILERS.contains(&name)
}
