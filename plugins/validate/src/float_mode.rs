//! The mode of floating-point arithmetic of this thread: a plugin that changes it changes what others compute.

#![expect(unsafe_code, reason = "the mode is in a register of the processor")]

/// Rounding, masked exceptions and flushing of subnormal numbers, without the flags of exceptions that happened.
#[cfg(target_arch = "x86_64")]
const MODE_BITS: u64 = 0xFFC0;

/// Reads the mode.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read_float_mode() -> u64 {
    let mut mode = 0u32;
    // SAFETY: the instruction writes 4 bytes at the address of `mode`.
    unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack, preserves_flags)) };
    u64::from(mode) & MODE_BITS
}

/// Sets the mode.
#[cfg(target_arch = "x86_64")]
pub(crate) fn write_float_mode(mode: u64) {
    let mode = mode as u32;
    // SAFETY: the instruction reads 4 bytes at the address of `mode`, which are a mode that this processor had.
    unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags)) };
}

/// Reads the mode.
#[cfg(target_arch = "aarch64")]
pub(crate) fn read_float_mode() -> u64 {
    let mode: u64;
    // SAFETY: the instruction reads a register that every program may read.
    unsafe { core::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack, preserves_flags)) };
    mode
}

/// Sets the mode.
#[cfg(target_arch = "aarch64")]
pub(crate) fn write_float_mode(mode: u64) {
    // SAFETY: the register is the program's own, and the mode is one that it had.
    unsafe { core::arch::asm!("msr fpcr, {}", in(reg) mode, options(nomem, nostack, preserves_flags)) };
}
