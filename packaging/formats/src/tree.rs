//! File trees: the contents of a Debian package or of an image layer. Archives of them are reproducible: the same tree always
//! gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read as _};
use std::sync::Arc;

use crate::error::Error;
use tar::{Archive, Builder, EntryType, Header};

/// Entries by path; paths have no leading slash.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FileTree {
    entries: BTreeMap<String, TreeEntry>,
}

/// An entry of a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TreeEntry {
    /// The kind of entry, with its contents.
    pub node: TreeNode,
    /// The permission bits.
    pub mode: u32,
    /// User and group id.
    pub owner: (u32, u32),
}

/// A kind of entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TreeNode {
    /// A directory.
    Directory,
    /// A file; trees share its bytes.
    File(Arc<[u8]>),
    /// A symbolic link with its target.
    Link(String),
}

/// The default owner of all entries.
const ROOT_OWNER: (u32, u32) = (0, 0);

/// Limit for unpacking, larger than any of our trees.
const MAX_TREE_BYTES: u64 = 8 << 30;

/// The number of links to follow in a path, as on Linux.
const MAX_LINK_DEPTH: usize = 40;

impl TreeEntry {
    /// A directory of root with mode 755.
    #[must_use]
    pub fn directory() -> Self {
        Self { node: TreeNode::Directory, mode: 0o755, owner: ROOT_OWNER }
    }

    /// A file of root with mode 644.
    #[must_use]
    pub fn file(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { node: TreeNode::File(bytes.into()), mode: 0o644, owner: ROOT_OWNER }
    }

    /// A file of root with mode 755.
    #[must_use]
    pub fn program(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { mode: 0o755, ..Self::file(bytes) }
    }

    /// A symbolic link of root.
    #[must_use]
    pub fn link(target: &str) -> Self {
        Self { node: TreeNode::Link(target.to_owned()), mode: 0o777, owner: ROOT_OWNER }
    }
}

impl FileTree {
    /// Sets an entry, replacing the old one, and creates its parent directories.
    ///
    /// # Errors
    ///
    /// When the path leaves the tree, or a parent is not a directory.
    pub fn insert_entry(&mut self, path: &str, entry: TreeEntry) -> Result<(), Error> {
        let path = normalize_path(path)?;
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        for directory in above.filter(|it| !it.is_empty()) {
            let there = self.entries.entry(directory.to_owned()).or_insert_with(TreeEntry::directory);
            if there.node != TreeNode::Directory {
                return Err(Error::new(format!(
                    "expected a directory `{directory}` above `{path}`, found a file"
                )));
            }
        }
        if !path.is_empty() {
            self.entries.insert(path, entry);
        }
        Ok(())
    }

    /// All entries; directories come before their contents.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &TreeEntry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// All files with their bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries().filter_map(|(path, entry)| match &entry.node {
            TreeNode::File(bytes) => Some((path, &**bytes)),
            TreeNode::Directory | TreeNode::Link(_) => None,
        })
    }

    /// The bytes of a file, if the path is one.
    #[must_use]
    pub fn file_bytes(&self, path: &str) -> Option<&[u8]> {
        match &self.entries.get(path)?.node {
            TreeNode::File(bytes) => Some(bytes),
            TreeNode::Directory | TreeNode::Link(_) => None,
        }
    }

    /// The entry at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&TreeEntry> {
        self.entries.get(path)
    }

    /// True if it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps only the entries for whose path `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.entries.retain(|path, _| keep(path));
    }

    /// The entries that are missing from another tree, such as an earlier version of this one, or differ there.
    #[must_use]
    pub fn difference_from(&self, other: &Self) -> Self {
        let is_new = |(path, entry): &(&String, &TreeEntry)| other.entries.get(*path) != Some(*entry);
        let entries = self.entries.iter().filter(is_new);
        Self { entries: entries.map(|(path, entry)| (path.clone(), entry.clone())).collect() }
    }

    /// Overlays another tree onto this one. If a directory of the other tree is a link to a directory here, its contents go to
    /// the link's target.
    ///
    /// # Errors
    ///
    /// When a path is a directory in one tree and a file in the other, or links form a cycle.
    pub fn overlay_tree(&mut self, over: Self) -> Result<(), Error> {
        for (path, entry) in over.entries {
            let path = self.resolve_parent_links(&path)?;
            let is_directory = |entry: &TreeEntry| entry.node == TreeNode::Directory;
            match self.entries.get(&path) {
                // A link to a directory stays a link, such as `/lib` on a merged `/usr`.
                Some(TreeEntry { node: TreeNode::Link(_), .. }) if is_directory(&entry) => {}
                Some(there) if is_directory(there) != is_directory(&entry) => {
                    return Err(Error::new(format!(
                        "expected `{path}` to be a directory in both trees, or in none"
                    )));
                }
                _ => self.insert_entry(&path, entry)?,
            }
        }
        Ok(())
    }

    /// True if a path leads to an entry after following links.
    #[must_use]
    pub fn resolves_to_entry(&self, path: &str) -> bool {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINK_DEPTH {
            let target = match self.entries.get(&path).map(|entry| &entry.node) {
                Some(TreeNode::Link(target)) => target,
                Some(TreeNode::Directory | TreeNode::File(_)) => return true,
                None => return path.is_empty(),
            };
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let beside = || format!("{directory}/{target}");
            let place = target.strip_prefix('/').map_or_else(beside, str::to_owned);
            match self.resolve_parent_links(&place) {
                Ok(place) => path = place,
                Err(_) => return false,
            }
        }
        false
    }

    /// Resolves links in the parent directories of a path, but not the last component.
    pub fn resolve_parent_links(&self, path: &str) -> Result<String, Error> {
        let mut left: Vec<&str> = path.rsplit('/').collect();
        let mut found: Vec<&str> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match part {
                "" | "." => continue,
                ".." => _ = found.pop(),
                part => found.push(part),
            }
            let Some(TreeEntry { node: TreeNode::Link(target), .. }) = self.entries.get(&found.join("/"))
            else {
                continue;
            };
            if left.is_empty() {
                break;
            }
            links += 1;
            if links > MAX_LINK_DEPTH {
                return Err(Error::new(format!("expected links to lead to a directory above `{path}`")));
            }
            if target.starts_with('/') {
                found.clear();
            } else {
                found.pop();
            }
            left.extend(target.rsplit('/'));
        }
        Ok(found.join("/"))
    }

    /// Packs the tree as a tar archive with one timestamp and `prefix` before each path, such as `./`.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn to_tar(&self, prefix: &str, seconds: u64) -> Result<Vec<u8>, Error> {
        let mut archive = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_mtime(seconds);
            header.set_uid(entry.owner.0.into());
            header.set_gid(entry.owner.1.into());
            let (kind, bytes): (_, &[u8]) = match &entry.node {
                TreeNode::Directory => (EntryType::Directory, &[]),
                TreeNode::File(bytes) => (EntryType::Regular, bytes),
                TreeNode::Link(target) => {
                    append_path_header(&mut archive, &mut header, EntryType::GNULongLink, target)?;
                    (EntryType::Symlink, &[])
                }
            };
            let slash = if kind == EntryType::Directory { "/" } else { "" };
            append_path_header(
                &mut archive,
                &mut header,
                EntryType::GNULongName,
                &format!("{prefix}{path}{slash}"),
            )?;
            header.set_entry_type(kind);
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            archive.append(&header, bytes)?;
        }
        Ok(archive.into_inner()?)
    }

    /// Reads a tree from a tar archive.
    ///
    /// # Errors
    ///
    /// When the archive is damaged, leaves the tree, or contains an entry other than directories, files and links.
    pub fn from_tar(bytes: &[u8]) -> Result<Self, Error> {
        let mut tree = Self::default();
        let mut left = MAX_TREE_BYTES;
        for entry in Archive::new(Cursor::new(bytes)).entries()? {
            let mut entry = entry?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
            let header = entry.header();
            let number = |number: u64| {
                u32::try_from(number)
                    .map_err(|_| Error::new(format!("expected an owner of `{path}`, found {number}")))
            };
            let owner = (number(header.uid()?)?, number(header.gid()?)?);
            let mode = header.mode()? & 0o7777;
            let node = match (header.entry_type(), target) {
                (EntryType::Directory, _) => TreeNode::Directory,
                (EntryType::Regular | EntryType::Continuous, _) => {
                    let mut bytes = Vec::new();
                    (&mut entry).take(left + 1).read_to_end(&mut bytes)?;
                    left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
                        Error::new(format!("expected at most {MAX_TREE_BYTES} bytes of files, found more"))
                    })?;
                    TreeNode::File(bytes.into())
                }
                (EntryType::Symlink, Some(target)) => TreeNode::Link(target),
                // A hard link to an earlier file.
                (EntryType::Link, Some(target)) => {
                    let first = tree.entries.get(&normalize_path(&target)?).map(|entry| entry.node.clone());
                    first.ok_or_else(|| {
                        Error::new(format!("expected `{target}` before `{path}`, found none"))
                    })?
                }
                (kind, _) => {
                    let message = format!("expected a directory, a file or a link `{path}`, found {kind:?}");
                    return Err(Error::new(message));
                }
            };
            tree.insert_entry(&path, TreeEntry { node, mode, owner })?;
        }
        Ok(tree)
    }

    /// Reads an archive exactly as [`FileTree::to_tar`] writes it without a prefix, and returns its timestamp too.
    ///
    /// # Errors
    ///
    /// When the archive is damaged or contains anything else, such as extended attributes or data after its end.
    pub fn from_own_tar(bytes: &[u8]) -> Result<(Self, u64), Error> {
        let mut tree = Self::from_tar(bytes)?;
        let (mut listed, mut seconds) = (BTreeSet::new(), None);
        for entry in Archive::new(Cursor::new(bytes)).entries()? {
            let entry = entry?;
            listed.insert(normalize_path(&String::from_utf8_lossy(&entry.path_bytes()))?);
            seconds = seconds.or(Some(entry.header().mtime()?));
        }
        // Implied parent directories belong to a lower layer.
        tree.retain(|path| listed.contains(path));
        let seconds = seconds.unwrap_or_default();
        if tree.to_tar("", seconds)? == bytes {
            return Ok((tree, seconds));
        }
        Err(Error::new(
            "expected an archive as `oarlock-pack` writes it, found more in it, such as attributes of files or several times",
        ))
    }
}

/// Writes a path or, depending on `kind`, a link target into a header, or into a GNU long-name entry before it if it does not
/// fit. The library's own function would drop a leading `./`, which Debian packages need.
fn append_path_header(
    archive: &mut Builder<Vec<u8>>,
    header: &mut Header,
    kind: EntryType,
    text: &str,
) -> io::Result<()> {
    let text = text.as_bytes();
    let old = header.as_old_mut();
    let room = if kind == EntryType::GNULongLink { &mut old.linkname } else { &mut old.name };
    let fits = text.len().min(room.len());
    room[..fits].copy_from_slice(&text[..fits]);
    if fits == text.len() {
        return Ok(());
    }
    const LONG_LINK_NAME: &[u8] = b"././@LongLink";
    let mut before = Header::new_gnu();
    before.as_old_mut().name[..LONG_LINK_NAME.len()].copy_from_slice(LONG_LINK_NAME);
    before.set_entry_type(kind);
    before.set_mode(0o644);
    before.set_size(text.len() as u64 + 1);
    before.set_cksum();
    archive.append(&before, [text, b"\0"].concat().as_slice())
}

/// Normalizes a path, such as `./usr/bin/` to `usr/bin`.
fn normalize_path(path: &str) -> Result<String, Error> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(Error::new(format!("expected a path within the tree, found `{path}`"))),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example_tree() -> FileTree {
        let mut tree = FileTree::default();
        tree.insert_entry("usr/bin/program", TreeEntry::program(*b"text")).expect("a path");
        tree.insert_entry("/usr/bin/other", TreeEntry::link("program")).expect("a path");
        let long = format!("./usr/share/{}/file", "long/".repeat(40));
        tree.insert_entry(&long, TreeEntry { owner: (7, 42), mode: 0o4640, ..TreeEntry::file(*b"more") })
            .expect("a path");
        tree
    }

    #[test]
    fn what_is_written_is_read_again_and_the_same_whenever_it_is_written() {
        let bytes = example_tree().to_tar("./", 1_700_000_000).expect("an archive");
        assert_eq!(FileTree::from_tar(&bytes).expect("a tree"), example_tree());
        assert_eq!(example_tree().to_tar("./", 1_700_000_000).expect("an archive"), bytes);
    }

    #[test]
    fn every_path_begins_with_the_prefix_and_paths_and_links_are_as_long_as_they_like() {
        let mut tree = FileTree::default();
        for length in [97, 98, 99, 100, 101, 255] {
            tree.insert_entry(&"x".repeat(length), TreeEntry::link(&"./".repeat(length))).expect("a path");
        }
        tree.insert_entry("d", TreeEntry::directory()).expect("a path");
        let bytes = tree.to_tar("./", 0).expect("an archive");
        assert_eq!(FileTree::from_tar(&bytes).expect("a tree"), tree);
        for entry in Archive::new(&*bytes).entries().expect("an archive") {
            let path = entry.expect("an entry").path_bytes().into_owned();
            assert!(path.starts_with(b"./"), "{}", String::from_utf8_lossy(&path));
        }
    }

    #[test]
    fn nothing_leads_out_of_a_tree_or_through_a_file() {
        let mut tree = example_tree();
        let refused = |tree: &mut FileTree, path| {
            tree.insert_entry(path, TreeEntry::file(*b"")).expect_err(path).to_string()
        };
        assert!(refused(&mut tree, "usr/../../etc/passwd").contains("within the tree"));
        assert!(refused(&mut tree, "usr/bin/program/x").contains("expected a directory `usr/bin/program`"));
    }

    #[test]
    fn an_own_archive_with_extra_content_is_refused() {
        let mut tree = example_tree();
        tree.retain(|path| path != "usr/share");
        let own = tree.to_tar("", 7).expect("an archive");
        assert_eq!(FileTree::from_own_tar(&own).expect("a tree"), (tree.clone(), 7));
        let attributes = {
            let mut archive = Builder::new(Vec::new());
            archive
                .append_pax_extensions([("SCHILY.xattr.security.capability", &b"1"[..])])
                .expect("attributes");
            [&archive.get_ref()[..], &own].concat()
        };
        let behind = [&own[..], &own].concat();
        let another_time = {
            let mut more = FileTree::default();
            more.insert_entry("z", TreeEntry::file(*b"")).expect("a path");
            [&own[..own.len() - 1024], &more.to_tar("", 8).expect("an archive")].concat()
        };
        for other in [attributes, behind, another_time] {
            let error = FileTree::from_own_tar(&other).expect_err("a refusal").to_string();
            assert!(error.starts_with("expected an archive as `oarlock-pack` writes it"), "{error}");
        }
    }

    #[test]
    fn overlaying_a_tree_keeps_links_to_directories() {
        let mut merged = FileTree::default();
        merged.insert_entry("lib", TreeEntry::link("usr/lib")).expect("a path");
        let mut over = FileTree::default();
        over.insert_entry("lib", TreeEntry::directory()).expect("a path");
        over.insert_entry("usr", TreeEntry::directory()).expect("a path");
        merged.overlay_tree(over).expect("trees that fit");
        assert_eq!(merged.get("lib"), Some(&TreeEntry::link("usr/lib")));
        let mut wrong = FileTree::default();
        wrong.insert_entry("usr", TreeEntry::file(*b"")).expect("a path");
        assert!(merged.overlay_tree(wrong).is_err());
    }

    #[test]
    fn what_lies_below_a_link_goes_where_the_link_leads() {
        let mut merged = FileTree::default();
        merged.insert_entry("lib", TreeEntry::link("usr/lib")).expect("a path");
        merged.insert_entry("usr/lib/deep", TreeEntry::link("/opt/./x/../deep")).expect("a path");
        merged.insert_entry("round", TreeEntry::link("round")).expect("a path");
        let mut over = FileTree::default();
        over.insert_entry("lib/name", TreeEntry::file(*b"text")).expect("a path");
        over.insert_entry("lib/deep/name", TreeEntry::file(*b"more")).expect("a path");
        merged.overlay_tree(over).expect("trees that fit");
        assert_eq!(merged.file_bytes("usr/lib/name"), Some(&b"text"[..]));
        assert_eq!(merged.file_bytes("opt/deep/name"), Some(&b"more"[..]));
        merged.insert_entry("usr/lib/more", TreeEntry::link("../lib/deep/name")).expect("a path");
        merged.insert_entry("away", TreeEntry::link("/nowhere")).expect("a path");
        let leads = ["usr/lib/more", "lib", "round", "away"].map(|path| merged.resolves_to_entry(path));
        assert_eq!(leads, [true, true, false, false]);
        let mut circle = FileTree::default();
        circle.insert_entry("round/name", TreeEntry::file(*b"")).expect("a path");
        assert!(
            merged.overlay_tree(circle).expect_err("a circle").to_string().contains("above `round/name`")
        );
    }

    #[test]
    fn what_a_tree_has_beyond_another_is_what_is_new_or_changed() {
        let before = example_tree();
        let mut after = before.clone();
        after.insert_entry("usr/bin/program", TreeEntry::program(*b"changed")).expect("a path");
        after.insert_entry("usr/new/file", TreeEntry::file(*b"")).expect("a path");
        let paths: Vec<String> =
            after.difference_from(&before).entries().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(paths, ["usr/bin/program", "usr/new", "usr/new/file"]);
    }
}
