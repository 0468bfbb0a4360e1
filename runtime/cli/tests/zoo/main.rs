//! The zoo: plugins that are wrong in one way each. `oarlock plugin check` has to name what is wrong, and a host has to survive.
//!
//! The tables in `tests/zoo` say what each animal does and what has to be found. An animal that is `unfound` has to stay so: whoever
//! teaches the suite to find it takes it out of that list. Usually one animal of each row is examined, chosen by a seed;
//! `OARLOCK_ZOO=full` examines all, and `OARLOCK_ZOO_SEED` chooses others.

mod animal;
mod watched;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::animal::{ZooAnimal, read_zoo};

/// The tables together have at least so many animals.
const MIN_ANIMALS: usize = 120;

fn main() -> ExitCode {
    let animals = read_zoo();
    assert!(animals.len() >= MIN_ANIMALS, "expected {MIN_ANIMALS} animals, found {}", animals.len());
    if oarlock_abi::SANITIZER != oarlock_abi::Sanitizer::NONE {
        eprintln!("skipped: a host with a sanitizer refuses plugins without it");
        return ExitCode::SUCCESS;
    }
    let is_full = std::env::var_os("OARLOCK_ZOO").is_some_and(|value| value == "full");
    let trials = animals.into_iter().map(|animal: ZooAnimal| {
        let ignored = animal.is_slow && !is_full;
        Trial::test(animal.name.clone(), move || animal.examine()).with_ignored_flag(ignored)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
