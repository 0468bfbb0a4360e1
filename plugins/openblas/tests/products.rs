//! The rows on the OpenBLAS of this machine, or on the library whose file is in `OARLOCK_TEST_OPENBLAS`. Without one every
//! test is listed as ignored, and the reason is printed.

fn main() -> std::process::ExitCode {
    oarlock_blas::testing::main(oarlock_plugin_openblas::QUERY, "OARLOCK_TEST_OPENBLAS")
}
