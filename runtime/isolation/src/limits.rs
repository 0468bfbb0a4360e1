//! Limits of an isolated plugin, as options.

use std::time::Duration;

use crate::wire::WireBreach;
use crate::wire::byte_reader::ByteReader;
use crate::wire::byte_writer::ByteWriter;

/// Limits of one child process and its calls. A limit that is left out does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsolationLimits {
    /// The memory that the process may take, in bytes. Shared memory does not count.
    pub memory_bytes: Option<u64>,
    /// The files that it may have open.
    pub open_files: Option<u64>,
    /// The processes and threads of its user.
    pub processes: Option<u64>,
    /// The time that a call may take. Without it, a call may take any time as long as the process is alive.
    pub call_time: Option<Duration>,
}

impl IsolationLimits {
    /// Writes what concerns the child.
    pub(crate) fn write_limits(&self, writer: &mut ByteWriter<'_>) {
        for limit in [self.memory_bytes, self.open_files, self.processes] {
            writer.put_u8(limit.is_some().into());
            writer.put_u64(limit.unwrap_or(0));
        }
    }

    pub(crate) fn read_limits(reader: &mut ByteReader<'_>) -> Result<Self, WireBreach> {
        let mut take = || Ok::<_, WireBreach>((reader.take_u8()? != 0, reader.take_u64()?));
        let mut limit = || take().map(|(is_set, most)| is_set.then_some(most));
        Ok(Self { memory_bytes: limit()?, open_files: limit()?, processes: limit()?, call_time: None })
    }
}
