//! Environment variables: the flags that they set, and warnings about those without effect.

use oarlock_core::flags::{Flags, take_ignored_variables};
use oarlock_host::HostEnvironment;

use crate::output::{self, ColorChoice};
use crate::problem::CommandError;

/// Flags set by environment variables. A setuid or setgid program ignores the environment.
pub(crate) fn flags_from_environment() -> Result<Flags, CommandError> {
    let environment = HostEnvironment::from_process();
    Ok(Flags::from_environment(|name| environment.variable(name))?)
}

/// Warns once about each variable that is set and has no effect.
pub(crate) fn warn_about_ignored(color: ColorChoice) {
    for ignored in take_ignored_variables(&HostEnvironment::from_process()) {
        output::print_message(color, "warning", &ignored.to_string(), None);
    }
}
