//! CPU fallback: if the user permits it, the CPU runs calls for which a device has no kernel.

/// The treatment of a call that no kernel of its device accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFallback {
    /// The call fails.
    Never,
    /// The CPU runs it, and a warning is logged for the first such call of each op.
    WithWarning,
    /// The CPU runs it, and nothing is logged.
    Silent,
}
