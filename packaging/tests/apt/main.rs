//! apt installs from a repository that `oarlock-pack` wrote and serves, and rejects invalid ones.
//!
//! apt runs with its own directory and changes nothing on the machine. Without apt there is one ignored test that says so.

mod accepted;
mod machine;
#[path = "../common/package.rs"]
mod package;
mod refused;
mod served_repository;
#[path = "../common/server.rs"]
mod server;
#[path = "../common/trials.rs"]
mod trials;

use std::process::{Command, ExitCode};

const TESTS: &[(&str, fn())] = &[
    (
        "accepted/apt_gets_just_the_packages_that_were_given",
        accepted::apt_gets_just_the_packages_that_were_given,
    ),
    ("accepted/lists_are_asked_for_by_their_hashes", accepted::lists_are_asked_for_by_their_hashes),
    (
        "accepted/who_reads_an_older_release_finds_its_lists_for_two_more",
        accepted::who_reads_an_older_release_finds_its_lists_for_two_more,
    ),
    (
        "accepted/who_was_refused_reads_the_next_release_from_its_beginning",
        accepted::who_was_refused_reads_the_next_release_from_its_beginning,
    ),
    ("accepted/two_keys_satisfy_who_knows_one_of_them", accepted::two_keys_satisfy_who_knows_one_of_them),
    ("refused/a_list_of_which_a_byte_changed", refused::a_list_of_which_a_byte_changed),
    ("refused/a_release_of_which_a_byte_changed", refused::a_release_of_which_a_byte_changed),
    ("refused/a_package_of_which_a_byte_changed", refused::a_package_of_which_a_byte_changed),
    ("refused/what_has_ended", refused::what_has_ended),
    ("refused/what_nobody_signed", refused::what_nobody_signed),
    ("refused/what_somebody_else_signed", refused::what_somebody_else_signed),
];

fn main() -> ExitCode {
    let is_here =
        Command::new("apt-get").arg("--version").output().is_ok_and(|message| message.status.success());
    let missing = || "`apt-get` is missing: it is part of Debian and Ubuntu".to_owned();
    trials::run_trials(TESTS, (!is_here).then(missing))
}
