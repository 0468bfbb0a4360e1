//! Which plugins one start of a program takes, by the choice of its user: for finding out which plugin is to blame.
//!
//! Unlike `disable` in the configuration, which is meant to stay, this may also name files, and says who is left in.

use std::path::Path;

use crate::text::wildcard::matches_pattern;
use crate::{Refusal, RefusalReason};

/// The plugins that a user wants for this start. Each entry is the name of a plugin, its file name, or a path to it; in names, `*`
/// stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSelection {
    /// The plugins to take besides those that are part of the program; empty to take all.
    pub only: Vec<String>,
    /// The plugins to leave out.
    pub without: Vec<String>,
}

impl PluginSelection {
    /// True if an entry of a selection names the plugin.
    pub fn entry_matches(entry: &str, file: &Path, name: Option<&str>) -> bool {
        if entry.contains('/') {
            return matches!((Path::new(entry).canonicalize(), file.canonicalize()), (Ok(one), Ok(other)) if one == other);
        }
        name.is_some_and(|name| matches_pattern(entry, name)) || matches_pattern(entry, &file_name(file))
    }

    /// Refuses a plugin that is not wanted. Without its name, which is not known at first, only the file counts.
    pub(crate) fn check_selected(
        &self,
        file: &Path,
        name: Option<&str>,
        is_part_of_program: bool,
    ) -> Result<(), Refusal> {
        let matches = |entry: &&String| Self::entry_matches(entry, file, name);
        if let Some(entry) = self.without.iter().find(matches) {
            let found = format!("`{}`, which `without {entry}` leaves out", shown_name(file, name));
            return Err(unselected_refusal(file, found));
        }
        // The name may still be wanted if it is not known yet.
        let is_wanted = is_part_of_program
            || self.only.is_empty()
            || name.is_none()
            || self.only.iter().any(|entry| matches(&entry));
        if is_wanted {
            return Ok(());
        }
        let found = format!("`{}`, which `only {}` leaves out", shown_name(file, name), self.only.join(", "));
        Err(unselected_refusal(file, found))
    }
}

fn unselected_refusal(file: &Path, found: String) -> Refusal {
    let remedy = "start the program without this choice to use it";
    Refusal::new(RefusalReason::Disabled, file, "a plugin that is wanted for this start", found, remedy)
}

fn shown_name(file: &Path, name: Option<&str>) -> String {
    name.map_or_else(|| file_name(file), str::to_owned)
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(only: &[&str], without: &[&str]) -> PluginSelection {
        let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
        PluginSelection { only: list(only), without: list(without) }
    }

    #[test]
    fn a_plugin_is_named_by_its_name_its_file_or_a_path_to_it() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("libacme.so");
        std::fs::write(&file, "").expect("a file");
        let link = place.path().join("link.so");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let link = link.display().to_string();
        for entry in ["acme-npu", "acme-*", "libacme.so", &link] {
            assert!(
                selection(&[], &[entry]).check_selected(&file, Some("acme-npu"), false).is_err(),
                "{entry}"
            );
            assert!(
                selection(&[entry], &[]).check_selected(&file, Some("acme-npu"), false).is_ok(),
                "{entry}"
            );
        }
        assert!(selection(&["other"], &[]).check_selected(&file, Some("acme-npu"), false).is_err());
        assert!(selection(&[], &["other"]).check_selected(&file, Some("acme-npu"), false).is_ok());
    }

    #[test]
    fn what_is_part_of_the_program_and_what_may_still_be_wanted_stay() {
        let file = Path::new("/x/libacme.so");
        assert!(selection(&["other"], &[]).check_selected(file, Some("acme"), true).is_ok());
        assert!(selection(&[], &["acme"]).check_selected(file, Some("acme"), true).is_err());
        assert!(selection(&["acme"], &[]).check_selected(file, None, false).is_ok());
    }
}
