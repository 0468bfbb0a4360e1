//! The headers of the contract, and the sources of `oarlock-sdk`, for machines that have a compiler but cannot download. The files
//! are those of the source tree; the manifests are replaced, because the originals use workspace settings and other crates.

/// The headers of the contract by name.
pub const CONTRACT_HEADERS: [(&str, &str); 5] = [
    ("contract.h", include_str!("../../include/oarlock/contract.h")),
    ("contract_draft.h", include_str!("../../include/oarlock/contract_draft.h")),
    ("contract_layout.h", include_str!("../../include/oarlock/contract_layout.h")),
    ("op.h", include_str!("../../include/oarlock/op.h")),
    ("plugin.h", include_str!("../../include/oarlock/plugin.h")),
];

/// Embeds files of the source tree under their paths in the SDK.
macro_rules! sources {
    ($($place:literal: $($file:literal)+;)+) => {
        [$($((
            concat!($place, "/src/", $file),
            include_str!(concat!("../../", $place, "/src/", $file)),
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

/// The files of the SDK with their paths: the crates `abi`, `sdk` and `sdk/macros`. The SDK is without its feature `numbers`, which
/// needs other crates.
pub fn sdk_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    SDK_MANIFESTS.into_iter().chain(SDK_SOURCES)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The files in a directory of `device-sdk` that end so.
    fn files_in(directory: &str, ending: &str) -> Vec<String> {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory);
        let names =
            fs::read_dir(place).expect("a directory of the SDK").flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| name.ends_with(ending));
        names.sort();
        names
    }

    #[test]
    fn every_source_and_every_header_of_the_tree_is_here() {
        for place in ["abi/src", "sdk/src", "sdk/macros/src"] {
            let parent = |path: &&str| Path::new(path).parent() == Some(Path::new(place));
            let name =
                |path: &str| PathBuf::from(path).file_name().expect("a file").to_string_lossy().into_owned();
            let mut here: Vec<String> = sdk_files().map(|(path, _)| path).filter(parent).map(name).collect();
            here.sort();
            assert_eq!(here, files_in(place, ".rs"), "{place}");
        }
        assert_eq!(CONTRACT_HEADERS.map(|(name, _)| name).to_vec(), files_in("include/oarlock", ".h"));
    }
}
