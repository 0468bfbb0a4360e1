//! pip and uv install from an index that `oarlock-pack` wrote and serves.
//!
//! `scripts/get-installers` installs pinned versions of them; without them there is one ignored test that says so. With
//! `OARLOCK_ALL_PINS`, set to anything, the tests request every wheel that PaddlePaddle published, not just some.

#[path = "../wheels/built.rs"]
mod built;
mod eras;
mod extras;
mod flavors;
mod pins;
mod served_index;
#[path = "../common/server.rs"]
mod server;
mod tools;
#[path = "../common/trials.rs"]
mod trials;
mod variants;
mod yanked;

use std::process::ExitCode;

const TESTS: &[(&str, fn())] = &[
    ("eras/pip_finds_what_1_5_published", eras::pip_finds_what_1_5_published),
    ("eras/pip_finds_what_2_2_1_published", eras::pip_finds_what_2_2_1_published),
    ("eras/pip_finds_what_2_3_2_published", eras::pip_finds_what_2_3_2_published),
    (
        "eras/pip_says_where_there_is_no_wheel_for_a_python_and_refuses_a_word_for_a_version",
        eras::pip_says_where_there_is_no_wheel_for_a_python_and_refuses_a_word_for_a_version,
    ),
    (
        "extras/an_extra_brings_the_libraries_of_a_vendor_from_another_index",
        extras::an_extra_brings_the_libraries_of_a_vendor_from_another_index,
    ),
    (
        "extras/the_libraries_stay_away_where_they_are_local",
        extras::the_libraries_stay_away_where_they_are_local,
    ),
    (
        "extras/uv_takes_from_our_index_alone_what_a_stranger_has_too",
        extras::uv_takes_from_our_index_alone_what_a_stranger_has_too,
    ),
    (
        "extras/one_file_has_no_extras_and_installers_say_so",
        extras::one_file_has_no_extras_and_installers_say_so,
    ),
    (
        "flavors/a_flavor_takes_the_place_of_another_and_leaves_nothing",
        flavors::a_flavor_takes_the_place_of_another_and_leaves_nothing,
    ),
    (
        "flavors/plugins_stand_beside_the_core_and_go_without_a_trace",
        flavors::plugins_stand_beside_the_core_and_go_without_a_trace,
    ),
    ("pins/pip_downloads_the_wheel_of_each_pin", pins::pip_downloads_the_wheel_of_each_pin),
    (
        "pins/pip_downloads_from_the_pages_without_a_server",
        pins::pip_downloads_from_the_pages_without_a_server,
    ),
    (
        "pins/uv_installs_the_wheel_of_each_pin_and_nothing_else",
        pins::uv_installs_the_wheel_of_each_pin_and_nothing_else,
    ),
    (
        "pins/pip_installs_the_wheel_of_each_pin_and_nothing_else",
        pins::pip_installs_the_wheel_of_each_pin_and_nothing_else,
    ),
    (
        "pins/a_python_without_a_lock_gets_the_wheel_that_is_built_for_it",
        pins::a_python_without_a_lock_gets_the_wheel_that_is_built_for_it,
    ),
    ("pins/who_names_no_version_gets_the_plain_core", pins::who_names_no_version_gets_the_plain_core),
    (
        "pins/a_local_version_beside_the_plain_one_would_be_preferred",
        pins::a_local_version_beside_the_plain_one_would_be_preferred,
    ),
    (
        "pins/what_a_wheel_needs_is_known_without_fetching_it",
        pins::what_a_wheel_needs_is_known_without_fetching_it,
    ),
    ("pins/a_wheel_that_was_changed_is_refused", pins::a_wheel_that_was_changed_is_refused),
    ("variants/who_knows_no_variants_passes_over_them", variants::who_knows_no_variants_passes_over_them),
    (
        "variants/who_knows_variants_reads_what_is_said_of_them",
        variants::who_knows_variants_reads_what_is_said_of_them,
    ),
    (
        "yanked/what_is_yanked_comes_only_to_who_asks_for_just_this",
        yanked::what_is_yanked_comes_only_to_who_asks_for_just_this,
    ),
];

fn main() -> ExitCode {
    let directory = tools::installer_directory();
    let missing = || format!("`{}` is missing: run `scripts/get-installers`", directory.display());
    trials::run_trials(TESTS, (!directory.is_dir()).then(missing))
}
