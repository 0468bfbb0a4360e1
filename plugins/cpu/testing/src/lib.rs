//! Runs CPU kernels in unit tests, as a host would, and compares their results with expected ones.

#![expect(missing_docs, reason = "for the tests of this plugin; names say what most of it is")]

pub mod isa_levels;
pub mod kernel_checks;
pub mod runner;
pub mod test_team;

#[doc(hidden)]
pub use {oarlock_cpu_base as base, oarlock_sdk as sdk};

/// A [`KernelRunner`](runner::KernelRunner) for the CPU device with the kernels that these functions return.
#[macro_export]
macro_rules! kernel_runner {
    ($($kernels:path),+) => {{
        fn plugin(
            host: &$crate::sdk::HostServices,
        ) -> $crate::sdk::Result<$crate::sdk::Plugin<$crate::base::device::Cpu>> {
            let cpu = $crate::base::device::Cpu::new(host);
            Ok($crate::sdk::Plugin::for_device("oarlock-cpu", "0", "cpu", cpu)
                .with_async()
                $(.with_kernels($kernels()))+)
        }
        $crate::runner::KernelRunner::new($crate::sdk::query!(plugin))
    }};
}
