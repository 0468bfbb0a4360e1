//! Changed files: in commits since the branch point, in the work tree, and untracked.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Likely trunk branches, most likely first. Without any of them, only uncommitted changes count.
const TRUNKS: [&str; 4] = ["@{upstream}", "origin/HEAD", "main", "master"];

/// The commit to compare with: the given one, or the branch point from the trunk.
pub(super) fn base(root: &Path, since: Option<&str>) -> Result<String> {
    if let Some(revision) = since {
        return git(root, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("expected a commit after `--since`, found `{revision}`"));
    }
    for trunk in TRUNKS {
        if let Ok(base) = git(root, &["merge-base", "HEAD", trunk]) {
            return Ok(base);
        }
    }
    git(root, &["rev-parse", "HEAD"])
        .context("expected a git repository with a commit; name the crates to check")
}

/// The files that differ from a commit, relative to the root.
pub(super) fn files(root: &Path, base: &str) -> Result<Vec<PathBuf>> {
    let changed = git(root, &["diff", "--name-only", "--relative", "--no-renames", "-z", base])?;
    let unknown = git(root, &["ls-files", "--others", "--exclude-standard", "-z"])?;
    let names = changed.split('\0').chain(unknown.split('\0'));
    Ok(names.filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

/// Runs git in the tree and returns its output.
fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
    let output = output.context("expected `git` on the PATH; name the crates to check")?;
    ensure!(
        output.status.success(),
        "`git {}`: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    match String::from_utf8(output.stdout) {
        Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
        Err(_) => bail!("expected names of files in UTF-8 from `git {}`", arguments.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one commit of one file.
    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |arguments: &[&str]| git(directory.path(), arguments).expect("git");
        run(&["init", "--quiet", "--initial-branch=main"]);
        std::fs::write(directory.path().join("a.rs"), "1").expect("a file");
        commit(directory.path());
        directory
    }

    fn commit(root: &Path) {
        git(root, &["add", "."]).expect("git");
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "a"];
        git(root, &who).expect("git");
    }

    #[test]
    fn commits_of_the_branch_and_files_that_git_does_not_know_have_changed() {
        let directory = repository();
        let root = directory.path();
        git(root, &["checkout", "--quiet", "-b", "topic"]).expect("git");
        std::fs::write(root.join("b c.rs"), "2").expect("a file");
        commit(root);
        std::fs::write(root.join("a.rs"), "3").expect("a file");
        std::fs::write(root.join("ü.rs"), "4").expect("a file");
        let base = base(root, None).expect("a base");
        assert_eq!(files(root, &base).expect("files"), ["a.rs", "b c.rs", "ü.rs"].map(PathBuf::from));
        let head = super::base(root, Some("HEAD")).expect("a base");
        assert_eq!(files(root, &head).expect("files"), ["a.rs", "ü.rs"].map(PathBuf::from));
    }

    #[test]
    fn on_the_trunk_only_what_is_not_committed_has_changed() {
        let directory = repository();
        let base = base(directory.path(), None).expect("a base");
        assert_eq!(files(directory.path(), &base).expect("files"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_commit_that_there_is_not_is_named() {
        let error = base(repository().path(), Some("nowhere")).expect_err("no commit").to_string();
        assert_eq!(error, "expected a commit after `--since`, found `nowhere`");
    }
}
