//! Denies system calls with which a process takes over others or the machine. A plugin needs none of them.
//!
//! It is a list of what is denied, not of what is allowed: nobody knows what all drivers call. So this stops no plugin from reading
//! the user's files; it keeps one from reaching into its host and from changing the machine where its user could.

#![expect(unsafe_code, reason = "the filter is handed to the kernel as a pointer")]

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, sock_filter,
};

/// Denied, with `EPERM`.
const DENIED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Denied unless the first argument is this process, which may end itself.
const TO_ITSELF: &[libc::c_long] = &[libc::SYS_kill, libc::SYS_tgkill];

/// Offsets in `seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const FIRST_ARGUMENT_AT: u32 = 16;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
/// System calls of another ABI for the same architecture (x32) have this bit.
const OTHER_ABI: u32 = 0x4000_0000;

fn statement(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Goes on `on_equal` or `otherwise` instructions further.
fn jump(condition: u32, value: u32, on_equal: u8, otherwise: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | condition | BPF_K) as u16, jt: on_equal, jf: otherwise, k: value }
}

/// The filter, as the kernel interprets it.
fn filter_program(own_process: u32) -> Vec<sock_filter> {
    let load = |offset| statement(BPF_LD | BPF_W | BPF_ABS, offset);
    let deny = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(BPF_JEQ, ARCHITECTURE, 1, 0),
        statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        load(NUMBER_AT),
        jump(BPF_JGE, OTHER_ABI, 0, 1),
        deny,
    ];
    for number in DENIED {
        program.extend([jump(BPF_JEQ, *number as u32, 0, 1), deny]);
    }
    for number in TO_ITSELF {
        program.extend([
            jump(BPF_JEQ, *number as u32, 0, 4),
            load(FIRST_ARGUMENT_AT),
            jump(BPF_JEQ, own_process, 1, 0),
            deny,
            statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    program
}

/// Installs the filter for this thread and all that it starts. The process cannot gain privileges (`no_new_privs`).
pub(super) fn deny_system_calls() -> io::Result<()> {
    let mut program = filter_program(std::process::id());
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter points to as many instructions as it says, which the kernel copies.
    let failed = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
