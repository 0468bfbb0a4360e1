//! How the floating-point unit of a thread rounds and flushes, which code of a plugin may change.

#![expect(unsafe_code, reason = "the mode is in registers that only instructions reach")]

/// How floats are rounded, whether subnormal ones are flushed to 0, and what traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatMode {
    control: u64,
    /// The control word of the x87, which only x86 has.
    legacy: u16,
}

impl std::fmt::Display for FloatMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06x} and {:#06x}", self.control, self.legacy)
    }
}

/// The bits of MXCSR that are flags of what happened, not a mode.
#[cfg(target_arch = "x86_64")]
const MXCSR_FLAGS: u32 = 0x3F;

impl FloatMode {
    /// The mode of this thread.
    #[cfg(target_arch = "x86_64")]
    pub fn current() -> Self {
        let (mut control, mut legacy) = (0u32, 0u16);
        // SAFETY: the instructions only store the two words.
        unsafe {
            std::arch::asm!(
                "stmxcsr [{control}]", "fnstcw [{legacy}]",
                control = in(reg) &raw mut control, legacy = in(reg) &raw mut legacy,
                options(nostack, preserves_flags)
            );
        }
        Self { control: (control & !MXCSR_FLAGS).into(), legacy }
    }

    /// Makes this the mode of this thread.
    #[cfg(target_arch = "x86_64")]
    pub fn restore(self) {
        let (control, legacy) = (self.control as u32, self.legacy);
        // SAFETY: both words were read from the same registers, so no reserved bit is set.
        unsafe {
            std::arch::asm!(
                "ldmxcsr [{control}]", "fldcw [{legacy}]",
                control = in(reg) &raw const control, legacy = in(reg) &raw const legacy,
                options(nostack, readonly, preserves_flags)
            );
        }
    }

    /// The mode of this thread.
    #[cfg(target_arch = "aarch64")]
    pub fn current() -> Self {
        let control: u64;
        // SAFETY: the instruction only reads the register.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags))
        };
        Self { control, legacy: 0 }
    }

    /// Makes this the mode of this thread.
    #[cfg(target_arch = "aarch64")]
    pub fn restore(self) {
        // SAFETY: the value was read from the same register, so no reserved bit is set.
        unsafe {
            std::arch::asm!("msr fpcr, {}", in(reg) self.control, options(nomem, nostack, preserves_flags))
        };
    }
}

/// Restores the mode of floats when dropped. It goes around code of plugins that may change it: one that is linked with
/// `-ffast-math` does so while it is loaded.
#[derive(Debug)]
pub struct FloatModeGuard(FloatMode);

impl FloatModeGuard {
    /// The mode before and now, if it changed.
    pub fn change(&self) -> Option<(FloatMode, FloatMode)> {
        let now = FloatMode::current();
        (now != self.0).then_some((self.0, now))
    }

    /// Keeps the mode of this thread as it is now.
    #[expect(clippy::new_without_default, reason = "a guard is made for what it does when dropped")]
    pub fn new() -> Self {
        Self(FloatMode::current())
    }
}

impl Drop for FloatModeGuard {
    fn drop(&mut self) {
        if FloatMode::current() != self.0 {
            self.0.restore();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_guard_brings_back_small_floats_that_were_flushed() {
        let small = std::hint::black_box(1e-42f32);
        {
            let _guard = FloatModeGuard::new();
            let mut flushing = FloatMode::current();
            flushing.control |= 0x8040;
            flushing.restore();
            assert_eq!(std::hint::black_box(small) * std::hint::black_box(1.0), 0.0);
        }
        assert_eq!(std::hint::black_box(small) * std::hint::black_box(1.0), small);
    }
}
