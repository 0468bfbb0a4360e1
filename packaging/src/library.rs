//! What a shared object needs of the machine that it runs on, found in its bytes: a build is held to what its name promises.

use std::collections::BTreeSet;

use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _};
use object::{Endianness, Object as _};

use crate::error::Error;
use crate::instructions;

/// Libraries that every Linux with glibc has, which alone a wheel for manylinux may be linked with.
const EVERYWHERE: [&str; 7] = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// The one that unwinds the frames of everybody in a process.
const UNWINDER: &str = "libgcc_s.so.1";

/// What a library is allowed to need.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The newest version of glibc, such as `2_28`.
    pub glibc: &'a str,
    /// The libraries that it opens while it runs.
    pub opens: &'a [String],
    /// Libraries that its text names for another reason.
    pub names: &'a [String],
    /// Whether no instruction of AVX may lie in it.
    pub without_avx: bool,
}

/// What a library needs.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Needs {
    /// The libraries that the linker loads with it.
    pub libraries: BTreeSet<String>,
    /// The versions of glibc whose functions it calls.
    pub glibc: BTreeSet<(u32, u32)>,
    /// Libraries that its text names, which it may open while it runs.
    pub named: BTreeSet<String>,
    /// What its debug information is found by.
    pub build_id: Option<String>,
}

impl Needs {
    /// Those of a shared object for x86-64.
    ///
    /// # Errors
    ///
    /// When the bytes are something else.
    pub fn of(bytes: &[u8]) -> Result<Self, Error> {
        let refuse = |error: object::Error| Error::new(format!("expected a shared object: {error}"));
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(refuse)?;
        let endian = header.endian().map_err(refuse)?;
        let sections = header.sections(endian, bytes).map_err(refuse)?;
        let mut needs = Self { named: named(bytes), ..Self::default() };
        if let Some((entries, link)) = sections.dynamic(endian, bytes).map_err(refuse)? {
            let strings = sections.strings(endian, bytes, link).map_err(refuse)?;
            for entry in entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED) {
                let name = entry.string(endian, strings).map_err(refuse)?;
                needs.libraries.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
        if let Some((mut files, link)) = sections.gnu_verneed(endian, bytes).map_err(refuse)? {
            let strings = sections.strings(endian, bytes, link).map_err(refuse)?;
            while let Some((_, mut versions)) = files.next().map_err(refuse)? {
                while let Some(version) = versions.next().map_err(refuse)? {
                    let name = version.name(endian, strings).map_err(refuse)?;
                    needs.glibc.extend(String::from_utf8_lossy(name).strip_prefix("GLIBC_").and_then(number));
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

/// Holds a library to what it is allowed to need. `whole` is the same before it was stripped, whose names of functions make
/// what is wrong easier to find.
///
/// # Errors
///
/// When it needs more; the error says all of it.
pub fn check(stripped: &[u8], whole: &[u8], limits: Limits<'_>) -> Result<Needs, Error> {
    let needs = Needs::of(stripped)?;
    let mut wrong = Vec::new();
    for library in needs.libraries.iter().filter(|it| !EVERYWHERE.contains(&it.as_str())) {
        wrong.push(format!("it is linked with `{library}`, which a machine may not have"));
    }
    let newest = number(&limits.glibc.replace('_', ".")).unwrap_or_default();
    if let Some((major, minor)) = needs.glibc.last().filter(|version| **version > newest) {
        wrong.push(format!("it calls functions of glibc {major}.{minor}"));
    }
    // Texts lie beside each other without an end between them, so digits of the next may follow a name.
    let known: Vec<&str> =
        EVERYWHERE.into_iter().chain(limits.opens.iter().chain(limits.names).map(String::as_str)).collect();
    let is_known = |name: &&String| known.iter().any(|known| name.starts_with(known));
    for name in needs.named.iter().filter(|name| !is_known(name)) {
        wrong.push(format!("it names `{name}`, which [parts] of the matrix does not list"));
    }
    for name in limits.opens.iter().filter(|name| !needs.named.iter().any(|it| it.starts_with(*name))) {
        wrong.push(format!("it does not name `{name}`, which [parts] of the matrix lists"));
    }
    if !needs.libraries.contains(UNWINDER) {
        wrong.push(format!(
            "it is not linked with `{UNWINDER}`, so it brings an unwinder that knows no other's frames"
        ));
    }
    if limits.without_avx {
        for (written, found) in instructions::found_in(whole)? {
            if instructions::needs_avx(written) {
                let instructions::Found { count, first } = found;
                wrong.push(format!("it has {count} {written} instructions, the first in `{first}`"));
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(needs),
        false => Err(Error::new(format!(
            "expected a library for glibc {} that needs no more than it says{}; found that {}",
            limits.glibc.replace('_', "."),
            if limits.without_avx { " and no AVX" } else { "" },
            wrong.join(", and that ")
        ))),
    }
}

fn number(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The names of libraries among bytes, such as `libcuda.so.1`.
fn named(bytes: &[u8]) -> BTreeSet<String> {
    const MIDDLE: &[u8] = b".so";
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-".contains(byte);
    let places = bytes.windows(MIDDLE.len()).enumerate().filter(|(_, window)| *window == MIDDLE);
    let mut found = BTreeSet::new();
    for (place, _) in places {
        let (before, after) = (&bytes[..place], &bytes[place + MIDDLE.len()..]);
        let length = before.iter().rev().take_while(|byte| in_name(byte)).count();
        let name = &before[place - length..];
        // What lies before it may have no end either, so the name begins where the last `lib` does.
        let Some(begin) = (0..name.len()).rev().find(|at| name[*at..].starts_with(b"lib")) else { continue };
        let end =
            after.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(after.len());
        if name.len() - begin > "lib".len() {
            let version = String::from_utf8_lossy(&after[..end]);
            let name = String::from_utf8_lossy(&name[begin..]);
            found.insert(format!("{name}.so{}", version.trim_end_matches('.')));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries_are_found_among_other_bytes() {
        let bytes =
            b"\0libone.so.1\0expected `libtwo-3.so`, found.sorry lib.so aliblibthree.so.2. four.source";
        let found: Vec<String> = named(bytes).into_iter().collect();
        assert_eq!(found, ["libone.so.1", "libthree.so.2", "libtwo-3.so"]);
    }

    /// The program that runs this, which is linked with glibc.
    fn this_program() -> Vec<u8> {
        std::fs::read("/proc/self/exe").expect("this program")
    }

    #[test]
    fn what_a_program_needs_is_in_its_header() {
        let needs = Needs::of(&this_program()).expect("a program");
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
        assert!(needs.glibc.contains(&(2, 2)) || needs.glibc.last() > Some(&(2, 2)), "{needs:?}");
    }

    #[test]
    fn a_library_is_held_to_what_it_says() {
        // Put together, so that this program does not name it.
        let opens = [["libnever", "so.7"].join(".")];
        let limits = Limits { glibc: "2_2", opens: &opens, names: &[], without_avx: false };
        let program = this_program();
        let error = check(&program, &program, limits).expect_err("a program for a newer glibc").to_string();
        assert!(error.contains("it calls functions of glibc 2."), "{error}");
        assert!(error.contains(&format!("it does not name `{}`", opens[0])), "{error}");
        assert!(error.contains("it names `libtwo-3.so`, which"), "{error}");
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let error = Needs::of(b"#!/bin/sh\n").expect_err("a script");
        assert!(error.to_string().starts_with("expected a shared object: "));
    }
}
