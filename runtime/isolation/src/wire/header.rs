//! The beginning of every request.

use super::WireBreach;
use super::byte_reader::ByteReader;
use super::byte_writer::ByteWriter;

/// Requests that are no slot. Their numbers are far above those of the slots.
pub(crate) const FENCE: u32 = 1 << 16;
/// Asks for the keys of the options that the plugin has read.
pub(crate) const ASKED_OPTIONS: u32 = FENCE + 1;
/// Shuts the plugin down; the child ends after its reply.
pub(crate) const SHUT_DOWN: u32 = FENCE + 2;

/// What a kernel asks of its caller during a call.
pub(crate) const BACK_ALLOCATE: u32 = 1;
/// See [`BACK_ALLOCATE`].
pub(crate) const BACK_DESCRIBE: u32 = 2;
/// See [`BACK_ALLOCATE`].
pub(crate) const BACK_STOP_CHECK: u32 = 3;

/// The kinds of frames that a child sends through its socket, outside of any call.
pub(crate) const FRAME_DESCRIPTION: u8 = 1;
/// The plugin was refused.
pub(crate) const FRAME_REFUSAL: u8 = 2;
/// A message for the log.
pub(crate) const FRAME_LOG: u8 = 3;
/// A stream has reached a callback.
pub(crate) const FRAME_REACHED: u8 = 4;

/// How the elements of a tensor cross: not at all, because they are on the device or nobody may read them.
pub(crate) const ELEMENTS_ELSEWHERE: u8 = 0;
/// In the message.
pub(crate) const ELEMENTS_INLINE: u8 = 1;
/// At an offset of the shared memory.
pub(crate) const ELEMENTS_SHARED: u8 = 2;

/// The rest of the request is behind it.
pub(crate) const BODY_INLINE: u32 = 0;
/// The request is at an offset of the shared memory, which follows with its size.
pub(crate) const BODY_SHARED: u32 = 1;

/// The call succeeded; its results follow.
pub(crate) const STATUS_DONE: u32 = 0;
/// The call failed; the failure follows.
pub(crate) const STATUS_FAILED: u32 = 1;
/// The request could not be read; the reason follows.
pub(crate) const STATUS_UNREADABLE: u32 = 2;

/// The beginning of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    /// The number of the slot, or one of the numbers above.
    pub(crate) slot: u32,
    /// True if nobody waits for the reply. A failure is kept for the stream, or for the next fence.
    pub(crate) is_posted: bool,
    /// The stream of the call, or 0.
    pub(crate) stream: u64,
    /// The event of the call, or 0.
    pub(crate) event: u64,
}

impl RequestHeader {
    pub(crate) fn write_header(&self, writer: &mut ByteWriter<'_>) {
        writer.put_u32(self.slot);
        writer.put_u32(self.is_posted.into());
        writer.put_u64(self.stream);
        writer.put_u64(self.event);
    }

    pub(crate) fn read_header(reader: &mut ByteReader<'_>) -> Result<Self, WireBreach> {
        Ok(Self {
            slot: reader.take_u32()?,
            is_posted: reader.take_u32()? != 0,
            stream: reader.take_u64()?,
            event: reader.take_u64()?,
        })
    }
}
