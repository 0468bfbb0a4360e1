//! What a stream has still to do: report errors, and finish copies that go wrong.

#![expect(unsafe_code, reason = "a bit of a copied byte is flipped")]

use oarlock_fault_script::ScriptedFault;

use crate::copy_words::flip_bit;

#[derive(Debug)]
enum PendingFault {
    Error(ScriptedFault),
    /// The address of a byte in which a bit is flipped.
    Flip(u64),
}

/// Faults of work on streams that nobody has waited for.
#[derive(Debug, Default)]
pub(crate) struct PendingFaults {
    by_stream: Vec<(u64, PendingFault)>,
    /// Sources that copies read in place of the caller's.
    sources: Vec<Box<[u8]>>,
}

impl PendingFaults {
    pub(crate) fn add_error(&mut self, stream: u64, fault: ScriptedFault) {
        self.by_stream.push((stream, PendingFault::Error(fault)));
    }

    /// Notes that a bit is to be flipped once the stream is done.
    ///
    /// # Safety
    ///
    /// The byte can be written until the stream is done.
    pub(crate) unsafe fn add_flip(&mut self, stream: u64, address: u64) {
        self.by_stream.push((stream, PendingFault::Flip(address)));
    }

    /// Keeps a source: when the stream is past the copy is not known.
    pub(crate) fn keep_source(&mut self, source: Box<[u8]>) {
        self.sources.push(source);
    }

    /// Carries out what a stream, or every stream, still had to do, and returns its first error.
    pub(crate) fn finish_streams(&mut self, stream: Option<u64>) -> Option<ScriptedFault> {
        let mut first = None;
        for (of, fault) in std::mem::take(&mut self.by_stream) {
            match fault {
                fault if stream.is_some_and(|stream| stream != of) => self.by_stream.push((of, fault)),
                PendingFault::Error(fault) => first = first.or(Some(fault)),
                // SAFETY: `add_flip` was told that the byte lives until the stream is done, which the caller waits for.
                PendingFault::Flip(address) => unsafe { flip_bit(address) },
            }
        }
        first
    }
}
