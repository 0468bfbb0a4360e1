//! The variables of the environment that mean something to Oarlock, and those that only look as if they did.
//!
//! A slip in the name of a variable would leave what it says undone without a word, so it is told. It is no error: other
//! programs may have variables that begin like ours.

use oarlock_core::flags::{Flags, TABLE};
use oarlock_host::{Environment, nearest};

use crate::output::{self, ColorChoice};
use crate::problem::Problem;

/// What the names of Oarlock's own variables begin with.
const PREFIX: &str = "OARLOCK_";

/// The variables that mean something to the host. Flags have further ones.
const OF_HOST: [&str; 3] = ["OARLOCK_CONFIG", "OARLOCK_ISA_MASK", "OARLOCK_PLUGIN_PATH"];

/// What the names of variables end in that hide devices, from a plugin or from a driver below it.
const VISIBLE_DEVICES: &str = "_VISIBLE_DEVICES";

/// What is in the names of variables that only tests look at.
const OF_TESTS: &str = "_TEST_";

/// The flags as the environment sets them. In a program with more rights than its caller no variable counts.
pub(crate) fn flags() -> Result<Flags, Problem> {
    let is_elevated = Environment::from_process().elevated;
    Ok(Flags::from_environment(|name| if is_elevated { None } else { std::env::var_os(name) })?)
}

/// Whether a variable means something to the host, to a plugin or to a flag.
pub(crate) fn is_known(name: &str) -> bool {
    let sets_flag = TABLE.iter().any(|flag| flag.variable() == name || flag.aliases.contains(&name));
    OF_HOST.contains(&name) || name.ends_with(VISIBLE_DEVICES) || sets_flag
}

/// Whether a variable is one of Oarlock's by its name.
pub(crate) fn looks_like_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Warns of variables that are set, look like Oarlock's and mean nothing to it.
pub(crate) fn mention_unknown(color: ColorChoice) {
    if Environment::from_process().elevated {
        return;
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> =
        names.filter(|name| looks_like_ours(name) && !is_known(name) && !name.contains(OF_TESTS)).collect();
    unknown.sort();
    for name in unknown {
        let hint = match nearest_known(&name) {
            Some(meant) => format!("did you mean `{meant}`? `oarlock flags` lists those of flags"),
            None => "`oarlock flags` lists those of flags".to_owned(),
        };
        let message = format!("expected variables that mean something to Oarlock, found `{name}`");
        output::say(color, "warning", &message, Some(&hint));
    }
}

/// The variable that was probably meant. What all of them begin with does not make them alike.
fn nearest_known(name: &str) -> Option<String> {
    let of_flags: Vec<String> = TABLE.iter().map(|flag| flag.variable()).collect();
    let known = OF_HOST.into_iter().chain(of_flags.iter().map(String::as_str));
    let meant = nearest(name.strip_prefix(PREFIX)?, known.filter_map(|name| name.strip_prefix(PREFIX)))?;
    Some(format!("{PREFIX}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_what_only_begins_alike_is_not() {
        assert_eq!(nearest_known("OARLOCK_DETERMINSTIC").as_deref(), Some("OARLOCK_DETERMINISTIC"));
        assert_eq!(nearest_known("OARLOCK_PLUGIN_PTAH").as_deref(), Some("OARLOCK_PLUGIN_PATH"));
        assert_eq!(nearest_known("OARLOCK_HOME_OF_ROWERS"), None);
    }

    #[test]
    fn variables_of_the_host_of_flags_and_of_plugins_are_known() {
        for name in ["OARLOCK_CONFIG", "OARLOCK_DEVICE", "FLAGS_benchmark", "OARLOCK_OPENCL_VISIBLE_DEVICES"]
        {
            assert!(is_known(name), "{name}");
        }
        assert!(!is_known("OARLOCK_DETERMINSTIC") && !is_known("PATH"));
    }
}
