//! Removes packaged files that images leave out.

use std::collections::BTreeSet;

use oarlock_formats::tree::{FileTree, TreeNode};

use super::images::ExcludedPaths;

/// Removes excluded paths, and directories that become empty.
pub(super) fn prune_tree(tree: &mut FileTree, left_out: &[&ExcludedPaths]) {
    let is_kept = |path: &str, node: &TreeNode| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let leaves_out = |it: &&ExcludedPaths| {
            let is_below = it.below.iter().any(|below| {
                path.strip_prefix(below.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            is_below && !it.but.iter().any(|start| name.starts_with(start.as_str()))
        };
        // A link in place of a directory leads to the files that are kept there.
        let is_link_with_kept = matches!(node, TreeNode::Link(_))
            && left_out
                .iter()
                .any(|it| !it.but.is_empty() && it.below.iter().any(|below| is_child(path, below)));
        is_link_with_kept || !left_out.iter().any(leaves_out)
    };
    let mut kept = BTreeSet::new();
    for (path, entry) in tree.entries() {
        if is_kept(path, &entry.node) {
            kept.insert(path.to_owned());
            kept.extend(path.match_indices('/').map(|(end, _)| path[..end].to_owned()));
        }
    }
    tree.retain(|path| kept.contains(path));
}

/// True if `path` is directly in `directory`.
fn is_child(path: &str, directory: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(above, _)| above == directory)
}

#[cfg(test)]
mod tests {
    use super::super::images::ImageKind;
    use super::*;
    use oarlock_formats::tree::TreeEntry;

    #[test]
    fn only_what_is_left_out_goes_with_the_directories_that_held_nothing_else() {
        let mut tree = FileTree::default();
        for path in [
            "usr/share/doc/x/copyright",
            "usr/share/doc/x/changelog.gz",
            "usr/share/doc/y/README",
            "usr/share/documents/a",
        ] {
            tree.insert_entry(path, TreeEntry::file(*b"")).expect("a path");
        }
        tree.insert_entry("usr/share/doc/z", TreeEntry::link("x")).expect("a path");
        tree.insert_entry("usr/share/doc/y/link", TreeEntry::link("README")).expect("a path");
        tree.insert_entry("var/empty", TreeEntry::directory()).expect("a path");
        let left_out = ExcludedPaths {
            kinds: vec![ImageKind::Prod],
            below: vec!["usr/share/doc".to_owned(), "usr/share/man".to_owned()],
            but: vec!["copyright".to_owned()],
            why: String::new(),
        };
        prune_tree(&mut tree, &[&left_out]);
        let paths: Vec<&str> = tree.entries().map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [
                "usr",
                "usr/share",
                "usr/share/doc",
                "usr/share/doc/x",
                "usr/share/doc/x/copyright",
                "usr/share/doc/z",
                "usr/share/documents",
                "usr/share/documents/a",
                "var",
                "var/empty"
            ]
        );
    }
}
