//! The sources of `oarlock-sdk`, for writing ops in Rust on machines that have cargo but cannot download crates. The files
//! are those of the source tree; the manifests are replaced, because the originals use workspace settings and other crates.

use pyo3::prelude::*;

/// Embeds files of the source tree under their paths in the SDK.
macro_rules! sources {
    ($($place:literal: $($file:literal)+;)+) => {
        [$($((
            concat!($place, "/src/", $file),
            include_str!(concat!("../../../../device-sdk/", $place, "/src/", $file)),
        ),)+)+]
    };
}

/// Builds a manifest from a crate's name and its own entries.
macro_rules! manifest {
    ($name:literal, $own:literal) => {
        concat!(
            "[package]\nname = \"",
            $name,
            "\"\nversion = \"",
            env!("CARGO_PKG_VERSION"),
            "\"\nedition = \"2024\"\nlicense = \"Apache-2.0\"\n\n[lints.rust]\nunexpected_cfgs = \"allow\"\n\n",
            $own
        )
    };
}

const SDK_SOURCES: [(&str, &str); 22] = sources! {
    "abi": "draft.rs" "generated.rs" "lib.rs" "text.rs" "versions.rs";
    "sdk": "boundary.rs" "call.rs" "dtype.rs" "error.rs" "generated.rs" "host.rs" "kernel.rs" "lib.rs" "memory_range.rs" "panics.rs" "plugin_path.rs"
        "plugin.rs" "pointer.rs" "shape.rs" "sized_struct.rs" "stop.rs";
    "sdk/macros": "lib.rs";
};

const SDK_MANIFESTS: [(&str, &str); 3] = [
    ("abi/Cargo.toml", manifest!("oarlock-abi", "")),
    (
        "sdk/Cargo.toml",
        manifest!(
            "oarlock-sdk",
            "[dependencies]\noarlock-abi = { path = \"../abi\" }\noarlock-sdk-macros = { path = \"macros\" }\n"
        ),
    ),
    ("sdk/macros/Cargo.toml", manifest!("oarlock-sdk-macros", "[lib]\nproc-macro = true\n")),
];

/// The files of the SDK, each with its path.
#[pyfunction]
pub(crate) fn _sdk() -> Vec<(&'static str, &'static str)> {
    SDK_MANIFESTS.into_iter().chain(SDK_SOURCES).collect()
}
