//! Decides whether the environment may be trusted.

#![expect(unsafe_code, reason = "the kernel's mark is read by a function of the C library")]

use rustix::process::{getegid, geteuid, getgid, getuid};

/// True if this program has more privileges than its user, such as a setuid program: by `AT_SECURE`, or by its current ids. The
/// environment comes from the user and must not decide which code runs then.
pub fn is_setuid() -> bool {
    // SAFETY: the function takes a number, reads what the kernel gave the process at its start, and touches nothing else.
    let by_kernel = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    by_kernel || getuid() != geteuid() || getgid() != getegid()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_program_has_no_more_rights_than_its_user() {
        assert!(!super::is_setuid());
    }
}
