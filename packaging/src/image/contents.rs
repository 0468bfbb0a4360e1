//! What an image to run programs may have in it: what packages brought, as they brought it, and no programs but those.

use std::collections::BTreeMap;

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
const BROUGHT: (&str, &str) = ("var/lib/dpkg/info/", ".md5sums");

/// That there is nothing else in layers, of which the first is the lowest.
///
/// # Errors
///
/// When a file of a package is gone or another one, a program is of no package, is run as somebody else, or makes programs.
pub(crate) fn check(layers: &[Tree]) -> Result<(), Error> {
    let all: BTreeMap<&str, &Entry> = layers.iter().flat_map(Tree::entries).collect();
    let files = all.iter().filter_map(|(path, entry)| match &entry.node {
        Node::File(bytes) => Some((*path, &**bytes, *entry)),
        Node::Directory | Node::Link(_) => None,
    });
    let files: Vec<(&str, &[u8], &Entry)> = files.collect();
    let mut brought: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for (list, bytes, _) in &files {
        let package = list.strip_prefix(BROUGHT.0).and_then(|list| list.strip_suffix(BROUGHT.1));
        let lines = package.and_then(|package| Some((package, std::str::from_utf8(bytes).ok()?)));
        for (package, line) in
            lines.iter().flat_map(|(package, text)| text.lines().map(move |line| (*package, line)))
        {
            brought.extend(line.split_once("  ").map(|(hash, path)| (path, (package, hash))));
        }
    }
    let here: BTreeMap<&str, &[u8]> = files.iter().map(|(path, bytes, _)| (*path, *bytes)).collect();
    for (path, (package, hash)) in &brought {
        let found = match here.get(path) {
            Some(bytes) if md5(bytes) == *hash => continue,
            Some(_) => "another one",
            None => "none",
        };
        return Err(Error::new(format!(
            "expected `{path}` as the package `{package}` brought it, found {found}"
        )));
    }
    for (path, bytes, file) in files {
        if is_compiler(path) {
            return Err(Error::new(format!(
                "expected no compiler in an image to run programs, found `{path}`"
            )));
        }
        if runs_as_others(file) {
            return Err(Error::new(format!(
                "expected no program that runs as somebody else, found `{path}`"
            )));
        }
        let is_program = file.mode & 0o111 != 0 || is_compiled(bytes);
        if is_program && !brought.contains_key(path) && !is_ours(path) {
            return Err(Error::new(format!("expected no program that no package brought, found `{path}`")));
        }
    }
    Ok(())
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
