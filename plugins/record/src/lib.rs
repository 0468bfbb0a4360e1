//! A layer that records every call through the plugin contract into a file, which `oarlock replay` carries out again.
//!
//! Enable it with `layers = ["record"]`. Options in `[plugin.record]`: `file`; `contents`, which is `shapes`, `referenced` (a hash
//! of all bytes that pass) or `full` (the bytes); and `limit`, the size in bytes at which the recording ends.
//!
//! [`RecordingReader`] reads such a file. A file that was cut off is read up to its last whole frame.

mod byte_reader;
mod call_capture;
mod content_hash;
mod frame_writer;
mod record_work;
mod recording_file;
mod recording_frames;
mod recording_reader;

pub use content_hash::hash_bytes;
pub use frame_writer::{FILE_MAGIC, encode_frame};
pub use recording_frames::{
    AttributeValues, RecordedAttribute, RecordedCall, RecordedContents, RecordedKernelCall, RecordedPart,
    RecordedSlot, RecordedTarget, RecordedTensor, RecordingFrame,
};
pub use recording_reader::{RecordingError, RecordingReader};

oarlock_layer::export_layer!(record_work::RecordWork);
