//! Checks whether this process may use AMX.

#![expect(unsafe_code, reason = "the system is asked for the registers")]

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// True if the machine has AMX for bf16 and int8, and the system lets this process use the tile registers. They add 8 KiB to the
/// state of a thread, so Linux requires a process to request them before their first use.
pub(crate) fn is_amx_available() -> bool {
    static AMX_AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AMX_AVAILABLE.get_or_init(|| has_amx_unit() && request_tile_permission())
}

fn has_amx_unit() -> bool {
    const AMX_BF16_BIT: u32 = 1 << 22;
    const AMX_TILE_BIT: u32 = 1 << 24;
    const AMX_INT8_BIT: u32 = 1 << 25;
    __cpuid(0).eax >= 7
        && __cpuid_count(7, 0).edx & (AMX_BF16_BIT | AMX_TILE_BIT | AMX_INT8_BIT)
            == AMX_BF16_BIT | AMX_TILE_BIT | AMX_INT8_BIT
}

#[cfg(target_os = "linux")]
fn request_tile_permission() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the system call takes two integers and no pointers. A kernel that does not know it returns an error.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn request_tile_permission() -> bool {
    false
}
