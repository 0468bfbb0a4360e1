//! Sets the build id, which debuggers use to find debug information, from the library's contents alone.
//!
//! Linkers hash everything that they write, including debug information, which varies with the build directory. This module
//! hashes the stripped library instead: its bytes are the same wherever the same sources are built.

use crate::error::Error;
use object::{Object as _, ObjectSection as _};
use sha1::{Digest as _, Sha1};

const BUILD_ID_SECTION: &str = ".note.gnu.build-id";

/// Length in bytes, that of a SHA-1 hash.
const BUILD_ID_LENGTH: usize = 20;

/// Writes the library's build id into the library and into its separate debug information. The hash is computed with the id
/// zeroed.
pub fn set_build_id(library: &mut [u8], stripped_off: &mut [u8]) -> Result<(), Error> {
    build_id_mut(library)?.fill(0);
    let id = Sha1::digest(&*library);
    build_id_mut(library)?.copy_from_slice(&id);
    build_id_mut(stripped_off)?.copy_from_slice(&id);
    Ok(())
}

/// The bytes of the build id, which end its section.
fn build_id_mut(bytes: &mut [u8]) -> Result<&mut [u8], Error> {
    let missing =
        || Error::new(format!("expected a library with a build id of {BUILD_ID_LENGTH} bytes, found none"));
    let place = {
        let file = object::File::parse(&*bytes).map_err(|error| Error::new(error.to_string()))?;
        let is_whole = file.build_id().ok().flatten().is_some_and(|id| id.len() == BUILD_ID_LENGTH);
        let range = file.section_by_name(BUILD_ID_SECTION).and_then(|section| section.file_range());
        range.filter(|_| is_whole).and_then(|(start, length)| {
            let end = usize::try_from(start.checked_add(length)?).ok()?;
            Some(end.checked_sub(BUILD_ID_LENGTH)?..end)
        })
    };
    bytes.get_mut(place.ok_or_else(missing)?).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A library and its debug information, which contains the name of the directory that it was compiled in.
    fn compile_and_strip(code: &str) -> (Vec<u8>, Vec<u8>) {
        let place = tempfile::tempdir().expect("a directory");
        let run = |program: &str, arguments: &[&str]| {
            let output =
                Command::new(program).args(arguments).current_dir(place.path()).output().expect(program);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        std::fs::write(place.path().join("code.c"), code).expect("a file");
        run("gcc", &["-g", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1", "-o", "whole", "code.c"]);
        run("strip", &["--strip-unneeded", "-o", "stripped", "whole"]);
        run("objcopy", &["--only-keep-debug", "whole", "symbols"]);
        let read = |name: &str| std::fs::read(place.path().join(name)).expect(name);
        (read("stripped"), read("symbols"))
    }

    fn read_build_id(bytes: &[u8]) -> Vec<u8> {
        let file = object::File::parse(bytes).expect("a library");
        file.build_id().expect("notes").expect("a build id").to_vec()
    }

    #[test]
    fn the_number_is_the_same_wherever_a_library_was_compiled() {
        let code = "int one(void) { return 1; }";
        let (mut here, mut symbols) = compile_and_strip(code);
        let (mut there, mut other_symbols) = compile_and_strip(code);
        assert_ne!(read_build_id(&here), read_build_id(&there), "the directory is not in it");
        set_build_id(&mut here, &mut symbols).expect("a number");
        set_build_id(&mut there, &mut other_symbols).expect("a number");
        assert_eq!(here, there);
        assert_eq!(read_build_id(&symbols), read_build_id(&here));
        let (mut different, mut symbols) = compile_and_strip("int one(void) { return 2; }");
        set_build_id(&mut different, &mut symbols).expect("a number");
        assert_ne!(read_build_id(&different), read_build_id(&here));
        // A second run changes nothing.
        let before = here.clone();
        set_build_id(&mut here, &mut other_symbols).expect("a number");
        assert_eq!(here, before);
    }

    #[test]
    fn what_has_no_number_is_refused() {
        let error = set_build_id(&mut b"text".to_vec(), &mut Vec::new()).expect_err("no library");
        assert!(!error.to_string().is_empty());
    }
}
