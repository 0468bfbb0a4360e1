//! Variables of the environment that have no effect, although somebody set them for it: names of Oarlock with a slip in
//! them, and what is meant for PaddlePaddle and does nothing here.
//!
//! That is told, once in a process, and is no error: an environment serves many programs. A name that only begins like one
//! of PaddlePaddle's is not told: `FLAGS_` is what every program with gflags has, and nothing is known that could be used
//! instead. `oarlock doctor` lists it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use oarlock_host::{Environment, nearest};

use super::paddle::{PaddleEffect, WITHOUT_EFFECT, paddle_variables};
use super::{PaddleVariable, TABLE};

/// What the names of Oarlock's own variables begin with.
const OWN_PREFIX: &str = "OARLOCK_";

/// What the names of most variables of PaddlePaddle begin with.
const PADDLE_PREFIXES: [&str; 2] = ["FLAGS_", "PADDLE_"];

/// The variables that mean something to the host. Flags have further ones.
const OF_HOST: [&str; 3] = ["OARLOCK_CONFIG", "OARLOCK_ISA_MASK", "OARLOCK_PLUGIN_PATH"];

/// What the names of variables end in that hide devices, from a plugin or from a driver below it.
const VISIBLE_DEVICES: &str = "_VISIBLE_DEVICES";

/// What is in the names of variables that only tests look at.
const OF_TESTS: &str = "_TEST_";

/// Further variables that only tests, and scripts of the source tree, look at.
const OF_TOOLS: [&str; 7] = [
    "OARLOCK_ALL_PINS",
    "OARLOCK_COMMAND",
    "OARLOCK_INSTALL_MACHINE",
    "OARLOCK_INSTALL_ROOT",
    "OARLOCK_LEAK_CALLS",
    "OARLOCK_SUITE_DEVICE",
    "OARLOCK_WRITE",
];

/// A variable that is set and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredVariable {
    /// Its name.
    pub name: String,
    /// What to do instead, or why there is nothing to do.
    pub advice: String,
}

impl fmt::Display for IgnoredVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment variable `{}` has no effect here; {}", self.name, self.advice)
    }
}

/// Whether a variable means something to the host, to a plugin or to a flag.
pub fn has_effect(name: &str) -> bool {
    let sets_flag = TABLE.iter().any(|flag| flag.variable() == name || flag.aliases.contains(&name));
    OF_HOST.contains(&name) || name.ends_with(VISIBLE_DEVICES) || sets_flag
}

/// Whether somebody who sets this variable may expect Oarlock to read it.
pub fn concerns_oarlock(name: &str) -> bool {
    let mut prefixes = [OWN_PREFIX].into_iter().chain(PADDLE_PREFIXES);
    has_effect(name) || prefixes.any(|prefix| name.starts_with(prefix)) || without_effect(name).is_some()
}

/// What to say of a variable that is set, if it has no effect and that is worth a word.
pub fn ignored_variable(name: &str) -> Option<IgnoredVariable> {
    let is_of_tools = name.contains(OF_TESTS) || OF_TOOLS.contains(&name);
    if has_effect(name) || is_of_tools {
        return None;
    }
    let advice = match name.strip_prefix(OWN_PREFIX) {
        Some(rest) => advice_on_own(rest),
        None => advice_on_paddle(name)?,
    };
    Some(IgnoredVariable { name: name.to_owned(), advice })
}

/// The variables of this process that have no effect and were not given before. In a program with more rights than its
/// caller no variable counts.
pub fn take_ignored_variables(environment: &Environment) -> Vec<IgnoredVariable> {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if environment.elevated {
        return Vec::new();
    }
    let is_set = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        if value.is_empty() { None } else { name.into_string().ok() }
    };
    let names = std::env::vars_os().filter_map(is_set);
    untold(&mut TOLD.lock().unwrap_or_else(PoisonError::into_inner), names)
}

/// The ignored ones among these variables, by name, without those that were told. They are told from now on.
fn untold(told: &mut BTreeSet<String>, names: impl Iterator<Item = String>) -> Vec<IgnoredVariable> {
    let ignored = names.collect::<BTreeSet<String>>().into_iter().filter_map(|name| ignored_variable(&name));
    ignored.filter(|variable| told.insert(variable.name.clone())).collect()
}

/// What to do about a name of ours that nothing has. What all of them begin with does not make them alike.
fn advice_on_own(rest: &str) -> String {
    let of_flags: Vec<String> = TABLE.iter().map(|flag| flag.variable()).collect();
    let known = OF_HOST.into_iter().chain(of_flags.iter().map(String::as_str));
    match nearest(rest, known.filter_map(|name| name.strip_prefix(OWN_PREFIX))) {
        Some(meant) => format!("did you mean `{OWN_PREFIX}{meant}`?"),
        None => "`oarlock flags` lists the variables of flags".to_owned(),
    }
}

/// What to use instead of a variable of PaddlePaddle, or of one that is spelt much like it.
pub(super) fn advice_on_paddle(name: &str) -> Option<String> {
    if let Some(variable) = without_effect(name) {
        return Some(variable.instead.to_owned());
    }
    let prefix = PADDLE_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix))?;
    let known = paddle_variables();
    let alike = known.iter().filter_map(|(name, _)| name.strip_prefix(prefix));
    let meant = format!("{prefix}{}", nearest(name.strip_prefix(prefix)?, alike)?);
    let (_, effect) = known.into_iter().find(|(name, _)| *name == meant)?;
    Some(match effect {
        PaddleEffect::Sets(_) => format!("did you mean `{meant}`?"),
        PaddleEffect::Nothing(variable) => {
            format!("neither has `{meant}`, which is spelt much like it; {}", variable.instead)
        }
    })
}

/// The row of a variable of PaddlePaddle that has no effect.
pub(super) fn without_effect(name: &str) -> Option<&'static PaddleVariable> {
    WITHOUT_EFFECT.iter().find(|variable| variable.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(name: &str) -> Option<String> {
        ignored_variable(name).map(|variable| variable.advice)
    }

    #[test]
    fn every_variable_without_effect_is_told_once_with_its_advice() {
        let names = || WITHOUT_EFFECT.iter().map(|variable| variable.name.to_owned());
        let mut told = BTreeSet::new();
        let first = untold(&mut told, names().chain(names()));
        assert_eq!(first.len(), WITHOUT_EFFECT.len());
        for variable in WITHOUT_EFFECT {
            let expected = format!(
                "the environment variable `{}` has no effect here; {}",
                variable.name, variable.instead
            );
            let found = first.iter().filter(|ignored| ignored.to_string() == expected).count();
            assert_eq!(found, 1, "{}", variable.name);
        }
        assert_eq!(untold(&mut told, names()), []);
    }

    #[test]
    fn a_slip_is_recognised_and_what_only_begins_alike_is_not() {
        assert_eq!(advice("OARLOCK_DETERMINSTIC").as_deref(), Some("did you mean `OARLOCK_DETERMINISTIC`?"));
        assert_eq!(advice("OARLOCK_PLUGIN_PTAH").as_deref(), Some("did you mean `OARLOCK_PLUGIN_PATH`?"));
        let listed = "`oarlock flags` lists the variables of flags";
        assert_eq!(advice("OARLOCK_HOME_OF_ROWERS").as_deref(), Some(listed));
        assert_eq!(advice("FLAGS_chek_nan_inf").as_deref(), Some("did you mean `FLAGS_check_nan_inf`?"));
        let alike = advice("FLAGS_use_mkl_dnn").unwrap();
        assert!(
            alike.starts_with("neither has `FLAGS_use_mkldnn`, which is spelt much like it; "),
            "{alike}"
        );
        let of_trainers = advice("PADDLE_TRAINER_NUM").unwrap();
        assert!(of_trainers.starts_with("neither has `PADDLE_TRAINERS_NUM`"), "{of_trainers}");
    }

    #[test]
    fn variables_of_other_programs_of_tests_and_with_an_effect_are_not_told() {
        let other = ["FLAGS_unknown", "FLAGS_logtostderr", "FLAGS_v", "FLAGS_", "PADDLE_HOME", "PATH", ""];
        let of_tests = ["OARLOCK_TEST_SEEDS", "OARLOCK_CUDA_TEST_ALL", "OARLOCK_WRITE"];
        let effective = ["OARLOCK_CONFIG", "OARLOCK_DEVICE", "FLAGS_benchmark", "CUDA_VISIBLE_DEVICES"];
        for name in other.iter().chain(&of_tests).chain(&effective) {
            assert_eq!(advice(name), None, "{name}");
        }
        assert!(effective.iter().all(|name| has_effect(name)));
        assert!(!has_effect("OARLOCK_DETERMINSTIC") && !has_effect("FLAGS_selected_gpus"));
    }

    #[test]
    fn names_of_oarlock_of_its_plugins_and_of_paddle_concern_it() {
        for name in ["OARLOCK_X", "ACME_VISIBLE_DEVICES", "FLAGS_x", "PADDLE_X", "CUSTOM_DEVICE_ROOT"] {
            assert!(concerns_oarlock(name), "{name}");
        }
        assert!(!concerns_oarlock("PATH") && !concerns_oarlock("CUSTOM_DEVICE"));
    }
}
