//! Retention of old package lists: a client that read the `Release` file just before a new repository replaced it can still
//! fetch the lists that it names.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use oarlock_formats::error::Error;
use oarlock_formats::output_directory::DirectoryWriter;

/// Paths of lists, each with its age: the number of repositories published since the last one that had it.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct ListGenerations(Vec<(u32, String)>);

/// The number of retained repositories, including the newest.
const REMEMBERED_GENERATIONS: u32 = 3;

/// The file that records the ages.
const GENERATIONS_FILE: &str = ".oarlock-generations";

impl ListGenerations {
    /// Reads the record of a directory, which is empty for a new one.
    pub(super) fn read_generations(directory: &Path) -> Result<Self, Error> {
        match std::fs::read_to_string(directory.join(GENERATIONS_FILE)) {
            Ok(text) => Self::parse_generations(&text).map_err(|error| error.in_part(GENERATIONS_FILE)),
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
                Ok(Self::default())
            }
            Err(error) => Err(Error::from(error).in_part(GENERATIONS_FILE)),
        }
    }

    fn parse_generations(text: &str) -> Result<Self, Error> {
        let lines = text.lines().enumerate().map(|(number, line)| {
            let parts =
                line.split_once(' ').and_then(|(age, path)| Some((age.parse().ok()?, path.to_owned())));
            let is_inside =
                |path: &str| path.starts_with("dists/") && path.split('/').all(|part| part != "..");
            parts.filter(|(_, path)| is_inside(path)).ok_or_else(|| {
                Error::new(format!("line {}: expected a number and a path, found `{line}`", number + 1))
            })
        });
        Ok(Self(lines.collect::<Result<_, _>>()?))
    }

    /// A list outside of `directory`, if there is one.
    pub(super) fn path_outside(&self, directory: &str) -> Option<&str> {
        self.0.iter().map(|(_, path)| path.as_str()).find(|path| !path.starts_with(directory))
    }

    /// The record after publishing a repository with these lists.
    pub(super) fn followed_by(self, now: BTreeSet<String>) -> Self {
        let newest: BTreeSet<String> =
            self.0.iter().filter(|(age, _)| *age == 0).map(|(_, path)| path.clone()).collect();
        // Republishing identical lists ages nothing.
        let step = u32::from(newest != now);
        let older = self.0.into_iter().filter(|(_, path)| !now.contains(path));
        let older =
            older.map(|(age, path)| (age + step, path)).filter(|(age, _)| *age < REMEMBERED_GENERATIONS);
        let mut all: Vec<(u32, String)> = older.collect();
        all.extend(now.into_iter().map(|path| (0, path)));
        all.sort_unstable();
        Self(all)
    }

    /// Copies retained lists from the old directory, and writes the record.
    pub(super) fn carry_over(&self, files: &mut DirectoryWriter<'_>, from: &Path) -> Result<(), Error> {
        for (_, path) in self.0.iter().filter(|(age, _)| *age > 0) {
            files.copy_file(path, &from.join(path))?;
        }
        let lines: String = self.0.iter().map(|(age, path)| format!("{age} {path}\n")).collect();
        files.write_file(GENERATIONS_FILE, lines.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_generations(earlier: ListGenerations, now: &[&str]) -> ListGenerations {
        earlier.followed_by(now.iter().map(|name| format!("dists/{name}")).collect())
    }

    fn list_ages(generations: &ListGenerations) -> Vec<(u32, &str)> {
        generations.0.iter().map(|(age, path)| (*age, path.trim_start_matches("dists/"))).collect()
    }

    #[test]
    fn the_last_three_are_remembered_and_the_same_again_displaces_none() {
        let one = next_generations(ListGenerations::default(), &["a", "same"]);
        let two = next_generations(one, &["b", "same"]);
        assert_eq!(list_ages(&two), [(0, "b"), (0, "same"), (1, "a")]);
        let again = next_generations(two, &["b", "same"]);
        assert_eq!(list_ages(&again), [(0, "b"), (0, "same"), (1, "a")]);
        let three = next_generations(again, &["c", "same"]);
        assert_eq!(list_ages(&three), [(0, "c"), (0, "same"), (1, "b"), (2, "a")]);
        // A list that reappears counts as new.
        assert_eq!(list_ages(&next_generations(three, &["b"])), [(0, "b"), (1, "c"), (1, "same")]);
    }

    #[test]
    fn what_is_no_such_list_is_refused_with_its_line() {
        for wrong in ["x dists/a", "dists/a", "0 /etc/passwd", "0 dists/../../etc/passwd"] {
            let error = ListGenerations::parse_generations(&format!("0 dists/a\n{wrong}\n"))
                .expect_err(wrong)
                .to_string();
            assert_eq!(error, format!("line 2: expected a number and a path, found `{wrong}`"));
        }
    }
}
