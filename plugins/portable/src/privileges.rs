//! Whether the environment may be trusted.

#![expect(unsafe_code, reason = "the kernel's mark is read by a function of the C library")]

use rustix::process::{getegid, geteuid, getgid, getuid};

/// Whether this program has more rights than whoever started it, by the kernel's mark or by the ids it runs under now. What
/// that user put into the environment must not decide which code runs.
pub fn has_elevated_privileges() -> bool {
    // SAFETY: the function takes a number, reads what the kernel gave the process at its start and touches nothing else.
    let by_kernel = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    by_kernel || getuid() != geteuid() || getgid() != getegid()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_program_has_no_more_rights_than_its_user() {
        assert!(!super::has_elevated_privileges());
    }
}
