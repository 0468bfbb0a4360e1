//! Selects the tests for a change: all tests of the changed crates, and the quick ones of crates that depend on them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::test_programs::TestKind;
use crate::workspace::{CargoWorkspace, WorkspaceMember};

/// The tests that validate documentation pages, with their crate.
const OF_PAGES: (&str, [&str; 2]) = ("oarlock-tests", ["house", "recipes"]);

#[derive(Debug, Default)]
pub(super) struct TestSelection {
    /// The crates with all of their tests.
    pub(super) whole: BTreeSet<String>,
    /// The crates that depend on those.
    pub(super) dependents: BTreeSet<String>,
    /// Single integration tests with their crate, if nothing else in the crate has changed.
    pub(super) single: BTreeSet<(String, String)>,
    pub(super) of_no_crate: Vec<PathBuf>,
    /// True to run all tests of dependent crates too, not just the quick ones.
    pub(super) is_all: bool,
}

impl TestSelection {
    /// Selects the tests for changed files.
    pub(super) fn of_files(
        workspace: &CargoWorkspace,
        files: Vec<PathBuf>,
        is_manifest: impl Fn(&Path) -> bool,
    ) -> Self {
        let mut chosen = Self::default();
        for file in files {
            match workspace.owner(&file, &is_manifest) {
                Some(member) => match member.test_of(&file) {
                    Some(test) => _ = chosen.single.insert((member.name.clone(), test.to_owned())),
                    None => _ = chosen.whole.insert(member.name.clone()),
                },
                None => chosen.of_no_crate.push(file),
            }
        }
        if chosen.of_no_crate.iter().any(|file| file.extension().is_some_and(|extension| extension == "md")) {
            let (member, tests) = OF_PAGES;
            chosen.single.extend(tests.map(|test| (member.to_owned(), test.to_owned())));
        }
        chosen.single.retain(|(member, _)| !chosen.whole.contains(member));
        chosen.dependents = workspace.dependents(&chosen.whole);
        chosen
    }

    /// Selects the tests for crates.
    pub(super) fn of_crates(workspace: &CargoWorkspace, members: BTreeSet<String>) -> Self {
        Self { dependents: workspace.dependents(&members), whole: members, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.single.is_empty()
    }

    /// True if a test program of a crate is selected.
    pub(super) fn has(&self, member: &WorkspaceMember, kind: TestKind<'_>) -> bool {
        let is_whole = self.whole.contains(&member.name);
        let is_dependent = self.dependents.contains(&member.name);
        match kind {
            TestKind::Unit => is_whole || is_dependent,
            TestKind::Integration(test) => {
                is_whole
                    || is_dependent && (self.is_all || member.quick.contains(test))
                    || self.single.contains(&(member.name.clone(), test.to_owned()))
            }
        }
    }

    /// Arguments for cargo. They compile more than is selected, since `--test` accepts no crate name.
    pub(super) fn cargo_arguments(&self, workspace: &CargoWorkspace) -> Vec<String> {
        let units = if self.whole.is_empty() { &[][..] } else { &["--lib", "--bins"] };
        let tests =
            self.integration_tests(workspace).into_iter().flat_map(|test| ["--test".to_owned(), test]);
        units.iter().map(|it| (*it).to_owned()).chain(tests).collect()
    }

    /// The names of integration tests to compile, in any crate.
    fn integration_tests(&self, workspace: &CargoWorkspace) -> BTreeSet<String> {
        let all =
            workspace.members.values().flat_map(|member| member.tests.keys().map(move |test| (member, test)));
        all.filter(|(member, test)| self.has(member, TestKind::Integration(test)))
            .map(|(_, test)| test.clone())
            .collect()
    }

    /// The unselected integration tests of each dependent crate.
    pub(super) fn left_out<'w>(&self, workspace: &'w CargoWorkspace) -> Vec<(&'w str, Vec<&'w str>)> {
        let of = |member: &'w WorkspaceMember| -> Vec<&'w str> {
            let tests = member.tests.keys().map(String::as_str);
            tests.filter(|test| !self.has(member, TestKind::Integration(test))).collect()
        };
        let members = self.dependents.iter().filter_map(|name| workspace.members.get(name));
        members
            .map(|member| (member.name.as_str(), of(member)))
            .filter(|(_, tests)| !tests.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate, and one that depends on it with two tests, one of them quick.
    fn workspace() -> CargoWorkspace {
        let main = |name: &str| (name.to_owned(), PathBuf::from(format!("tests/{name}.rs")));
        let core = WorkspaceMember {
            name: "core".into(),
            directory: "core".into(),
            tests: [main("infer")].into(),
            ..WorkspaceMember::default()
        };
        let tests = WorkspaceMember {
            name: "oarlock-tests".into(),
            directory: "tests".into(),
            dependencies: ["core".to_owned()].into(),
            tests: [main("house"), main("recipes"), main("slow")].into(),
            quick: ["house".to_owned()].into(),
        };
        let members = [core, tests].map(|member| (member.name.clone(), member)).into();
        CargoWorkspace { root: "/tree".into(), members }
    }

    fn of_files(files: &[&str]) -> TestSelection {
        let manifests = ["core/Cargo.toml", "tests/Cargo.toml"];
        let is_manifest = |file: &Path| manifests.iter().any(|manifest| file == Path::new(manifest));
        TestSelection::of_files(&workspace(), files.iter().map(PathBuf::from).collect(), is_manifest)
    }

    fn run(chosen: &TestSelection) -> Vec<String> {
        chosen.integration_tests(&workspace()).into_iter().collect()
    }

    #[test]
    fn of_what_changed_all_tests_are_run_and_of_what_depends_on_it_the_quick_ones() {
        let mut chosen = of_files(&["core/src/lib.rs"]);
        assert_eq!(run(&chosen), ["house", "infer"]);
        assert_eq!(chosen.left_out(&workspace()), [("oarlock-tests", vec!["recipes", "slow"])]);
        chosen.is_all = true;
        assert_eq!(run(&chosen), ["house", "infer", "recipes", "slow"]);
        assert_eq!(chosen.left_out(&workspace()), []);
    }

    #[test]
    fn a_change_of_one_test_runs_that_test_alone() {
        let chosen = of_files(&["tests/tests/slow.rs"]);
        assert_eq!(run(&chosen), ["slow"]);
        assert!(chosen.whole.is_empty() && chosen.dependents.is_empty());
        assert_eq!(
            run(&of_files(&["tests/tests/slow.rs", "tests/src/lib.rs"])),
            ["house", "recipes", "slow"]
        );
    }

    #[test]
    fn a_page_is_held_to_what_it_says() {
        assert_eq!(run(&of_files(&["docs/src/introduction.md"])), ["house", "recipes"]);
        let script = of_files(&["scripts/demo"]);
        assert!(script.is_empty() && script.of_no_crate == [PathBuf::from("scripts/demo")]);
    }
}
