//! Sorts the variants of each plugin: the one to use, and the ones to fall back to.
//!
//! A file that passes the judge may still fail to load, so the other variants are kept until one works.

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::{JudgedPlugin, Refusal, RefusalReason};

/// Groups files by plugin name. The first file of a group is the one to try first: it has the earliest origin, and among
/// several of that origin the best fit to this machine.
///
/// `judged` is in the order of the search, and groups are in the order of their first files. The name of a file without a
/// manifest is not known yet, so such a file forms its own group.
pub fn group_variants(judged: Vec<JudgedPlugin>) -> Vec<VecDeque<JudgedPlugin>> {
    let mut groups = Vec::<VecDeque<JudgedPlugin>>::new();
    for file in judged {
        let name = file.manifest.as_ref().map(|manifest| &manifest.name);
        let same_name = |group: &&mut VecDeque<JudgedPlugin>| {
            name.is_some() && group.iter().any(|other| other.manifest.as_ref().map(|m| &m.name) == name)
        };
        match groups.iter_mut().find(same_name) {
            Some(group) => group.push_back(file),
            None => groups.push(VecDeque::from([file])),
        }
    }
    for group in &mut groups {
        group.make_contiguous().sort_by_key(|file| (file.candidate.origin, Reverse(file.isa_rank)));
    }
    groups
}

/// The refusal of `loser`, a valid file, because `winner` of the same group works.
pub fn superseded_refusal(loser: &JudgedPlugin, winner: &JudgedPlugin) -> Refusal {
    let path = &loser.candidate.path;
    let other = winner.candidate.path.display();
    if loser.candidate.origin == winner.candidate.origin && loser.isa_rank < winner.isa_rank {
        let expected = "the variant this processor suits best";
        let found = format!("one that uses less of it than `{other}`");
        return Refusal::new(RefusalReason::BetterVariant, path, expected, found, "nothing needs to be done");
    }
    let name = winner.manifest.as_ref().map_or("", |manifest| &manifest.name);
    Refusal::new(
        RefusalReason::Duplicate,
        path,
        format!("one plugin called `{name}`"),
        format!("a second one beside `{other}`, which {} asked for first", winner.candidate.origin),
        "remove one of them, or disable one by its file name",
    )
}
