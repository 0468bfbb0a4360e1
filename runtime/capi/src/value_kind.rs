//! What a value is.

/// Kinds of values, with their numbers in C.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum ValueKind {
    Unknown = 0,
    Tensor = 1,
    Sequence = 2,
    Nothing = 3,
    Optional = 4,
    Map = 5,
}
