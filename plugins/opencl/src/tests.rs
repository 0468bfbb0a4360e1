//! The driver on a real device. Without one the tests are skipped with a message.

use std::io::Write;

use oarlock_portable::testing::{check_driver, driver_devices, record_sources};
use oarlock_portable::{Gpu, KernelLanguage};
use oarlock_sdk::PluginError;

use crate::gpu::OpenClGpu;

fn report_skipped(test: &str, reason: &PluginError) {
    // Written directly, past the output capture of the test harness.
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").unwrap();
}

#[test]
fn the_driver_keeps_what_the_shared_devices_count_on() {
    check_driver::<OpenClGpu>().unwrap_or_else(|reason| report_skipped("the driver", &reason));
}

#[test]
fn sources_with_indices_of_64_bits_compile() {
    let gpus = match driver_devices::<OpenClGpu>() {
        Ok(gpus) => gpus,
        Err(reason) => return report_skipped("wide indices", &reason),
    };
    let session = gpus.device_session(0).unwrap();
    let sources = record_sources(KernelLanguage::OpenCl);
    // Other tests run every kernel with 32-bit indices; a sample of all kinds is enough here.
    for source in sources.iter().step_by(40) {
        let wide = source.replace("#define INDEX i32", "#define INDEX i64");
        assert_ne!(&wide, source);
        session
            .driver_gpu()
            .compile_program(&wide, false)
            .map(drop)
            .unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}
