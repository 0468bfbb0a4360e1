//! The driver on a device that is there. Without one nothing is tested, which is said.

use std::io::Write;

use oarlock_portable::testing::{check_driver, devices, sources};
use oarlock_portable::{Gpu, Language};
use oarlock_sdk::Error;

use crate::gpu::OpenCl;

fn skipped(test: &str, reason: &Error) {
    // Written past the capture of the test harness.
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").unwrap();
}

#[test]
fn the_driver_keeps_what_the_shared_devices_count_on() {
    check_driver::<OpenCl>().unwrap_or_else(|reason| skipped("the driver", &reason));
}

#[test]
fn sources_with_indices_of_64_bits_compile() {
    let gpus = match devices::<OpenCl>() {
        Ok(gpus) => gpus,
        Err(reason) => return skipped("wide indices", &reason),
    };
    let session = gpus.session(0).unwrap();
    let sources = sources(Language::OpenCl);
    // Every kernel is run with indices of 32 bits elsewhere; a few of all kinds do here.
    for source in sources.iter().step_by(40) {
        let wide = source.replace("#define INDEX i32", "#define INDEX i64");
        assert_ne!(&wide, source);
        session.gpu().compile(&wide, false).map(drop).unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}
