//! The kernels on the OpenBLAS of this machine, or on the library file in `OARLOCK_TEST_OPENBLAS`. Without either, every test is
//! listed as ignored and the reason is printed.

fn main() -> std::process::ExitCode {
    oarlock_blas::testing::main(oarlock_plugin_openblas::QUERY, "OARLOCK_TEST_OPENBLAS")
}
