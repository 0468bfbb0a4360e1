//! Reads the system requirements of a shared object from its bytes, to check that a build keeps the promises of its wheel name.

use oarlock_formats::error::Error;
use oarlock_formats::instructions;
use oarlock_formats::library_needs::LibraryNeeds;
use oarlock_matrix::MatrixPart;

use object::{Architecture, Object as _};

/// Libraries of every Linux with glibc. A manylinux wheel may link only these.
const MANYLINUX_LIBRARIES: [&str; 8] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// The unwinder that all code in a process shares.
const UNWINDER_LIBRARY: &str = "libgcc_s.so.1";

/// The suffix of platform tags for each architecture.
const PLATFORM_ARCHITECTURES: [(&str, Architecture); 2] =
    [("_x86_64", Architecture::X86_64), ("_aarch64", Architecture::Aarch64)];

/// The path of debug information below `.build-id`, which debuggers search.
pub(crate) fn build_id_path(id: &str) -> String {
    let (first, rest) = id.split_at_checked(2).unwrap_or((id, ""));
    format!("{first}/{rest}.debug")
}

/// The requirements that a library may have.
#[derive(Clone, Copy, Debug)]
pub struct LibraryLimits<'a> {
    /// The platform in the name of its wheel, such as `manylinux_2_28_x86_64`.
    pub platform: &'a str,
    /// The part that it was compiled from, which lists the libraries that it may open; `None` if unknown.
    pub part: Option<&'a MatrixPart>,
    /// True if it must not contain AVX instructions.
    pub without_avx: bool,
}

/// Checks a library against its limits. `whole` is the unstripped library, whose symbols make errors easier to locate.
///
/// # Errors
///
/// When it exceeds a limit; the error lists all violations.
pub fn check_library(
    stripped: &[u8],
    whole: &[u8],
    limits: LibraryLimits<'_>,
) -> Result<LibraryNeeds, Error> {
    check_machine(stripped, limits.platform)?;
    let needs = LibraryNeeds::from_library(stripped)?;
    let mut wrong = Vec::new();
    let newest = glibc_version(limits.platform);
    if let Some(newest) = newest {
        for library in needs.libraries.iter().filter(|it| !MANYLINUX_LIBRARIES.contains(&it.as_str())) {
            wrong.push(format!("it is linked with `{library}`, which a machine may not have"));
        }
        if let Some((major, minor)) = needs.glibc.last().filter(|version| **version > newest) {
            wrong.push(format!("it calls functions of glibc {major}.{minor}"));
        }
        if !needs.libraries.contains(UNWINDER_LIBRARY) {
            wrong.push(format!(
                "it is not linked with `{UNWINDER_LIBRARY}`, so it provides an unwinder that knows no other's frames"
            ));
        }
    }
    if let Some(MatrixPart { opens, names, .. }) = limits.part {
        let known = || MANYLINUX_LIBRARIES.into_iter().chain(opens.iter().chain(names).map(String::as_str));
        for name in needs.named.iter().filter(|name| !known().any(|it| matches_soname(name, it))) {
            wrong.push(format!("it names `{name}`, which [parts] of the matrix does not list"));
        }
        for name in opens.iter().filter(|name| !needs.named.iter().any(|it| matches_soname(it, name))) {
            wrong.push(format!("it does not name `{name}`, which [parts] of the matrix lists"));
        }
    }
    if limits.without_avx {
        for (written, found) in instructions::encodings_in_bytes(whole)? {
            if instructions::needs_avx(written) {
                let instructions::EncodingUsage { count, first } = found;
                wrong.push(format!("it has {count} {written} instructions, the first {first}"));
            }
        }
    }
    if let Some(least) = limits.part.and_then(|part| part.vectorized_percent) {
        let found = instructions::float_arithmetic(stripped)?;
        if found.vectorized_percent() < usize::from(least) {
            wrong.push(format!(
                "{} of its {} instructions of 32-bit float arithmetic handle a vector, fewer than {least} %, so that the compiler \
                 did not vectorize its kernels",
                found.packed,
                found.packed + found.scalar
            ));
        }
    }
    match wrong.is_empty() {
        true => Ok(needs),
        false => Err(Error::new(format!(
            "expected a library for {} with only declared requirements{}; found that {}",
            newest.map_or_else(
                || limits.platform.to_owned(),
                |(major, minor)| format!("glibc {major}.{minor}")
            ),
            if limits.without_avx { " and no AVX" } else { "" },
            wrong.join(", and that ")
        ))),
    }
}

/// True if a name found in the data is this name. Strings in the data may follow each other without a terminator, so digits of
/// the next string may follow a version number; extra digits therefore do not make it a different version.
fn matches_soname(found: &str, name: &str) -> bool {
    const MAX_EXTRA_DIGITS: usize = 3;
    let is_number =
        |rest: &str| rest.len() >= MAX_EXTRA_DIGITS && rest.bytes().all(|byte| byte.is_ascii_digit());
    let ends_with_number = || name.ends_with(|last: char| last.is_ascii_digit());
    found.strip_prefix(name).is_some_and(|rest| rest.is_empty() || ends_with_number() && is_number(rest))
}

/// Checks that a library is for the architecture of its wheel's platform.
fn check_machine(bytes: &[u8], platform: &str) -> Result<(), Error> {
    let is_it = |(end, _): &&(&str, Architecture)| platform.ends_with(end);
    let wanted = PLATFORM_ARCHITECTURES.iter().find(is_it).map(|(_, machine)| *machine);
    let wanted = wanted.ok_or_else(|| {
        Error::new(format!("expected no library in a wheel for the platform `{platform}`, found one"))
    })?;
    let found = object::File::parse(bytes)
        .map_err(|error| Error::new(format!("expected a shared object: {error}")))?
        .architecture();
    if found == wanted {
        return Ok(());
    }
    Err(Error::new(format!("expected a library for `{platform}`, found one for the architecture {found:?}")))
}

/// The glibc version in a manylinux tag; `None` for other platforms.
pub(crate) fn glibc_version(platform: &str) -> Option<(u32, u32)> {
    let mut numbers = platform.strip_prefix("manylinux_")?.split('_').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The running test program, which is linked with glibc.
    fn this_executable() -> Vec<u8> {
        std::fs::read("/proc/self/exe").expect("this program")
    }

    #[test]
    fn a_library_is_held_to_what_it_says() {
        // Concatenated, so that this test program does not contain the name.
        let opens = [["libnever", "so.7"].join(".")];
        let part = MatrixPart { opens: opens.to_vec(), ..MatrixPart::default() };
        let limits =
            LibraryLimits { platform: "manylinux_2_2_x86_64", part: Some(&part), without_avx: false };
        let program = this_executable();
        let error =
            check_library(&program, &program, limits).expect_err("a program for a newer glibc").to_string();
        assert!(error.contains("it calls functions of glibc 2."), "{error}");
        assert!(error.contains(&format!("it does not name `{}`", opens[0])), "{error}");
        assert!(error.contains("it names `libtwo-3.so`, which"), "{error}");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_library_with_kernels_has_vectorized_them() {
        let part = |least| MatrixPart { vectorized_percent: Some(least), ..MatrixPart::default() };
        let program = this_executable();
        let judge = |least| {
            let part = part(least);
            let limits = LibraryLimits { platform: "linux_x86_64", part: Some(&part), without_avx: false };
            check_library(&program, &program, limits)
                .map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert!(!judge(0).contains("handle a vector"));
        assert!(judge(101).contains("handle a vector, fewer than 101 %"), "{}", judge(101));
    }

    #[test]
    fn a_name_stands_for_no_other_version() {
        assert!(
            matches_soname("libmkl_rt.so", "libmkl_rt.so")
                && matches_soname("libmkl_rt.so.2", "libmkl_rt.so.2")
        );
        for other in ["libmkl_rt.so.2", "libmkl_rt.so.2.1", "libmkl_rt.so.20", "libmkl_rt.so.2000"] {
            assert!(!matches_soname(other, "libmkl_rt.so"), "{other}");
        }
        assert!(
            !matches_soname("libmkl_rt.so.20", "libmkl_rt.so.2")
                && !matches_soname("libmkl_rt.so.2.1", "libmkl_rt.so.2")
        );
        let beside_digits = "libopenblas.so.00123456789";
        assert!(
            matches_soname(beside_digits, "libopenblas.so.0")
                && !matches_soname(beside_digits, "libopenblas.so")
        );
    }

    #[test]
    fn tags_are_compared_by_the_glibc_that_they_need() {
        assert!(glibc_version("manylinux_2_9_x86_64") < glibc_version("manylinux_2_28_x86_64"));
        assert_eq!(glibc_version("linux_x86_64"), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_library_is_for_the_machines_that_its_wheel_names() {
        let limits = |platform| LibraryLimits { platform, part: None, without_avx: false };
        let program = this_executable();
        check_library(&program, &program, limits("linux_x86_64")).expect("a program for this machine alone");
        let refusal =
            |platform| check_library(&program, &program, limits(platform)).expect_err(platform).to_string();
        assert_eq!(
            refusal("manylinux_2_28_aarch64"),
            "expected a library for `manylinux_2_28_aarch64`, found one for the architecture X86_64"
        );
        assert!(refusal("any").starts_with("expected no library in a wheel for the platform `any`"));
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let error = LibraryNeeds::from_library(b"#!/bin/sh\n").expect_err("a script");
        assert!(error.to_string().starts_with("expected a shared object: "));
    }
}
