//! The compiler on every source, which needs no chip. Without NVRTC nothing is tested, which is said.

use std::collections::BTreeSet;
use std::io::Write;

use oarlock_portable::testing::sources;
use oarlock_portable::{ENTRY, Language};
use oarlock_sdk::Code;

use crate::compiler::{compile, is_there};

fn is_skipped(test: &str) -> bool {
    if !is_there() {
        // Written past the capture of the test harness.
        writeln!(
            std::io::stderr(),
            "SKIPPED {test}: no NVRTC; run with `LD_LIBRARY_PATH=$(scripts/get-nvrtc)` in front"
        )
        .unwrap();
    }
    !is_there()
}

/// Makes these tests compile every source for every architecture, which takes minutes. Without it one architecture gets all
/// and the others get a sample.
const ALL: &str = "OARLOCK_CUDA_TEST_ALL";
const SAMPLE: usize = 20;

/// Compiles every source, or one in so many. Each architecture has a test of its own, so that they run side by side.
fn compile_sources(architecture: &str, one_in: usize) {
    if is_skipped(architecture) {
        return;
    }
    let one_in = if std::env::var_os(ALL).is_some() { 1 } else { one_in };
    let sources: BTreeSet<String> = sources(Language::Cuda).into_iter().collect();
    assert!(sources.len() > 300, "{} sources", sources.len());
    for source in sources.iter().step_by(one_in) {
        let binary = compile(source, architecture).unwrap_or_else(|error| panic!("{error}\n{source}"));
        assert!(binary.starts_with(b"\x7fELF"), "{architecture}: no code\n{source}");
    }
}

#[test]
fn sources_compile_for_sm_80() {
    compile_sources("sm_80", SAMPLE);
}

#[test]
fn sources_compile_for_sm_90() {
    compile_sources("sm_90", 1);
}

#[test]
fn sources_compile_for_sm_100() {
    compile_sources("sm_100", SAMPLE);
}

#[test]
fn sources_with_indices_of_64_bits_compile() {
    if is_skipped("wide indices") {
        return;
    }
    for source in sources(Language::Cuda).iter().step_by(40) {
        let wide = source.replace("#define INDEX i32", "#define INDEX i64");
        assert_ne!(&wide, source);
        compile(&wide, "sm_90").map(drop).unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}

#[test]
fn a_source_that_does_not_compile_is_an_error_with_what_the_compiler_says() {
    if is_skipped("compiling") {
        return;
    }
    let source = format!("extern \"C\" __global__ void {ENTRY}(int *data) {{ data[0] = missing; }}");
    let error = compile(&source, "sm_90").unwrap_err();
    assert_eq!(error.code(), Code::EXTERNAL);
    assert!(error.message().contains("\"missing\" is undefined"), "{error}");
    let error = compile(&source, "sm_1").unwrap_err();
    assert!(error.message().contains("sm_1"), "{error}");
}
