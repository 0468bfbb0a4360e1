//! Refuses a plugin whose sanitizer is not part of the process.
//!
//! A sanitizer's runtime must be loaded at the start of the program: if loaded later, it aborts the process.

use std::path::Path;

use crate::{LibrarySearch, Refusal, RefusalReason, SharedObject};

/// A sanitizer: its name in `-fsanitize=`, a symbol that every object built with it imports, and its runtime libraries.
const SANITIZERS: [(&str, &str, [&str; 2]); 4] = [
    ("address", "__asan_init", ["libasan.so", "libclang_rt.asan"]),
    ("hwaddress", "__hwasan_init", ["libhwasan.so", "libclang_rt.hwasan"]),
    ("memory", "__msan_init", ["libmsan.so", "libclang_rt.msan"]),
    ("thread", "__tsan_init", ["libtsan.so", "libclang_rt.tsan"]),
];

/// Refuses a plugin that needs a sanitizer which the host was not `built_with` and which is not loaded either.
pub(crate) fn check_sanitizers(
    path: &Path,
    elf: &SharedObject,
    libraries: &LibrarySearch,
    built_with: &[String],
) -> Result<(), Refusal> {
    let needed = SANITIZERS.iter().filter(|(_, symbol, _)| elf.imports.iter().any(|import| import == symbol));
    for (name, _, files) in needed {
        let mut loaded = libraries.loaded_libraries().iter();
        let present = built_with.iter().any(|built| built == name)
            || loaded.any(|loaded| files.iter().any(|file| loaded.starts_with(file)));
        if !present {
            return Err(Refusal::new(
                RefusalReason::SanitizerMismatch,
                path,
                "a plugin built with the sanitizers of this program",
                format!("one built with `-fsanitize={name}`"),
                format!("build it without, or start the program with `LD_PRELOAD` set to `{}`", files[0]),
            ));
        }
    }
    Ok(())
}
