//! The file system of an image: unpacked packages, and those effects of their scripts that matter in a container.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use oarlock_formats::deb::{DebPackage, md5_hex};
use oarlock_formats::error::Error;
use oarlock_formats::tree::{FileTree, TreeEntry, TreeNode};

use super::dependency_resolution::dependency_alternatives;
use super::images::{ExcludedPaths, ImageCatalog, ImageKind, ImageSpec};
use super::notebook;
use super::prune::prune_tree;

/// The root file system while it is assembled.
#[derive(Clone)]
pub(super) struct ImageRoot {
    tree: FileTree,
    /// The `dpkg` status paragraph of each installed package.
    installed: BTreeMap<String, String>,
    /// Names of installed packages, and the virtual packages that they provide.
    provided: BTreeSet<String>,
}

/// User and group id of containers. The image states it as a number, so that a cluster can verify that it is not root.
pub(super) const CONTAINER_USER: u32 = 10_001;

/// The working directory of containers, where users mount their files.
pub(super) const WORK_DIRECTORY: &str = "work";

/// The working directory of build images, where the sources are mounted.
pub(super) const SOURCE_DIRECTORY: &str = "oarlock";

/// The home directory of that user.
pub(super) const HOME_DIRECTORY: &str = "home/oarlock";

/// Links into `/usr`, since Debian merged these directories.
const MERGED_DIRECTORIES: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Mount points and directories that programs expect, with their modes.
const FIXED_DIRECTORIES: [(&str, u32); 9] = [
    ("dev", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("run/lock", 0o1777),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("usr/bin", 0o755),
    ("var/tmp", 0o1777),
];

/// Links that one of Debian's scripts creates, with their targets.
const MOVED_DIRECTORIES: [(&str, &str); 2] = [("var/lock", "/run/lock"), ("var/run", "/run")];

/// The sources for lookups of users and hosts.
const NSSWITCH_TEXT: &str =
    "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";

/// Account files, and the Debian templates with the entries that packages expect.
const ACCOUNT_FILES: [(&str, &str); 2] = [
    ("etc/passwd", "usr/share/base-passwd/passwd.master"),
    ("etc/group", "usr/share/base-passwd/group.master"),
];

/// The bundle of CA certificates, in the place that TLS libraries search.
pub(super) const CA_CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The database of installed packages, and the directory of their file lists.
pub(super) const DPKG_STATUS: &str = "var/lib/dpkg/status";
pub(super) const DPKG_INFO_DIRECTORY: &str = "var/lib/dpkg/info/";

/// The setuid and setgid bits.
const SETUID_SETGID_BITS: u32 = 0o6000;

impl ImageRoot {
    /// A root without any package.
    pub(super) fn new() -> Result<Self, Error> {
        let mut tree = FileTree::default();
        for name in MERGED_DIRECTORIES {
            tree.insert_entry(&format!("usr/{name}"), TreeEntry::directory())?;
            tree.insert_entry(name, TreeEntry::link(&format!("usr/{name}")))?;
        }
        for (name, mode) in FIXED_DIRECTORIES {
            tree.insert_entry(name, TreeEntry { mode, ..TreeEntry::directory() })?;
        }
        for (name, target) in MOVED_DIRECTORIES {
            tree.insert_entry(name, TreeEntry::link(target))?;
        }
        for name in [HOME_DIRECTORY, WORK_DIRECTORY] {
            tree.insert_entry(
                name,
                TreeEntry { owner: (CONTAINER_USER, CONTAINER_USER), ..TreeEntry::directory() },
            )?;
        }
        let users = format!(
            "root:x:0:0:root:/root:/bin/sh\noarlock:x:{CONTAINER_USER}:{CONTAINER_USER}:Oarlock:/{HOME_DIRECTORY}:/bin/sh\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        );
        // The group `video` has Debian's id, which grants access to GPUs.
        let groups = format!("root:x:0:\nvideo:x:44:\noarlock:x:{CONTAINER_USER}:\nnogroup:x:65534:\n");
        for (file, text) in
            [("passwd", users), ("group", groups), ("nsswitch.conf", NSSWITCH_TEXT.to_owned())]
        {
            tree.insert_entry(&format!("etc/{file}"), TreeEntry::file(text.into_bytes()))?;
        }
        Ok(Self { tree, installed: BTreeMap::new(), provided: BTreeSet::new() })
    }

    /// The files of every image that come from no package and depend on none.
    pub(super) fn base_files(images: &ImageCatalog, image: &ImageSpec) -> Result<FileTree, Error> {
        let mut root = Self::new()?;
        for name in &image.layers {
            let layer = images.find_layer(name)?;
            if layer.entry {
                root.put_entry_point(layer.kind)?;
            }
            if layer.notebook {
                root.put_notebook()?;
            }
            layer
                .links
                .iter()
                .try_for_each(|(path, target)| root.tree.insert_entry(path, TreeEntry::link(target)))?;
        }
        Ok(root.tree)
    }

    pub(super) fn tree(&self) -> &FileTree {
        &self.tree
    }

    pub(super) fn overlay_tree(&mut self, over: FileTree) -> Result<(), Error> {
        self.tree.overlay_tree(over)
    }

    /// Unpacks a package and records it in the `dpkg` database, which vulnerability scanners read.
    pub(super) fn install_package(
        &mut self,
        package: DebPackage,
        left_out: &[&ExcludedPaths],
    ) -> Result<(), Error> {
        let name = package.name()?.to_owned();
        let of_package = |error: Error| error.in_part(&name);
        let DebPackage { mut control, mut contents, .. } = package;
        prune_tree(&mut contents, left_out);
        if let Some((path, entry)) = contents.entries().find(|(_, entry)| is_setuid_or_setgid(entry)) {
            return Err(of_package(Error::new(format!(
                "expected no setuid or setgid program, found `{path}` with mode {:o}",
                entry.mode
            ))));
        }
        let same = control.get("Multi-Arch") == Some("same");
        let file =
            if same { format!("{name}:{}", control.require_field("Architecture")?) } else { name.clone() };
        let (mut list, mut hashes) = (String::from("/.\n"), String::new());
        // Writing to a `String` cannot fail.
        contents.entries().for_each(|(path, _)| _ = writeln!(list, "/{path}"));
        for (path, bytes) in contents.files() {
            _ = writeln!(hashes, "{}  {path}", md5_hex(bytes));
        }
        self.tree.overlay_tree(contents).map_err(of_package)?;
        for (kind, text) in [("list", list), ("md5sums", hashes)] {
            self.tree.insert_entry(
                &format!("{DPKG_INFO_DIRECTORY}{file}.{kind}"),
                TreeEntry::file(text.into_bytes()),
            )?;
        }
        self.provided.insert(name.clone());
        self.provided.extend(dependency_alternatives(&control, "Provides").flatten().map(str::to_owned));
        control.set("Status", "install ok installed");
        self.installed.insert(name, control.to_string());
        Ok(())
    }

    /// Writes the files that depend on all packages of a layer.
    pub(super) fn finish_layer(&mut self) -> Result<(), Error> {
        let status = self.installed.values().map(String::as_str).collect::<Vec<_>>().join("\n");
        self.tree.insert_entry(DPKG_STATUS, TreeEntry::file(status.into_bytes()))?;
        if self.installed.contains_key("dpkg") {
            // This marks the architecture in list names; without it, `dpkg` finds none of the lists.
            self.tree.insert_entry("var/lib/dpkg/info/format", TreeEntry::file(*b"1\n"))?;
        }
        if let Some(authorities) = bundle_ca_certificates(&self.tree) {
            self.tree.insert_entry(CA_CERTIFICATES, TreeEntry::file(authorities))?;
        }
        ACCOUNT_FILES.iter().try_for_each(|(list, expected)| self.add_accounts(list, expected))
    }

    /// Adds the entries that packages expect to a list of users or groups.
    fn add_accounts(&mut self, list: &str, expected: &str) -> Result<(), Error> {
        let text =
            |path: &str| self.tree.file_bytes(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let (Some(mut all), Some(expected)) = (text(list), text(expected)) else { return Ok(()) };
        for line in expected.lines() {
            let name = line.split_inclusive(':').next().unwrap_or_default();
            if !all.lines().any(|there| there.starts_with(name)) {
                _ = writeln!(all, "{line}");
            }
        }
        self.tree.insert_entry(list, TreeEntry::file(all.into_bytes()))
    }

    /// Adds links that package scripts would create.
    pub(super) fn add_links(&mut self, links: &BTreeMap<String, String>) -> Result<(), Error> {
        for (path, target) in links {
            let (directory, _) = path.rsplit_once('/').unwrap_or_default();
            let beside = || format!("{directory}/{target}");
            let place = target.strip_prefix('/').map_or_else(beside, str::to_owned);
            if self.tree.get(&place).is_none() {
                return Err(Error::new(format!(
                    "expected `{place}`, to which `{path}` is to be a link; found none"
                )));
            }
            self.tree.insert_entry(path, TreeEntry::link(target))?;
        }
        Ok(())
    }

    /// Adds the entry point script, which decides what a container runs.
    pub(super) fn put_entry_point(&mut self, kind: ImageKind) -> Result<(), Error> {
        let text = match kind {
            ImageKind::Prod => include_str!("../../../docker/entry.sh"),
            ImageKind::Dev => {
                self.tree.insert_entry(SOURCE_DIRECTORY, TreeEntry::directory())?;
                include_str!("../../../docker/dev.sh")
            }
        };
        self.tree.insert_entry(entry_point_path(kind), TreeEntry::program(text.as_bytes()))
    }

    /// Adds the tutorial as notebooks, and their server.
    pub(super) fn put_notebook(&mut self) -> Result<(), Error> {
        notebook::install_notebooks(&mut self.tree)
    }

    /// The unmet dependencies of a package.
    pub(super) fn missing_dependencies(
        &self,
        name: &str,
        left_out: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, Error> {
        let Some(control) = self.installed.get(name) else {
            return Ok(vec![name.to_owned()]);
        };
        let control = oarlock_formats::deb::control::ControlParagraph::parse_single(control)?;
        let is_there = |name: &&str| self.provided.contains(*name) || left_out.contains_key(*name);
        let mut lacking = Vec::new();
        for field in ["Pre-Depends", "Depends"] {
            let choices =
                dependency_alternatives(&control, field).filter(|choice| !choice.iter().any(is_there));
            lacking.extend(choices.map(|choice| choice.join("` or `")));
        }
        Ok(lacking)
    }
}

/// All CA certificates in one file, if a package installs any.
pub(super) fn bundle_ca_certificates(tree: &FileTree) -> Option<Vec<u8>> {
    let is_one = |path: &str| path.starts_with("usr/share/ca-certificates/") && path.ends_with(".crt");
    let all: Vec<&[u8]> = tree.files().filter(|(path, _)| is_one(path)).map(|(_, bytes)| bytes).collect();
    (!all.is_empty()).then(|| all.concat())
}

/// The path of the entry point script.
pub(super) fn entry_point_path(kind: ImageKind) -> &'static str {
    match kind {
        ImageKind::Prod => "usr/bin/oarlock-entry",
        ImageKind::Dev => "usr/bin/oarlock-dev",
    }
}

/// True for a program that runs as its owner or group.
pub(super) fn is_setuid_or_setgid(entry: &TreeEntry) -> bool {
    matches!(entry.node, TreeNode::File(_)) && entry.mode & SETUID_SETGID_BITS != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use oarlock_formats::deb::control::ControlParagraph;

    fn example_package(name: &str, more: &str) -> DebPackage {
        let control = format!("Package: {name}\nVersion: 1\nArchitecture: amd64\n{more}");
        let mut contents = FileTree::default();
        contents.insert_entry(&format!("lib/{name}.so"), TreeEntry::file(name.as_bytes())).expect("a path");
        contents.insert_entry(&format!("usr/share/man/{name}.1"), TreeEntry::file(*b"")).expect("a path");
        DebPackage {
            control: ControlParagraph::parse_single(&control).expect("fields"),
            contents,
            ..DebPackage::default()
        }
    }

    #[test]
    fn a_package_is_noted_as_dpkg_notes_it() {
        let mut root = ImageRoot::new().expect("a root");
        let manual = ExcludedPaths {
            kinds: vec![ImageKind::Prod],
            below: vec!["usr/share/man".to_owned()],
            but: Vec::new(),
            why: String::new(),
        };
        for name in ["zz", "aa"] {
            root.install_package(example_package(name, "Multi-Arch: same\n"), &[&manual]).expect("a package");
        }
        root.finish_layer().expect("settled");
        assert!(root.tree().get("var/lib/dpkg/info/format").is_none());
        let text =
            |path: &str| String::from_utf8_lossy(root.tree().file_bytes(path).expect(path)).into_owned();
        assert_eq!(text("usr/lib/aa.so"), "aa");
        assert_eq!(text("var/lib/dpkg/info/aa:amd64.list"), "/.\n/lib\n/lib/aa.so\n/usr\n/usr/share\n");
        assert_eq!(
            text("var/lib/dpkg/info/aa:amd64.md5sums"),
            "4124bc0a9335c27f086f24ba207a4912  lib/aa.so\n"
        );
        let status = ControlParagraph::parse_all(&text("var/lib/dpkg/status")).expect("paragraphs");
        let names: Vec<_> = status.iter().map(|it| (it.get("Package"), it.get("Status"))).collect();
        let installed = Some("install ok installed");
        assert_eq!(names, [(Some("aa"), installed), (Some("zz"), installed)]);
    }

    #[test]
    fn an_image_root_declares_the_format_of_its_dpkg_lists() {
        let mut root = ImageRoot::new().expect("a root");
        root.install_package(example_package("dpkg", ""), &[]).expect("a package");
        root.finish_layer().expect("settled");
        assert_eq!(root.tree().file_bytes("var/lib/dpkg/info/format"), Some(&b"1\n"[..]));
    }

    #[test]
    fn a_program_that_runs_as_somebody_else_is_refused() {
        let mut package = example_package("sudo", "");
        package
            .contents
            .insert_entry("usr/bin/sudo", TreeEntry { mode: 0o4755, ..TreeEntry::program(*b"") })
            .expect("a path");
        let error = ImageRoot::new()
            .expect("a root")
            .install_package(package, &[])
            .expect_err("a refusal")
            .to_string();
        assert_eq!(
            error,
            "`sudo`: expected no setuid or setgid program, found `usr/bin/sudo` with mode 4755"
        );
    }

    #[test]
    fn what_a_package_lacks_is_what_nobody_provides() {
        let mut root = ImageRoot::new().expect("a root");
        root.install_package(example_package("xx", "Provides: virtual (= 1)\n"), &[]).expect("a package");
        root.install_package(example_package("yy", "Depends: xx (>= 1), virtual, out, a | b\n"), &[])
            .expect("a package");
        let left_out = BTreeMap::from([("out".to_owned(), "why".to_owned())]);
        assert_eq!(root.missing_dependencies("yy", &left_out), Ok(vec!["a` or `b".to_owned()]));
        assert_eq!(root.missing_dependencies("nothing", &left_out), Ok(vec!["nothing".to_owned()]));
    }

    #[test]
    fn users_and_groups_that_packages_expect_are_there_once() {
        let mut package = example_package("base-passwd", "");
        let masters = [
            ("passwd", "root:*:0:0:root:/root:/bin/bash\ndaemon:*:1:1::/:/bin/false\n"),
            ("group", "tty:*:5:\n"),
        ];
        for (name, text) in masters {
            let path = format!("usr/share/base-passwd/{name}.master");
            package.contents.insert_entry(&path, TreeEntry::file(text.as_bytes())).expect("a path");
        }
        let mut root = ImageRoot::new().expect("a root");
        root.install_package(package, &[]).expect("a package");
        root.finish_layer().expect("settled");
        root.finish_layer().expect("settled");
        let text =
            |path: &str| String::from_utf8_lossy(root.tree().file_bytes(path).expect(path)).into_owned();
        let users = text("etc/passwd");
        assert!(users.starts_with("root:x:0:0:root:/root:/bin/sh\noarlock:x:10001:"), "{users}");
        assert!(users.ends_with("\ndaemon:*:1:1::/:/bin/false\n") && users.lines().count() == 4, "{users}");
        assert!(text("etc/group").ends_with("\ntty:*:5:\n"));
    }

    #[test]
    fn a_link_leads_to_what_is_there() {
        let mut root = ImageRoot::new().expect("a root");
        root.install_package(example_package("gcc", ""), &[]).expect("a package");
        let links = |target: &str| BTreeMap::from([("usr/lib/cc.so".to_owned(), target.to_owned())]);
        root.add_links(&links("gcc.so")).expect("a link");
        assert_eq!(root.tree().get("usr/lib/cc.so"), Some(&TreeEntry::link("gcc.so")));
        let error = root.add_links(&links("clang.so")).expect_err("a refusal").to_string();
        assert!(error.contains("expected `usr/lib/clang.so`, to which `usr/lib/cc.so`"), "{error}");
    }

    #[test]
    fn authorities_are_one_file() {
        let mut package = example_package("ca-certificates", "");
        for name in ["b", "a"] {
            let path = format!("usr/share/ca-certificates/mozilla/{name}.crt");
            package
                .contents
                .insert_entry(&path, TreeEntry::file(format!("{name}\n").into_bytes()))
                .expect("a path");
        }
        let mut root = ImageRoot::new().expect("a root");
        root.install_package(package, &[]).expect("a package");
        root.finish_layer().expect("settled");
        assert_eq!(root.tree().file_bytes("etc/ssl/certs/ca-certificates.crt"), Some(&b"a\nb\n"[..]));
    }
}
