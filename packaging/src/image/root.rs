//! What lies in an image: packages, and the little that their scripts would do and that matters in a container.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::closure::alternatives;
use super::images::{Image, Images, Kind, LeftOut};
use super::notebook;
use super::prune::prune;
use crate::deb::{Package, md5};
use crate::error::Error;
use crate::tree::{Entry, Node, Tree};

/// The root of an image, as far as it is laid out.
#[derive(Clone)]
pub(super) struct Root {
    tree: Tree,
    /// What is said of each package that is installed.
    installed: BTreeMap<String, String>,
    /// Their names, and what they say they are as good as.
    provided: BTreeSet<String>,
}

/// The number of the user whom containers run as, and of the group. It says so as a number, by which those who run containers
/// see that it is not root.
pub(super) const USER: u32 = 10_001;

/// Where containers begin, and where those who run them put their files.
pub(super) const WORK: &str = "work";

/// The same of images that build the sources, which lie there.
pub(super) const SOURCES: &str = "oarlock";

/// Where that user is at home.
pub(super) const HOME: &str = "home/oarlock";

/// Directories that are links since all programs and libraries lie below one.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Directories that engines put something at, or that programs expect, and what everybody may do in them.
const DIRECTORIES: [(&str, u32); 9] = [
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

/// Links that a script of Debian's makes, and what they lead to.
const MOVED: [(&str, &str); 2] = [("var/lock", "/run/lock"), ("var/run", "/run")];

/// Who looks names up, and where.
const NAMES: &str = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";

/// Lists of users and groups, and what packages expect to stand in them.
const LISTS: [(&str, &str); 2] = [
    ("etc/passwd", "usr/share/base-passwd/passwd.master"),
    ("etc/group", "usr/share/base-passwd/group.master"),
];

/// Where programs find whom they believe that somebody is who he says.
pub(super) const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Where it is noted which packages are installed, and of each what it brought.
pub(super) const STATUS: &str = "var/lib/dpkg/status";
pub(super) const LISTS_OF_FILES: &str = "var/lib/dpkg/info/";

/// The bits by which a program runs as somebody else than who starts it.
const AS_OTHERS: u32 = 0o6000;

impl Root {
    /// A root that nothing is installed in.
    pub(super) fn new() -> Result<Self, Error> {
        let mut tree = Tree::default();
        for name in MERGED {
            tree.put(&format!("usr/{name}"), Entry::directory())?;
            tree.put(name, Entry::link(&format!("usr/{name}")))?;
        }
        for (name, mode) in DIRECTORIES {
            tree.put(name, Entry { mode, ..Entry::directory() })?;
        }
        for (name, target) in MOVED {
            tree.put(name, Entry::link(target))?;
        }
        for name in [HOME, WORK] {
            tree.put(name, Entry { owner: (USER, USER), ..Entry::directory() })?;
        }
        let users = format!(
            "root:x:0:0:root:/root:/bin/sh\noarlock:x:{USER}:{USER}:Oarlock:/{HOME}:/bin/sh\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        );
        // The group that may use the GPUs of the machine, by the number that it has on Debian.
        let groups = format!("root:x:0:\nvideo:x:44:\noarlock:x:{USER}:\nnogroup:x:65534:\n");
        for (file, text) in [("passwd", users), ("group", groups), ("nsswitch.conf", NAMES.to_owned())] {
            tree.put(&format!("etc/{file}"), Entry::file(text.into_bytes()))?;
        }
        Ok(Self { tree, installed: BTreeMap::new(), provided: BTreeSet::new() })
    }

    /// What an image has that no package brings and that does not depend on packages.
    pub(super) fn of_no_package(images: &Images, image: &Image) -> Result<Tree, Error> {
        let mut root = Self::new()?;
        for name in &image.layers {
            let layer = images.layer(name)?;
            if layer.entry {
                root.put_entry(layer.kind)?;
            }
            if layer.notebook {
                root.put_notebook()?;
            }
            layer.links.iter().try_for_each(|(path, target)| root.tree.put(path, Entry::link(target)))?;
        }
        Ok(root.tree)
    }

    /// All that lies in it.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The same with more laid over it.
    pub(super) fn lay(&mut self, over: Tree) -> Result<(), Error> {
        self.tree.lay(over)
    }

    /// Lays out a package, and notes that it is there as `dpkg` does, by which programs that look for flaws know it.
    pub(super) fn install(&mut self, package: Package, left_out: &[&LeftOut]) -> Result<(), Error> {
        let name = package.name()?.to_owned();
        let of_package = |error: Error| error.of_part(&name);
        let Package { mut control, mut contents, .. } = package;
        prune(&mut contents, left_out);
        if let Some((path, entry)) = contents.entries().find(|(_, entry)| runs_as_others(entry)) {
            return Err(of_package(Error::new(format!(
                "expected no program that runs as somebody else, found `{path}` of the mode {:o}",
                entry.mode
            ))));
        }
        let same = control.get("Multi-Arch") == Some("same");
        let file = if same { format!("{name}:{}", control.need("Architecture")?) } else { name.clone() };
        let (mut list, mut hashes) = (String::from("/.\n"), String::new());
        // Writing to a text cannot fail.
        contents.entries().for_each(|(path, _)| _ = writeln!(list, "/{path}"));
        for (path, bytes) in contents.files() {
            _ = writeln!(hashes, "{}  {path}", md5(bytes));
        }
        self.tree.lay(contents).map_err(of_package)?;
        for (kind, text) in [("list", list), ("md5sums", hashes)] {
            self.tree.put(&format!("{LISTS_OF_FILES}{file}.{kind}"), Entry::file(text.into_bytes()))?;
        }
        self.provided.insert(name.clone());
        self.provided.extend(alternatives(&control, "Provides").flatten().map(str::to_owned));
        control.set("Status", "install ok installed");
        self.installed.insert(name, control.to_string());
        Ok(())
    }

    /// Does what has to be done when all packages of a layer are there.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let status = self.installed.values().map(String::as_str).collect::<Vec<_>>().join("\n");
        self.tree.put(STATUS, Entry::file(status.into_bytes()))?;
        if self.installed.contains_key("dpkg") {
            // That names of lists say the kind of machine, without which it finds none of them.
            self.tree.put("var/lib/dpkg/info/format", Entry::file(*b"1\n"))?;
        }
        if let Some(authorities) = authorities(&self.tree) {
            self.tree.put(AUTHORITIES, Entry::file(authorities))?;
        }
        LISTS.iter().try_for_each(|(list, expected)| self.add_expected(list, expected))
    }

    /// Adds to a list of users or groups what packages expect there.
    fn add_expected(&mut self, list: &str, expected: &str) -> Result<(), Error> {
        let text = |path: &str| self.tree.file(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let (Some(mut all), Some(expected)) = (text(list), text(expected)) else { return Ok(()) };
        for line in expected.lines() {
            let name = line.split_inclusive(':').next().unwrap_or_default();
            if !all.lines().any(|there| there.starts_with(name)) {
                _ = writeln!(all, "{line}");
            }
        }
        self.tree.put(list, Entry::file(all.into_bytes()))
    }

    /// Puts links there that scripts of packages would make.
    pub(super) fn link(&mut self, links: &BTreeMap<String, String>) -> Result<(), Error> {
        for (path, target) in links {
            let (directory, _) = path.rsplit_once('/').unwrap_or_default();
            let beside = || format!("{directory}/{target}");
            let place = target.strip_prefix('/').map_or_else(beside, str::to_owned);
            if self.tree.get(&place).is_none() {
                return Err(Error::new(format!(
                    "expected `{place}`, to which `{path}` is to be a link; found none"
                )));
            }
            self.tree.put(path, Entry::link(target))?;
        }
        Ok(())
    }

    /// Puts the program there that decides what a container does.
    pub(super) fn put_entry(&mut self, kind: Kind) -> Result<(), Error> {
        let text = match kind {
            Kind::Prod => include_str!("../../../docker/entry.sh"),
            Kind::Dev => {
                self.tree.put(SOURCES, Entry::directory())?;
                include_str!("../../../docker/dev.sh")
            }
        };
        self.tree.put(entry(kind), Entry::program(text.as_bytes()))
    }

    /// Puts the tutorial there as notebooks, and the program that serves them.
    pub(super) fn put_notebook(&mut self) -> Result<(), Error> {
        notebook::put(&mut self.tree)
    }

    /// What a package depends on and is not there.
    pub(super) fn lacks(
        &self,
        name: &str,
        left_out: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, Error> {
        let Some(control) = self.installed.get(name) else {
            return Ok(vec![name.to_owned()]);
        };
        let control = crate::deb::control::Paragraph::read_one(control)?;
        let is_there = |name: &&str| self.provided.contains(*name) || left_out.contains_key(*name);
        let mut lacking = Vec::new();
        for field in ["Pre-Depends", "Depends"] {
            let choices = alternatives(&control, field).filter(|choice| !choice.iter().any(is_there));
            lacking.extend(choices.map(|choice| choice.join("` or `")));
        }
        Ok(lacking)
    }
}

/// All authorities as one file, if a package brings any.
pub(super) fn authorities(tree: &Tree) -> Option<Vec<u8>> {
    let is_one = |path: &str| path.starts_with("usr/share/ca-certificates/") && path.ends_with(".crt");
    let all: Vec<&[u8]> = tree.files().filter(|(path, _)| is_one(path)).map(|(_, bytes)| bytes).collect();
    (!all.is_empty()).then(|| all.concat())
}

/// Where the program lies that decides what a container does.
pub(super) fn entry(kind: Kind) -> &'static str {
    match kind {
        Kind::Prod => "usr/bin/oarlock-entry",
        Kind::Dev => "usr/bin/oarlock-dev",
    }
}

/// Whether it is a program that runs as whom it belongs to.
pub(super) fn runs_as_others(entry: &Entry) -> bool {
    matches!(entry.node, Node::File(_)) && entry.mode & AS_OTHERS != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deb::control::Paragraph;

    fn package(name: &str, more: &str) -> Package {
        let control = format!("Package: {name}\nVersion: 1\nArchitecture: amd64\n{more}");
        let mut contents = Tree::default();
        contents.put(&format!("lib/{name}.so"), Entry::file(name.as_bytes())).expect("a path");
        contents.put(&format!("usr/share/man/{name}.1"), Entry::file(*b"")).expect("a path");
        Package { control: Paragraph::read_one(&control).expect("fields"), contents, ..Package::default() }
    }

    #[test]
    fn a_package_is_noted_as_dpkg_notes_it() {
        let mut root = Root::new().expect("a root");
        let manual = LeftOut {
            kinds: vec![Kind::Prod],
            below: vec!["usr/share/man".to_owned()],
            but: Vec::new(),
            why: String::new(),
        };
        for name in ["zz", "aa"] {
            root.install(package(name, "Multi-Arch: same\n"), &[&manual]).expect("a package");
        }
        root.settle().expect("settled");
        assert!(root.tree().get("var/lib/dpkg/info/format").is_none());
        let text = |path: &str| String::from_utf8_lossy(root.tree().file(path).expect(path)).into_owned();
        assert_eq!(text("usr/lib/aa.so"), "aa");
        assert_eq!(text("var/lib/dpkg/info/aa:amd64.list"), "/.\n/lib\n/lib/aa.so\n/usr\n/usr/share\n");
        assert_eq!(
            text("var/lib/dpkg/info/aa:amd64.md5sums"),
            "4124bc0a9335c27f086f24ba207a4912  lib/aa.so\n"
        );
        let status = Paragraph::read(&text("var/lib/dpkg/status")).expect("paragraphs");
        let names: Vec<_> = status.iter().map(|it| (it.get("Package"), it.get("Status"))).collect();
        let installed = Some("install ok installed");
        assert_eq!(names, [(Some("aa"), installed), (Some("zz"), installed)]);
    }

    #[test]
    fn dpkg_in_an_image_knows_what_its_lists_are_called() {
        let mut root = Root::new().expect("a root");
        root.install(package("dpkg", ""), &[]).expect("a package");
        root.settle().expect("settled");
        assert_eq!(root.tree().file("var/lib/dpkg/info/format"), Some(&b"1\n"[..]));
    }

    #[test]
    fn a_program_that_runs_as_somebody_else_is_refused() {
        let mut package = package("sudo", "");
        package.contents.put("usr/bin/sudo", Entry { mode: 0o4755, ..Entry::program(*b"") }).expect("a path");
        let error = Root::new().expect("a root").install(package, &[]).expect_err("a refusal").to_string();
        assert_eq!(
            error,
            "`sudo`: expected no program that runs as somebody else, found `usr/bin/sudo` of the mode 4755"
        );
    }

    #[test]
    fn what_a_package_lacks_is_what_nobody_provides() {
        let mut root = Root::new().expect("a root");
        root.install(package("xx", "Provides: virtual (= 1)\n"), &[]).expect("a package");
        root.install(package("yy", "Depends: xx (>= 1), virtual, out, a | b\n"), &[]).expect("a package");
        let left_out = BTreeMap::from([("out".to_owned(), "why".to_owned())]);
        assert_eq!(root.lacks("yy", &left_out), Ok(vec!["a` or `b".to_owned()]));
        assert_eq!(root.lacks("nothing", &left_out), Ok(vec!["nothing".to_owned()]));
    }

    #[test]
    fn users_and_groups_that_packages_expect_are_there_once() {
        let mut package = package("base-passwd", "");
        let masters = [
            ("passwd", "root:*:0:0:root:/root:/bin/bash\ndaemon:*:1:1::/:/bin/false\n"),
            ("group", "tty:*:5:\n"),
        ];
        for (name, text) in masters {
            let path = format!("usr/share/base-passwd/{name}.master");
            package.contents.put(&path, Entry::file(text.as_bytes())).expect("a path");
        }
        let mut root = Root::new().expect("a root");
        root.install(package, &[]).expect("a package");
        root.settle().expect("settled");
        root.settle().expect("settled");
        let text = |path: &str| String::from_utf8_lossy(root.tree().file(path).expect(path)).into_owned();
        let users = text("etc/passwd");
        assert!(users.starts_with("root:x:0:0:root:/root:/bin/sh\noarlock:x:10001:"), "{users}");
        assert!(users.ends_with("\ndaemon:*:1:1::/:/bin/false\n") && users.lines().count() == 4, "{users}");
        assert!(text("etc/group").ends_with("\ntty:*:5:\n"));
    }

    #[test]
    fn a_link_leads_to_what_is_there() {
        let mut root = Root::new().expect("a root");
        root.install(package("gcc", ""), &[]).expect("a package");
        let links = |target: &str| BTreeMap::from([("usr/lib/cc.so".to_owned(), target.to_owned())]);
        root.link(&links("gcc.so")).expect("a link");
        assert_eq!(root.tree().get("usr/lib/cc.so"), Some(&Entry::link("gcc.so")));
        let error = root.link(&links("clang.so")).expect_err("a refusal").to_string();
        assert!(error.contains("expected `usr/lib/clang.so`, to which `usr/lib/cc.so`"), "{error}");
    }

    #[test]
    fn authorities_are_one_file() {
        let mut package = package("ca-certificates", "");
        for name in ["b", "a"] {
            let path = format!("usr/share/ca-certificates/mozilla/{name}.crt");
            package.contents.put(&path, Entry::file(format!("{name}\n").into_bytes())).expect("a path");
        }
        let mut root = Root::new().expect("a root");
        root.install(package, &[]).expect("a package");
        root.settle().expect("settled");
        assert_eq!(root.tree().file("etc/ssl/certs/ca-certificates.crt"), Some(&b"a\nb\n"[..]));
    }
}
