//! What the command makes of the variables of the environment: the values of flags, and warnings of what has no effect.

use oarlock_core::flags::{Flags, take_ignored_variables};
use oarlock_host::HostEnvironment;

use crate::output::{self, ColorChoice};
use crate::problem::CommandError;

/// The flags as the environment sets them. In a program with more rights than its caller no variable counts.
pub(crate) fn flags_from_environment() -> Result<Flags, CommandError> {
    let environment = HostEnvironment::from_process();
    Ok(Flags::from_environment(|name| environment.variable(name))?)
}

/// Warns of variables that are set and have no effect, of each once.
pub(crate) fn warn_about_ignored(color: ColorChoice) {
    for ignored in take_ignored_variables(&HostEnvironment::from_process()) {
        output::print_message(color, "warning", &ignored.to_string(), None);
    }
}
