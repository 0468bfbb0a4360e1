//! Every kernel on the first CUDA device, compared with plain Rust. Without a device nothing is tested, which is said.

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use oarlock_plugin_cuda::QUERY;
use oarlock_portable::testing::{CASES, Machine};

fn main() {
    let arguments = Arguments::from_args();
    let machine = Machine::start(QUERY).map(Arc::new);
    if let Err(reason) = &machine {
        eprintln!("SKIPPED: no kernel is tested, since there is no CUDA device: {reason}");
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
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    // The driver's threads are left as they are.
    conclusion.exit();
}
