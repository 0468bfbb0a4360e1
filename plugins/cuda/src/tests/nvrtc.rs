//! Compiles every source, which needs no GPU. Without NVRTC the tests are skipped with a message.

use std::collections::BTreeSet;
use std::io::Write;

use oarlock_portable::testing::record_sources;
use oarlock_portable::{KERNEL_ENTRY_POINT, KernelLanguage};
use oarlock_sdk::Code;

use crate::compiler::{compile_source, is_nvrtc_available};

fn is_skipped(test: &str) -> bool {
    if !is_nvrtc_available() {
        // Written directly, past the output capture of the test harness.
        writeln!(
            std::io::stderr(),
            "SKIPPED {test}: no NVRTC; run with `LD_LIBRARY_PATH=$(scripts/get-nvrtc)` in front"
        )
        .unwrap();
    }
    !is_nvrtc_available()
}

/// If set, these tests compile every source for every architecture, which takes minutes. Otherwise one architecture gets all
/// sources and the others get a sample.
const ALL_SOURCES_VARIABLE: &str = "OARLOCK_CUDA_TEST_ALL";
const SAMPLE_INTERVAL: usize = 20;

/// Compiles one in `one_in` sources. Each architecture has a test of its own, so that they run in parallel.
fn compile_sources(architecture: &str, one_in: usize) {
    if is_skipped(architecture) {
        return;
    }
    let one_in = if std::env::var_os(ALL_SOURCES_VARIABLE).is_some() { 1 } else { one_in };
    let sources: BTreeSet<String> = record_sources(KernelLanguage::Cuda).into_iter().collect();
    assert!(sources.len() > 300, "{} sources", sources.len());
    for source in sources.iter().step_by(one_in) {
        let binary = compile_source(source, architecture).unwrap_or_else(|error| panic!("{error}\n{source}"));
        assert!(binary.starts_with(b"\x7fELF"), "{architecture}: no code\n{source}");
    }
}

#[test]
fn sources_compile_for_sm_80() {
    compile_sources("sm_80", SAMPLE_INTERVAL);
}

#[test]
fn sources_compile_for_sm_90() {
    compile_sources("sm_90", 1);
}

#[test]
fn sources_compile_for_sm_100() {
    compile_sources("sm_100", SAMPLE_INTERVAL);
}

#[test]
fn sources_with_indices_of_64_bits_compile() {
    if is_skipped("wide indices") {
        return;
    }
    for source in record_sources(KernelLanguage::Cuda).iter().step_by(40) {
        let wide = source.replace("#define INDEX i32", "#define INDEX i64");
        assert_ne!(&wide, source);
        compile_source(&wide, "sm_90").map(drop).unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}

#[test]
fn a_source_that_does_not_compile_is_an_error_with_what_the_compiler_says() {
    if is_skipped("compiling") {
        return;
    }
    let source =
        format!("extern \"C\" __global__ void {KERNEL_ENTRY_POINT}(int *data) {{ data[0] = missing; }}");
    let error = compile_source(&source, "sm_90").unwrap_err();
    assert_eq!(error.code(), Code::EXTERNAL);
    assert!(error.message().contains("\"missing\" is undefined"), "{error}");
    let error = compile_source(&source, "sm_1").unwrap_err();
    assert!(error.message().contains("sm_1"), "{error}");
}
