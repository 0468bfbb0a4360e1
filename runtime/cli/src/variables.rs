//! What the command makes of the variables of the environment: the values of flags, and warnings of what has no effect.

use oarlock_core::flags::{Flags, take_ignored_variables};
use oarlock_host::Environment;

use crate::output::{self, ColorChoice};
use crate::problem::Problem;

/// The flags as the environment sets them. In a program with more rights than its caller no variable counts.
pub(crate) fn flags() -> Result<Flags, Problem> {
    let environment = Environment::from_process();
    Ok(Flags::from_environment(|name| environment.variable(name))?)
}

/// Warns of variables that are set and have no effect, of each once.
pub(crate) fn mention_ignored(color: ColorChoice) {
    for ignored in take_ignored_variables(&Environment::from_process()) {
        output::say(color, "warning", &ignored.to_string(), None);
    }
}
