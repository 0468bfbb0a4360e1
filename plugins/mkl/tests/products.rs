//! The rows on the MKL of this machine, or on the library whose file is in `OARLOCK_TEST_MKL`. Without one every test is
//! listed as ignored, and the reason is printed.

fn main() -> std::process::ExitCode {
    oarlock_blas::testing::main(oarlock_plugin_mkl::QUERY, "OARLOCK_TEST_MKL")
}
