//! Runs `scripts/check-abi-lock` in a scratch repository: which lines a branch may lose, and which it may never lose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LOCK: &str = "device-sdk/contract/abi.lock";
const WITHDRAWN: &str = "device-sdk/contract/abi.withdrawn";
const DRAFTS: &str = "device-sdk/contract/abi.draft";
const OTHER_LOCK: &str = "runtime/capi/abi.lock";

/// A repository with the script and the files that it reads.
struct TestRepository {
    root: PathBuf,
}

impl TestRepository {
    /// A committed lock of these lines, without drafts.
    fn new(name: &str, lock: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("history").join(name);
        let _ = fs::remove_dir_all(&root);
        let branch = Self { root };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
        for script in ["common.sh", "check-abi-lock"] {
            let text = fs::read_to_string(scripts.join(script)).expect("the scripts are there");
            branch.write_file(&format!("scripts/{script}"), &text);
        }
        branch.write_file(OTHER_LOCK, "struct other\n");
        branch.write_file(DRAFTS, "# None.\n");
        branch.write_file(LOCK, lock);
        branch.run_git(&["init", "--quiet"]);
        branch.commit_all();
        branch
    }

    fn write_file(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a directory");
        fs::write(path, text).expect("the file can be written");
    }

    fn run_git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]);
        let done = git.args(arguments).current_dir(&self.root).output().expect("git is installed");
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn commit_all(&self) {
        self.run_git(&["add", "--all"]);
        self.run_git(&["commit", "--quiet", "--allow-empty", "--no-verify", "--message", "change"]);
    }

    /// The message of the script if it rejects the branch.
    fn check_lock(&self) -> Option<String> {
        let script = self.root.join("scripts/check-abi-lock");
        let Output { status, stderr, .. } =
            Command::new("bash").arg(script).output().expect("bash is installed");
        (!status.success()).then(|| String::from_utf8_lossy(&stderr).into_owned())
    }
}

#[test]
fn a_line_may_be_added_and_none_may_go() {
    let branch = TestRepository::new("grows", "struct a\nstruct b\n");
    branch.write_file(LOCK, "struct a\nstruct b\nstruct c\n");
    assert_eq!(branch.check_lock(), None);
    branch.write_file(LOCK, "struct b\nstruct c\n");
    let complaint = branch.check_lock().expect("a line is lost");
    assert!(complaint.starts_with("struct a\n") && complaint.contains("append instead"), "{complaint}");
}

#[test]
fn a_line_that_was_withdrawn_may_be_missing() {
    let branch = TestRepository::new("withdrawn", "struct a\nstruct graph_table\n");
    branch.write_file(LOCK, "struct a\n");
    assert!(branch.check_lock().is_some(), "nothing says that the line was withdrawn");
    branch.write_file(WITHDRAWN, "# Why.\nstruct graph_table\n");
    assert_eq!(branch.check_lock(), None);
    branch.commit_all();
    assert_eq!(branch.check_lock(), None);
}

#[test]
fn a_line_that_was_withdrawn_and_comes_back_stays_for_good() {
    let branch = TestRepository::new("comes_back", "struct a\nstruct graph_table\n");
    branch.write_file(LOCK, "struct a\n");
    branch.write_file(WITHDRAWN, "struct graph_table\n");
    branch.commit_all();
    branch.write_file(LOCK, "struct a\nstruct graph_table\n");
    branch.commit_all();
    branch.write_file(LOCK, "struct a\n");
    let complaint = branch.check_lock().expect("the profile was locked, and is a draft again");
    assert!(complaint.starts_with("struct graph_table\n"), "{complaint}");
}

#[test]
fn the_list_of_what_was_withdrawn_takes_no_more_lines() {
    let branch = TestRepository::new("closed", "struct a\nstruct graph_table\n");
    branch.write_file(LOCK, "struct a\n");
    branch.write_file(WITHDRAWN, "struct graph_table\n");
    branch.commit_all();
    branch.write_file(LOCK, "");
    branch.write_file(WITHDRAWN, "struct graph_table\nstruct a\n");
    for is_committed in [false, true] {
        let complaint = branch.check_lock().expect("a locked line is lost");
        assert!(complaint.starts_with("struct a\n"), "committed: {is_committed}: {complaint}");
        branch.commit_all();
    }
}

#[test]
fn a_draft_that_changes_needs_a_new_number_and_may_go() {
    let branch = TestRepository::new("drafts", "struct a\n");
    branch.write_file(DRAFTS, "graph 1: field x\nsubgraph 1: field x\n");
    branch.commit_all();
    for changed in ["graph 1: field y\n", "graph 1: field x\ngraph 1: field y\n"] {
        branch.write_file(DRAFTS, changed);
        let complaint = branch.check_lock().expect("a draft has changed");
        assert!(complaint.contains("draft `graph 1` differs from commit"), "{complaint}");
    }
    for harmless in ["graph 2: field y\n", "# None.\n", "graph 1: field x\ngraph 3: field y\n"] {
        branch.write_file(DRAFTS, harmless);
        assert_eq!(branch.check_lock(), None, "{harmless}");
    }
}
