//! Tests that cross crates. They are in `tests/`; this library contains what several of them share, and compiles the examples
//! in the book.

pub mod bare_host;

use std::path::Path;
use std::process::Command;

/// The command with which a vendor compiles a plugin of `plugins`, without file names. The sanitizer flags must match this
/// program's, since a host refuses other plugins. Unlike gcc, clang takes the sanitizer runtime from the program.
pub fn plugin_compiler(is_cpp: bool, is_sanitized: bool) -> Command {
    let usual = match (is_cpp, is_sanitized) {
        (false, false) => "cc",
        (false, true) => "clang",
        (true, false) => "c++",
        (true, true) => "clang++",
    };
    // Set where tests are built for another architecture than that of the machine.
    let cross = std::env::var_os(format!("CC_{}_unknown_linux_gnu", std::env::consts::ARCH));
    let mut compiler = Command::new(cross.filter(|_| !is_cpp).unwrap_or_else(|| usual.into()));
    compiler.args(if is_cpp { ["-std=c++17", "-fvisibility=hidden"] } else { ["-std=c11", "-O2"] });
    compiler.args(is_sanitized.then_some("-fsanitize=address"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device-sdk/include");
    compiler.args(["-O2", "-fPIC", "-shared", "-I"]).arg(include);
    compiler
}

/// The page about devices in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/contributor/device-in-rust.md")]
pub struct DeviceInRust;
