//! Custom devices of PaddlePaddle, good and bad, in a host with the adapter for them.
//!
//! Each is compiled from `paddle_devices/custom_device.c`, whose macros say for which release it is and what is wrong with it. This
//! program is also the probe: the host starts it with `__probe` and a file. To try a file of another vendor, set
//! `OARLOCK_PADDLE_TEST_DEVICE` to its path.

mod accepted;
mod refused;
mod test_device;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::test_device::{ADAPTERS, PROBE_COMMAND};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == PROBE_COMMAND) {
        let file = arguments.next().unwrap_or_default();
        return oarlock_host::probe_child_main(Path::new(&file), ADAPTERS);
    }
    let trials: Vec<Trial> = accepted::list_trials().into_iter().chain(refused::list_trials()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
