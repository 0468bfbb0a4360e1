//! The source revision of a release, from git.

use std::path::Path;
use std::process::Command;

use oarlock_formats::date;
use oarlock_formats::error::Error;

/// The sources of a release.
#[derive(Clone, Debug)]
pub struct SourceRevision {
    /// The commit hash.
    pub commit: String,
    /// The version tag; `None` for a rehearsal.
    pub tag: Option<String>,
    /// The timestamp of everything in the release, in seconds since 1970.
    pub seconds: u64,
}

/// The number of changed files to list in an error.
const MAX_NAMED_FILES: usize = 5;

impl SourceRevision {
    /// Reads the sources in a directory. They must have no changes and, except in a rehearsal, the tag `v` plus the version.
    ///
    /// # Errors
    ///
    /// When a file is changed, the tag is missing, or the directory is not in a git repository.
    pub fn of_directory(root: &Path, version: &str, is_rehearsal: bool) -> Result<Self, Error> {
        let commit = git_output(root, &["rev-parse", "--verify", "HEAD"])?;
        let status = git_output(root, &["status", "--porcelain"])?;
        let changed: Vec<&str> = status.lines().collect();
        if !changed.is_empty() {
            let named: Vec<String> = changed
                .iter()
                .take(MAX_NAMED_FILES)
                .map(|line| format!("`{}`", line.get(3..).unwrap_or(line)))
                .collect();
            let more = if changed.len() > MAX_NAMED_FILES { " and more" } else { "" };
            return Err(Error::new(format!(
                "expected sources as they were committed, found changes in {}{more}; commit or put them aside",
                named.join(", ")
            )));
        }
        // Lowercase marks files that git assumes unchanged, and `S` files that it skips; changes to them would go undetected.
        let listed = git_output(root, &["ls-files", "-v"])?;
        let is_hidden = |line: &&str| line.starts_with(|flag: char| flag.is_ascii_lowercase() || flag == 'S');
        if let Some(line) = listed.lines().find(is_hidden) {
            let file = line.get(2..).unwrap_or(line);
            return Err(Error::new(format!(
                "expected sources whose changes git tracks, found `{file}`, which is marked as unchanged; run `git \
                 update-index --no-assume-unchanged --no-skip-worktree {file}`"
            )));
        }
        let wanted = format!("v{version}");
        let tags = git_output(root, &["tag", "--points-at", "HEAD"])?;
        let tag = tags.lines().find(|tag| **tag == wanted).map(str::to_owned);
        if tag.is_none() && !is_rehearsal {
            let (found, advice) = match (tags.lines().next(), git_output(root, &["rev-list", "-1", &wanted]))
            {
                (_, Ok(other)) => (format!("it on {:.12}", other.trim()), format!("git checkout {wanted}")),
                (Some(other), Err(_)) => (format!("`{other}`"), format!("git tag {wanted}")),
                (None, Err(_)) => ("none".to_owned(), format!("git tag {wanted}")),
            };
            return Err(Error::new(format!(
                "expected the tag `{wanted}` on the commit {commit:.12}, found {found}; run `{advice}`, or pass `--rehearsal`"
            )));
        }
        Ok(Self { commit, tag, seconds: date::source_time(root)? })
    }

    /// The tag, or else the commit.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.tag.as_deref().unwrap_or(&self.commit)
    }
}

fn git_output(root: &Path, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output =
        output.map_err(|error| Error::new(format!("expected to start `git`: {error}; install it")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let why = why.lines().next().unwrap_or("git gave no reason");
    Err(Error::new(format!("expected a clone of the sources, of which git knows the history: {why}"))
        .in_file(root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_git(root: &Path, arguments: &[&str]) {
        let named = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
        let status = Command::new("git").args(named).args(arguments).current_dir(root).output();
        assert!(status.expect("git").status.success(), "{arguments:?}");
    }

    #[test]
    fn a_release_is_of_a_tag_and_of_nothing_else() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path();
        let refused = |rehearsal| {
            SourceRevision::of_directory(root, "1.0", rehearsal).expect_err("a refusal").to_string()
        };
        assert!(refused(true).contains("expected a clone of the sources"), "{}", refused(true));
        run_git(root, &["init", "--quiet"]);
        std::fs::write(root.join("text"), "one").expect("a file");
        run_git(root, &["add", "."]);
        run_git(root, &["commit", "--quiet", "--message", "one"]);
        assert!(refused(false).contains("expected the tag `v1.0` on the commit"), "{}", refused(false));
        assert!(SourceRevision::of_directory(root, "1.0", true).expect("a rehearsal").tag.is_none());
        run_git(root, &["tag", "v0.9"]);
        assert!(refused(false).contains("found `v0.9`"), "{}", refused(false));
        run_git(root, &["tag", "v1.0"]);
        let source = SourceRevision::of_directory(root, "1.0", false).expect("a release");
        assert_eq!((source.display_name(), source.commit.len()), ("v1.0", 40));
        for flag in ["assume-unchanged", "skip-worktree"] {
            run_git(root, &["update-index", &format!("--{flag}"), "text"]);
            assert!(
                refused(false).contains("found `text`, which is marked as unchanged"),
                "{}",
                refused(false)
            );
            run_git(root, &["update-index", &format!("--no-{flag}"), "text"]);
        }
        std::fs::write(root.join("more"), "two").expect("a file");
        assert!(
            refused(true).ends_with("found changes in `more`; commit or put them aside"),
            "{}",
            refused(true)
        );
    }
}
