//! Calls that move less than they were asked to, or move it wrong.

#![expect(unsafe_code, reason = "bytes are copied and changed where the call says they are")]

use oarlock_layer::{LayerCall, ParameterKind, word_const_pointer, word_pointer};

/// Where the words of a call say how many bytes it moves.
fn size_position(call: &LayerCall<'_>) -> Option<usize> {
    ["size", "source_size", "target_size"].iter().find_map(|name| call.description().parameter_position(name))
}

/// The words of a call that moves the first half of its bytes; `None` for a call that moves none.
pub(crate) fn shortened_words(call: &LayerCall<'_>) -> Option<Vec<u64>> {
    let name = call.description().name;
    let at =
        size_position(call).filter(|_| name.starts_with("memory_copy_") || name.starts_with("memory_set"))?;
    let mut words = call.words().to_vec();
    words[at] /= 2;
    Some(words)
}

/// How a copy is made wrong.
pub(crate) enum CorruptedCopy {
    /// It reads these bytes instead of the caller's; the words have their address.
    OtherSource(Vec<u64>, Box<[u8]>),
    /// A bit at this address of the host is flipped once the copy is done.
    FlippedTarget(u64),
    /// It moves one byte less: the layer cannot see the memory of the device.
    OneByteLess(Vec<u64>),
}

/// Makes a copy wrong in one bit, or in one byte; `None` for a call that moves nothing.
///
/// # Safety
///
/// The words of the call are those of its slot.
pub(crate) unsafe fn corrupt_copy(call: &LayerCall<'_>) -> Option<CorruptedCopy> {
    let description = call.description();
    let size = call.words()[size_position(call)?] as usize;
    if size == 0 {
        return None;
    }
    let position = |name: &str| description.parameter_position(name);
    let reads_host = |at: &usize| {
        matches!(description.parameters[*at].kind, ParameterKind::InBytes | ParameterKind::InAddress)
    };
    let writes_host = |at: &usize| {
        matches!(description.parameters[*at].kind, ParameterKind::OutBytes | ParameterKind::Address)
    };
    let mut words = call.words().to_vec();
    if let Some(at) = position("source").filter(reads_host) {
        // SAFETY: the caller of the slot vouches for the bytes of the source.
        let source = unsafe { core::slice::from_raw_parts(word_const_pointer::<u8>(words[at]), size) };
        let mut changed: Box<[u8]> = source.into();
        changed[0] ^= 1;
        words[at] = oarlock_layer::pointer_word(changed.as_ptr());
        return Some(CorruptedCopy::OtherSource(words, changed));
    }
    if let Some(at) = position("target").filter(writes_host) {
        return Some(CorruptedCopy::FlippedTarget(words[at]));
    }
    words[size_position(call)?] -= 1;
    Some(CorruptedCopy::OneByteLess(words))
}

/// Flips a bit.
///
/// # Safety
///
/// The address is that of a byte that may be written.
pub(crate) unsafe fn flip_bit(address: u64) {
    // SAFETY: the caller vouches for the address.
    unsafe { *word_pointer::<u8>(address) ^= 1 };
}
