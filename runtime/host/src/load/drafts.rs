//! Drafts of profiles that a plugin provides, matched by number against those of this host (rule V-4).
//!
//! A plugin with an unknown draft is used without the draft, and a note states what was expected, what was found and what to
//! do.

#![expect(unsafe_code, reason = "drafts lie behind pointers that a plugin gave")]

use oarlock_abi as abi;

use crate::DraftInfo;
use crate::foreign_struct::{RuleBreach, checked_list, copy_struct};
use crate::load::checked_text::checked_name;

/// Limit on the drafts of one plugin.
const MAX_DRAFTS: u64 = 64;

/// A draft that a plugin provides: profile and number.
pub(crate) type ProvidedDraft = (String, u32);

/// The profiles that a host knows.
pub(crate) struct KnownProfiles {
    /// The locked profiles, with their versions.
    locked: &'static [(&'static str, u32)],
    /// The drafts, with their numbers, and true for the drafts that the host implements.
    drafts: &'static [(&'static str, u32, bool)],
}

impl KnownProfiles {
    /// The profiles of this host.
    pub(crate) const OF_HOST: Self = Self { locked: abi::PROFILES, drafts: abi::draft::PROFILES };
}

/// Lists the drafts that a plugin provides. Their tables are not read.
///
/// # Safety
///
/// What the list of drafts points to is what the contract says, as far as addresses and sizes go.
pub(crate) unsafe fn copy_drafts(plugin: &abi::Plugin) -> Result<Vec<ProvidedDraft>, RuleBreach> {
    let at_old_places = [
        ("graph", plugin.reserved_graph),
        ("collective", plugin.reserved_collective),
        ("profile", plugin.reserved_profile),
        ("interop", plugin.reserved_interop),
    ];
    let old = at_old_places.into_iter().filter(|(_, table)| !table.is_null());
    let mut provided: Vec<ProvidedDraft> = old.map(|(profile, _)| (profile.to_owned(), 0)).collect();
    // SAFETY: the caller vouches for the list, the drafts in it and their texts.
    unsafe {
        for source in checked_list(plugin.drafts, plugin.drafts_count, MAX_DRAFTS, "drafts")? {
            let draft = copy_struct(*source)?;
            let profile = checked_name(draft.profile, "the profile of a draft")?;
            if draft.table.is_null() {
                let expected = format!("the address of the table of draft {} of `{profile}`", draft.number);
                return Err(RuleBreach::new("S-1", expected, "a null pointer"));
            }
            provided.push((profile, draft.number));
        }
    }
    Ok(provided)
}

/// Decides on each draft, with notes about those that are not used; users update the plugin through `package`.
pub(crate) fn judge_drafts(
    provided: &[ProvidedDraft],
    known: &KnownProfiles,
    package: &str,
) -> (Vec<DraftInfo>, Vec<String>) {
    let on_trial = |profile: &str, number: u32| {
        known
            .drafts
            .iter()
            .find(|ours| (ours.0, ours.1) == (profile, number))
            .map(|(_, _, on_trial)| *on_trial)
    };
    let (mut drafts, mut notes) = (Vec::new(), Vec::new());
    for (profile, number) in provided {
        let same = on_trial(profile, *number);
        drafts.push(DraftInfo { profile: profile.clone(), number: *number, used: same == Some(true) });
        // A plugin may provide drafts for other hosts besides the one for this host.
        let has_ours =
            provided.iter().any(|(other, number)| other == profile && on_trial(other, *number).is_some());
        match same {
            Some(true) => {}
            Some(false) => notes.push(format!(
                "draft {number} of the profile `{profile}` is not used: nothing in this host calls it yet"
            )),
            None if has_ours => {}
            None => notes.push(unknown_draft(profile, *number, known, package)),
        }
    }
    (drafts, notes)
}

/// The note about a draft whose number the host does not know.
fn unknown_draft(profile: &str, number: u32, known: &KnownProfiles, package: &str) -> String {
    let found = match number {
        0 => "a table from before it was a draft".to_owned(),
        _ => format!("draft {number}"),
    };
    if let Some((_, version)) = known.locked.iter().find(|(locked, _)| *locked == profile) {
        return format!(
            "expected version {version} of the profile `{profile}`, which is locked now, found {found}, which is not used; \
             update `{package}`"
        );
    }
    match known.drafts.iter().find(|(draft, _, _)| *draft == profile) {
        Some((_, ours, _)) => {
            let behind = if number < *ours { package } else { "oarlock" };
            format!(
                "expected draft {ours} of the profile `{profile}`, which this host knows, found {found}, which is not used; \
                 update `{behind}`"
            )
        }
        None => format!(
            "expected a profile that this host knows, found {found} of `{profile}`, which is not used; update `oarlock`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: KnownProfiles = KnownProfiles {
        locked: &[("core", 1), ("old", 2)],
        drafts: &[("tried", 3, true), ("written", 1, false)],
    };

    fn judge_sample(provided: &[(&str, u32)]) -> (Vec<String>, Vec<String>) {
        let provided: Vec<_> =
            provided.iter().map(|(profile, number)| ((*profile).to_owned(), *number)).collect();
        let (drafts, notes) = judge_drafts(&provided, &KNOWN, "acme-npu");
        (drafts.iter().map(ToString::to_string).collect(), notes)
    }

    #[track_caller]
    fn only_note(profile: &str, number: u32) -> String {
        let (drafts, notes) = judge_sample(&[(profile, number)]);
        assert_eq!(drafts, [format!("{profile} {number} (not used)")]);
        let [note] = notes.as_slice() else { panic!("expected one note, found {notes:?}") };
        note.clone()
    }

    #[test]
    fn a_draft_on_trial_is_used_at_the_very_same_number_and_at_no_other() {
        assert_eq!(judge_sample(&[("tried", 3)]), (vec!["tried 3".to_owned()], vec![]));
        assert_eq!(
            only_note("tried", 2),
            "expected draft 3 of the profile `tried`, which this host knows, found draft 2, which is not used; \
             update `acme-npu`"
        );
        assert!(only_note("tried", 4).ends_with("found draft 4, which is not used; update `oarlock`"));
    }

    #[test]
    fn a_table_from_before_the_profile_was_a_draft_is_not_used() {
        let (drafts, notes) = judge_sample(&[("tried", 0)]);
        assert_eq!(drafts, ["tried from before it was a draft (not used)"]);
        assert!(
            notes[0].contains("found a table from before it was a draft, which is not used"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_draft_that_nothing_calls_and_one_that_nobody_knows_are_told_apart() {
        assert!(only_note("written", 1).ends_with("nothing in this host calls it yet"));
        assert!(only_note("invented", 1).contains("expected a profile that this host knows"));
    }

    #[test]
    fn a_draft_of_what_is_locked_by_now_is_not_used() {
        let note = only_note("old", 7);
        assert!(
            note.contains("version 2 of the profile `old`, which is locked now, found draft 7"),
            "{note}"
        );
    }

    #[test]
    fn a_plugin_that_brings_a_draft_for_this_host_and_for_others_is_not_complained_about() {
        let (drafts, notes) = judge_sample(&[("tried", 2), ("tried", 3), ("tried", 4)]);
        assert_eq!(drafts, ["tried 2 (not used)", "tried 3", "tried 4 (not used)"]);
        assert_eq!(notes, Vec::<String>::new());
    }
}
