//! What a shared object requires of a machine, read from its bytes.

use std::collections::BTreeSet;

use object::elf::{
    DF_TEXTREL, DT_FLAGS, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_TEXTREL, FileHeader64, PF_X,
    PT_GNU_STACK, SHT_SYMTAB,
};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, Object as _};

use crate::error::Error;

/// True for a shared object or a program.
#[must_use]
pub fn is_compiled(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The requirements of a library.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct LibraryNeeds {
    /// Libraries that the dynamic linker loads with it (`DT_NEEDED`).
    pub libraries: BTreeSet<String>,
    /// The versions of the glibc symbols that it uses.
    pub glibc: BTreeSet<(u32, u32)>,
    /// The versions of the symbols of libstdc++ that it uses, such as 3.4.30.
    pub libstdcxx: BTreeSet<(u32, u32, u32)>,
    /// The directories that it names for its libraries (`DT_RUNPATH` or `DT_RPATH`).
    pub search_path: Option<String>,
    /// True if it makes the stack of the process executable, or does not say that it need not be.
    pub has_executable_stack: bool,
    /// True if its code is changed when it is loaded (`DT_TEXTREL`).
    pub has_text_relocations: bool,
    /// True if it has no table of symbols beyond those that the dynamic linker needs.
    pub is_stripped: bool,
    /// Library names in its data, which it may open at run time.
    pub named: BTreeSet<String>,
    /// Its build id, which debuggers use to find debug information.
    pub build_id: Option<String>,
}

impl LibraryNeeds {
    /// Reads the requirements of a 64-bit shared object.
    ///
    /// # Errors
    ///
    /// When the bytes are not such a shared object.
    pub fn from_library(bytes: &[u8]) -> Result<Self, Error> {
        let refuse = |error: object::Error| Error::new(format!("expected a shared object: {error}"));
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(refuse)?;
        let endian = header.endian().map_err(refuse)?;
        let sections = header.sections(endian, bytes).map_err(refuse)?;
        let stack = header.program_headers(endian, bytes).map_err(refuse)?;
        let stack = stack.iter().find(|segment| segment.p_type(endian) == PT_GNU_STACK);
        let mut needs = Self {
            named: find_sonames(bytes),
            has_executable_stack: stack.is_none_or(|segment| segment.p_flags(endian).0 & PF_X.0 != 0),
            is_stripped: !sections.iter().any(|section| section.sh_type(endian) == SHT_SYMTAB),
            ..Self::default()
        };
        if let Some((entries, link)) = sections.dynamic(endian, bytes).map_err(refuse)? {
            let strings = sections.strings(endian, bytes, link).map_err(refuse)?;
            for entry in entries {
                let name = || {
                    let name = entry.string(endian, strings).map_err(refuse)?;
                    Ok::<_, Error>(String::from_utf8_lossy(name).into_owned())
                };
                match entry.tag(endian) {
                    DT_NEEDED => {
                        needs.libraries.insert(name()?);
                    }
                    // Rust 1.96 and newer write the soname into every library.
                    DT_SONAME => {
                        needs.named.remove(&name()?);
                    }
                    DT_RUNPATH | DT_RPATH => needs.search_path = Some(name()?),
                    DT_TEXTREL => needs.has_text_relocations = true,
                    DT_FLAGS if entry.val(endian) & DF_TEXTREL.0 != 0 => {
                        needs.has_text_relocations = true;
                    }
                    _ => {}
                }
            }
        }
        if let Some((mut files, link)) = sections.gnu_verneed(endian, bytes).map_err(refuse)? {
            let strings = sections.strings(endian, bytes, link).map_err(refuse)?;
            while let Some((_, mut versions)) = files.next().map_err(refuse)? {
                while let Some(version) = versions.next().map_err(refuse)? {
                    let name = version.name(endian, strings).map_err(refuse)?;
                    let name = String::from_utf8_lossy(name);
                    needs.glibc.extend(name.strip_prefix("GLIBC_").and_then(parse_version_pair));
                    needs.libstdcxx.extend(name.strip_prefix("GLIBCXX_").map(parse_version_triple));
                }
            }
        }
        let build_id =
            object::File::parse(bytes).and_then(|it| it.build_id().map(|id| id.map(<[u8]>::to_vec)));
        needs.build_id =
            build_id.map_err(refuse)?.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
        Ok(needs)
    }
}

fn parse_version_pair(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A version of three numbers; those that are missing or are no numbers count as 0.
fn parse_version_triple(text: &str) -> (u32, u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next(), next())
}

/// Finds library names in data, such as `libcuda.so.1`.
fn find_sonames(bytes: &[u8]) -> BTreeSet<String> {
    const SONAME_MIDDLE: &[u8] = b".so";
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-".contains(byte);
    let places =
        bytes.windows(SONAME_MIDDLE.len()).enumerate().filter(|(_, window)| *window == SONAME_MIDDLE);
    let mut found = BTreeSet::new();
    for (place, _) in places {
        let (before, after) = (&bytes[..place], &bytes[place + SONAME_MIDDLE.len()..]);
        let length = before.iter().rev().take_while(|byte| in_name(byte)).count();
        let name = &before[place - length..];
        // The string before it may have no terminator either, so the name starts at the last `lib`.
        let Some(begin) = (0..name.len()).rev().find(|at| name[*at..].starts_with(b"lib")) else { continue };
        if name.len() - begin > "lib".len() {
            let version = String::from_utf8_lossy(&after[..version_length(after)]);
            let name = String::from_utf8_lossy(&name[begin..]);
            found.insert(format!("{name}.so{version}"));
        }
    }
    found
}

/// The length of a version at the start of `bytes`: numbers, each with a dot before it.
fn version_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some((b'.', rest)) = bytes[length..].split_first() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            break;
        }
        length += 1 + digits;
    }
    length
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn names_of_libraries_are_found_among_other_bytes() {
        let bytes =
            b"\0libone.so.1\0expected `libtwo-3.so`, found.sorry lib.so aliblibthree.so.2. four.source \
              libfive.so7 libsix.so.1.20";
        let found: Vec<String> = find_sonames(bytes).into_iter().collect();
        assert_eq!(found, ["libfive.so", "libone.so.1", "libsix.so.1.20", "libthree.so.2", "libtwo-3.so"]);
    }

    #[test]
    fn what_a_program_needs_is_in_its_header() {
        let needs = LibraryNeeds::from_library(&std::fs::read("/proc/self/exe").expect("this program"))
            .expect("a program");
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
        assert!(needs.glibc.contains(&(2, 2)) || needs.glibc.last() > Some(&(2, 2)), "{needs:?}");
    }

    /// The needs of a library that is made of this source with these options.
    fn needs_of_source(text: &str, options: &[&str]) -> LibraryNeeds {
        let place = tempfile::tempdir().expect("a directory");
        let (source, library) = (place.path().join("one.c"), place.path().join("one.so"));
        std::fs::write(&source, text).expect("a source");
        let mut compiler = Command::new("gcc");
        compiler.args(["-shared", "-nostdlib"]).args(options).arg("-o").args([&library, &source]);
        assert!(compiler.status().expect("gcc").success());
        LibraryNeeds::from_library(&std::fs::read(&library).expect("a library")).expect("a library")
    }

    #[test]
    fn a_library_may_name_itself() {
        let needs = needs_of_source("const char *opened = \"libother.so.3\";", &["-Wl,-soname,libone.so.2"]);
        assert_eq!(needs.named.into_iter().collect::<Vec<_>>(), ["libother.so.3"]);
    }

    #[test]
    fn what_a_library_does_to_its_process_is_read() {
        let plain = needs_of_source("int x;", &["-fPIC"]);
        assert!(!plain.has_executable_stack && !plain.has_text_relocations && !plain.is_stripped);
        assert_eq!(plain.search_path, None);
        let stack = needs_of_source("int x;", &["-fPIC", "-Wl,-z,execstack", "-s"]);
        assert!(stack.has_executable_stack && stack.is_stripped);
        let path = needs_of_source("int x;", &["-fPIC", "-Wl,-rpath,$ORIGIN:/opt"]);
        assert_eq!(path.search_path.as_deref(), Some("$ORIGIN:/opt"));
    }
}
