//! Environment variables that look like settings but have no effect: misspelled names of Oarlock's variables, and
//! PaddlePaddle's settings without an equivalent here.
//!
//! The runtime warns of each once per process. This is not an error, because many programs share an environment.
//! A name that only has the prefix of PaddlePaddle's names causes no warning: every program with gflags has `FLAGS_`
//! variables, and no replacement is known for them. `oarlock doctor` lists those too.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use oarlock_host::{HostEnvironment, nearest_name};

use super::paddle::{INEFFECTIVE_VARIABLES, PaddleEffect, paddle_variables};
use super::{FLAG_TABLE, PaddleVariable};

const OWN_PREFIX: &str = "OARLOCK_";

/// The prefixes of most PaddlePaddle variables.
const PADDLE_PREFIXES: [&str; 2] = ["FLAGS_", "PADDLE_"];

/// Variables that the host reads, in addition to those of flags.
const HOST_VARIABLES: [&str; 6] = [
    "CUSTOM_DEVICE_ROOT",
    "OARLOCK_CONFIG",
    "OARLOCK_ISA_MASK",
    "OARLOCK_ISOLATE",
    "OARLOCK_LAYERS",
    "OARLOCK_PLUGIN_PATH",
];

/// Variables with this suffix hide devices. A plugin or a driver below it reads them.
const VISIBLE_DEVICES_SUFFIX: &str = "_VISIBLE_DEVICES";

/// Part of the names of variables that only tests read.
const TEST_MARKER: &str = "_TEST_";

/// Further variables that only tests and scripts of the source tree read.
const TOOL_VARIABLES: [&str; 7] = [
    "OARLOCK_ALL_PINS",
    "OARLOCK_COMMAND",
    "OARLOCK_INSTALL_MACHINE",
    "OARLOCK_INSTALL_ROOT",
    "OARLOCK_LEAK_CALLS",
    "OARLOCK_SUITE_DEVICE",
    "OARLOCK_WRITE",
];

/// An environment variable that is set and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredVariable {
    /// Its full name.
    pub name: String,
    /// What to do instead, or why there is nothing to do.
    pub advice: String,
}

impl fmt::Display for IgnoredVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment variable `{}` has no effect here; {}", self.name, self.advice)
    }
}

/// True if the host, a plugin or a flag reads the variable.
pub fn has_effect(name: &str) -> bool {
    let sets_flag =
        FLAG_TABLE.iter().any(|flag| flag.variable_name() == name || flag.aliases.contains(&name));
    HOST_VARIABLES.contains(&name) || name.ends_with(VISIBLE_DEVICES_SUFFIX) || sets_flag
}

/// True if a user who sets this variable may expect Oarlock to read it.
pub fn concerns_oarlock(name: &str) -> bool {
    let mut prefixes = [OWN_PREFIX].into_iter().chain(PADDLE_PREFIXES);
    has_effect(name) || prefixes.any(|prefix| name.starts_with(prefix)) || find_ineffective(name).is_some()
}

/// Advice for a variable that has no effect; `None` if it has one, or if there is nothing useful to say.
pub fn ignored_variable(name: &str) -> Option<IgnoredVariable> {
    let is_of_tools = name.contains(TEST_MARKER) || TOOL_VARIABLES.contains(&name);
    if has_effect(name) || is_of_tools {
        return None;
    }
    let advice = match name.strip_prefix(OWN_PREFIX) {
        Some(rest) => advice_for_own(rest),
        None => advice_for_paddle(name)?,
    };
    Some(IgnoredVariable { name: name.to_owned(), advice })
}

/// Lists the variables of this process that have no effect, each only once per process. Empty in a program that runs
/// with more rights than its caller, since it ignores all variables.
pub fn take_ignored_variables(environment: &HostEnvironment) -> Vec<IgnoredVariable> {
    static REPORTED_VARIABLES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if environment.elevated {
        return Vec::new();
    }
    let is_set = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        if value.is_empty() { None } else { name.into_string().ok() }
    };
    let names = std::env::vars_os().filter_map(is_set);
    unreported_variables(&mut REPORTED_VARIABLES.lock().unwrap_or_else(PoisonError::into_inner), names)
}

/// The ignored ones among `names` that are not in `told` yet; adds them to it.
fn unreported_variables(
    told: &mut BTreeSet<String>,
    names: impl Iterator<Item = String>,
) -> Vec<IgnoredVariable> {
    let ignored = names.collect::<BTreeSet<String>>().into_iter().filter_map(|name| ignored_variable(&name));
    ignored.filter(|variable| told.insert(variable.name.clone())).collect()
}

/// Advice for a name with our prefix that nothing reads. Names are compared without the prefix, which would make them
/// all similar.
fn advice_for_own(rest: &str) -> String {
    let of_flags: Vec<String> = FLAG_TABLE.iter().map(|flag| flag.variable_name()).collect();
    let known = HOST_VARIABLES.into_iter().chain(of_flags.iter().map(String::as_str));
    match nearest_name(rest, known.filter_map(|name| name.strip_prefix(OWN_PREFIX))) {
        Some(meant) => format!("did you mean `{OWN_PREFIX}{meant}`?"),
        None => "`oarlock flags` lists the variables of flags".to_owned(),
    }
}

/// Advice for a variable of PaddlePaddle, or for one with a similar name.
pub(super) fn advice_for_paddle(name: &str) -> Option<String> {
    if let Some(variable) = find_ineffective(name) {
        return Some(variable.instead.to_owned());
    }
    let prefix = PADDLE_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix))?;
    let known = paddle_variables();
    let alike = known.iter().filter_map(|(name, _)| name.strip_prefix(prefix));
    let meant = format!("{prefix}{}", nearest_name(name.strip_prefix(prefix)?, alike)?);
    let (_, effect) = known.into_iter().find(|(name, _)| *name == meant)?;
    Some(match effect {
        PaddleEffect::Sets(_) => format!("did you mean `{meant}`?"),
        PaddleEffect::Nothing(variable) => {
            format!("neither has `{meant}`, which is spelt much like it; {}", variable.instead)
        }
    })
}

pub(super) fn find_ineffective(name: &str) -> Option<&'static PaddleVariable> {
    INEFFECTIVE_VARIABLES.iter().find(|variable| variable.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_for_variable(name: &str) -> Option<String> {
        ignored_variable(name).map(|variable| variable.advice)
    }

    #[test]
    fn every_ineffective_variable_is_reported_once_with_its_advice() {
        let names = || INEFFECTIVE_VARIABLES.iter().map(|variable| variable.name.to_owned());
        let mut told = BTreeSet::new();
        let first = unreported_variables(&mut told, names().chain(names()));
        assert_eq!(first.len(), INEFFECTIVE_VARIABLES.len());
        for variable in INEFFECTIVE_VARIABLES {
            let expected = format!(
                "the environment variable `{}` has no effect here; {}",
                variable.name, variable.instead
            );
            let found = first.iter().filter(|ignored| ignored.to_string() == expected).count();
            assert_eq!(found, 1, "{}", variable.name);
        }
        assert_eq!(unreported_variables(&mut told, names()), []);
    }

    #[test]
    fn a_slip_is_recognised_and_what_only_begins_alike_is_not() {
        assert_eq!(
            advice_for_variable("OARLOCK_DETERMINSTIC").as_deref(),
            Some("did you mean `OARLOCK_DETERMINISTIC`?")
        );
        assert_eq!(
            advice_for_variable("OARLOCK_PLUGIN_PTAH").as_deref(),
            Some("did you mean `OARLOCK_PLUGIN_PATH`?")
        );
        let listed = "`oarlock flags` lists the variables of flags";
        assert_eq!(advice_for_variable("OARLOCK_HOME_OF_ROWERS").as_deref(), Some(listed));
        assert_eq!(
            advice_for_variable("FLAGS_chek_nan_inf").as_deref(),
            Some("did you mean `FLAGS_check_nan_inf`?")
        );
        let alike = advice_for_variable("FLAGS_use_mkl_dnn").unwrap();
        assert!(
            alike.starts_with("neither has `FLAGS_use_mkldnn`, which is spelt much like it; "),
            "{alike}"
        );
        let of_trainers = advice_for_variable("PADDLE_TRAINER_NUM").unwrap();
        assert!(of_trainers.starts_with("neither has `PADDLE_TRAINERS_NUM`"), "{of_trainers}");
    }

    #[test]
    fn variables_of_other_programs_of_tests_and_with_an_effect_are_not_told() {
        let other = ["FLAGS_unknown", "FLAGS_logtostderr", "FLAGS_v", "FLAGS_", "PADDLE_HOME", "PATH", ""];
        let of_tests = ["OARLOCK_TEST_SEEDS", "OARLOCK_CUDA_TEST_ALL", "OARLOCK_WRITE"];
        let effective = ["OARLOCK_CONFIG", "OARLOCK_DEVICE", "FLAGS_benchmark", "CUDA_VISIBLE_DEVICES"];
        for name in other.iter().chain(&of_tests).chain(&effective) {
            assert_eq!(advice_for_variable(name), None, "{name}");
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
