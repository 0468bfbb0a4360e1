//! The test program of a driver's crate.

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use oarlock_sdk::abi;

use super::{CASES, PluginMachine};

/// Runs every kernel on the first device of a plugin and compares it with plain Rust. Without a device nothing is tested,
/// which is said.
pub fn run_trials(query: abi::PluginQuery) -> ! {
    let arguments = Arguments::from_args();
    let machine = PluginMachine::start_plugin(query).map(Arc::new);
    if let Err(reason) = &machine {
        eprintln!("SKIPPED: no kernel is tested, since there is no device: {reason}");
    }
    let trials = CASES.iter().map(|(name, case)| match &machine {
        Ok(machine) => {
            let machine = Arc::clone(machine);
            Trial::test(*name, move || {
                case(&machine);
                Ok(())
            })
        }
        Err(_) => Trial::test(*name, || Ok(())).with_ignored_flag(true),
    });
    // The driver's threads are left as they are.
    libtest_mimic::run(&arguments, trials.collect()).exit()
}
