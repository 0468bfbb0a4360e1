//! Reads a recording, whoever wrote it.

use std::collections::HashMap;
use std::fmt;
use std::io::{ErrorKind, Read};

use crate::byte_reader::ByteReader;
use crate::frame_writer::{FILE_MAGIC, kind};
use crate::recording_frames::{
    AttributeValues, RecordedAttribute, RecordedCall, RecordedContents, RecordedKernelCall, RecordedPart,
    RecordedSlot, RecordedTarget, RecordedTensor, RecordingFrame,
};

/// A frame is not larger.
const MAX_FRAME_BYTES: u32 = 1 << 30;

/// Why a recording cannot be read.
#[derive(Debug)]
pub enum RecordingError {
    /// The file could not be read.
    Unreadable(std::io::Error),
    /// It is not a recording, or of another version.
    OtherFormat,
    /// A frame makes no sense.
    BadFrame {
        /// The number of the frame, from 1 on.
        number: u64,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(formatter, "expected to read the recording, found: {error}"),
            Self::OtherFormat => formatter.write_str(
                "expected a recording of the layer `record` in version 1 of its format, found something else",
            ),
            Self::BadFrame { number } => write!(
                formatter,
                "expected frame {number} to be a target, a slot or a call of both, found other bytes"
            ),
        }
    }
}

impl std::error::Error for RecordingError {}

/// Reads frame after frame.
#[derive(Debug)]
pub struct RecordingReader<R> {
    source: R,
    frames: u64,
    /// How many words a call of each slot has.
    slots: HashMap<u16, usize>,
    targets: u32,
    is_cut_off: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Reads the head of a recording.
    pub fn open_recording(mut source: R) -> Result<Self, RecordingError> {
        let mut magic = [0; FILE_MAGIC.len()];
        match source.read_exact(&mut magic) {
            Ok(()) if magic == FILE_MAGIC => {
                Ok(Self { source, frames: 0, slots: HashMap::new(), targets: 0, is_cut_off: false })
            }
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(RecordingError::Unreadable(error)),
            _ => Err(RecordingError::OtherFormat),
        }
    }

    /// True if the recording ends within a frame: its author did not end it.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The next frame; `None` at the end.
    pub fn next_frame(&mut self) -> Result<Option<RecordingFrame>, RecordingError> {
        let mut size = [0; 4];
        if !self.fill_or_end(&mut size, 4)? {
            return Ok(None);
        }
        self.frames += 1;
        let bad = RecordingError::BadFrame { number: self.frames };
        let size = u32::from_le_bytes(size);
        if size > MAX_FRAME_BYTES {
            return Err(bad);
        }
        let mut bytes = Vec::new();
        // Memory grows with what is there, not with what the size claims.
        let read = (&mut self.source).take(size.into()).read_to_end(&mut bytes);
        if read.map_err(RecordingError::Unreadable)? < size as usize {
            self.is_cut_off = true;
            return Ok(None);
        }
        let mut reader = ByteReader::new(&bytes);
        let frame = read_frame(&mut reader).filter(|_| reader.is_empty()).ok_or(bad)?;
        self.check_frame(frame).map(Some)
    }

    /// Fills a buffer; false if the file ends before.
    fn fill_or_end(&mut self, buffer: &mut [u8], size: usize) -> Result<bool, RecordingError> {
        let mut filled = 0;
        while filled < size {
            match self.source.read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.is_cut_off |= filled > 0;
                    return Ok(false);
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(RecordingError::Unreadable(error)),
            }
        }
        Ok(true)
    }

    /// Fails unless targets are numbered in order, and calls name what was there before.
    fn check_frame(&mut self, frame: RecordingFrame) -> Result<RecordingFrame, RecordingError> {
        let is_good = match &frame {
            RecordingFrame::Target(target) => {
                self.targets += 1;
                target.number + 1 == self.targets
            }
            RecordingFrame::Slot(slot) => self.slots.insert(slot.number, slot.words.len()).is_none(),
            RecordingFrame::Call(call) => {
                let count = self.slots.get(&call.slot);
                call.target < self.targets && count == Some(&call.words.len()) && has_good_parts(call)
            }
        };
        is_good.then_some(frame).ok_or(RecordingError::BadFrame { number: self.frames })
    }
}

fn has_good_parts(call: &RecordedCall) -> bool {
    call.parts.iter().all(|part| match part {
        RecordedPart::Out { word, .. } | RecordedPart::Contents { word, .. } => {
            usize::from(*word) < call.words.len()
        }
        RecordedPart::Kernel(_) => true,
    })
}

fn read_frame(reader: &mut ByteReader<'_>) -> Option<RecordingFrame> {
    Some(match reader.byte()? {
        kind::TARGET => RecordingFrame::Target(RecordedTarget {
            number: reader.number_u32()?,
            plugin: reader.text()?,
            table: reader.text()?,
            op: reader.text()?,
            domain: reader.text()?,
            version: reader.number_u32()?,
        }),
        kind::SLOT => RecordingFrame::Slot(RecordedSlot {
            number: reader.number_u16()?,
            name: reader.text()?,
            words: reader.list(ByteReader::text)?,
        }),
        kind::CALL => RecordingFrame::Call(RecordedCall {
            target: reader.number_u32()?,
            slot: reader.number_u16()?,
            thread: reader.number_u32()?,
            failed: reader.byte()? != 0,
            words: reader.list(ByteReader::number_u64)?,
            parts: reader.list(read_part)?,
        }),
        _ => return None,
    })
}

fn read_part(reader: &mut ByteReader<'_>) -> Option<RecordedPart> {
    Some(match reader.byte()? {
        kind::OUT => RecordedPart::Out { word: reader.byte()?, value: reader.number_u64()? },
        kind::CONTENTS => RecordedPart::Contents { word: reader.byte()?, contents: read_contents(reader)? },
        kind::KERNEL => RecordedPart::Kernel(RecordedKernelCall {
            device: reader.number_u32()?,
            queue: reader.number_u64()?,
            inputs: reader.list(read_tensor)?,
            outputs: reader.list(read_tensor)?,
            attributes: reader.list(read_attribute)?,
        }),
        _ => return None,
    })
}

fn read_contents(reader: &mut ByteReader<'_>) -> Option<RecordedContents> {
    let size = reader.number_u64()?;
    let parts = reader.byte()?;
    let hash = if parts & 1 != 0 { Some(reader.number_u64()?) } else { None };
    let bytes = if parts & 2 != 0 { Some(reader.byte_list()?.to_vec()) } else { None };
    let fits = bytes.as_ref().is_none_or(|bytes| bytes.len() as u64 == size);
    fits.then_some(RecordedContents { size, hash, bytes })
}

fn read_tensor(reader: &mut ByteReader<'_>) -> Option<RecordedTensor> {
    Some(RecordedTensor {
        bits: reader.number_u32()?,
        block: reader.number_u64()?,
        offset: reader.number_u64()?,
        size_in_bytes: reader.number_u64()?,
        dtype: reader.number_u32()?,
        place: reader.number_u32()?,
        dims: reader.list(ByteReader::number_i64)?,
        strides: reader.list(ByteReader::number_i64)?,
        contents: if reader.byte()? != 0 { Some(read_contents(reader)?) } else { None },
    })
}

fn read_attribute(reader: &mut ByteReader<'_>) -> Option<RecordedAttribute> {
    let (name, is_list) = (reader.text()?, reader.byte()? != 0);
    let values = match reader.byte()? {
        kind::INTS => AttributeValues::Ints(reader.list(ByteReader::number_i64)?),
        kind::FLOATS => AttributeValues::Floats(reader.list(ByteReader::number_f64)?),
        kind::STRINGS => AttributeValues::Strings(reader.list(ByteReader::text)?),
        kind::TENSORS => AttributeValues::Tensors(reader.list(read_tensor)?),
        kind::GRAPHS => AttributeValues::Graphs,
        _ => return None,
    };
    Some(RecordedAttribute { name, is_list, values })
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
