//! The `main` function of a driver crate's kernel tests.

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use oarlock_sdk::abi;

use super::{CASES, PluginMachine};

/// Runs every kernel on the plugin's first device and compares it with plain Rust. Without a device it prints the reason and
/// tests nothing.
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
    // Exits without joining the driver's threads.
    libtest_mimic::run(&arguments, trials.collect()).exit()
}
