//! An error as a part of a message. The numbers of errors mean nothing in another process, so their contents cross.

#![expect(unsafe_code, reason = "errors are read and made through the services of a host")]

use std::ffi::c_void;

use oarlock_abi as abi;

use super::WireBreach;
use super::byte_reader::ByteReader;
use super::byte_writer::ByteWriter;

/// Limit on a message, as in the host.
const MAX_MESSAGE: usize = 16 * 1024;
/// Limit on each of the other texts.
const MAX_DETAIL: usize = 1024;

/// The contents of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireFailure {
    /// The kind of the error.
    pub code: abi::Code,
    /// Properties that a caller can act on.
    pub bits: abi::ErrorFlags,
    /// The number from the library or driver below.
    pub native_code: i64,
    /// One sentence.
    pub message: String,
    /// The violated rule, or empty.
    pub rule: String,
    /// The source file, or empty.
    pub file: String,
    /// The line in it.
    pub line: u32,
}

/// The host of this process, as the functions that a plugin gets.
#[derive(Clone, Copy, Debug)]
pub struct HostFunctions {
    context: *mut c_void,
    table: abi::HostTable,
}

// SAFETY: services may be called on any thread (rule T-1).
unsafe impl Send for HostFunctions {}
// SAFETY: as above.
unsafe impl Sync for HostFunctions {}

impl HostFunctions {
    /// # Safety
    ///
    /// `host` and what it points to live as long as the result is used, and its table is one of this build.
    pub unsafe fn from_host(host: &abi::Host) -> Self {
        // SAFETY: the caller vouches for the table.
        Self { context: host.context, table: unsafe { *host.services } }
    }

    pub(crate) fn context(&self) -> *mut c_void {
        self.context
    }

    pub(crate) fn table(&self) -> &abi::HostTable {
        &self.table
    }

    /// Writes to the log of this host.
    pub(crate) fn log(&self, level: abi::LogLevel, message: &str) {
        if let Some(log) = self.table.log {
            // SAFETY: the context is the host's, and the text outlives the call.
            let failure = unsafe { log(self.context, level, abi::Str::borrowed(message)) };
            self.take_failure(failure);
        }
    }

    /// Makes an error of this host.
    pub(crate) fn create_error(&self, failure: &WireFailure) -> abi::Error {
        let info = abi::ErrorInfo {
            code: failure.code,
            bits: failure.bits,
            native_code: failure.native_code,
            message: abi::Str::borrowed(&failure.message),
            rule: abi::Str::borrowed(&failure.rule),
            file: abi::Str::borrowed(&failure.file),
            line: failure.line,
            ..abi::ErrorInfo::EMPTY
        };
        // SAFETY: the context is the host's, and the texts outlive the call.
        self.table
            .error_create
            .map_or(abi::Error(u64::MAX), |create| unsafe { create(self.context, &raw const info) })
    }

    /// Reads an error of this host and releases it. `None` if it is no error.
    pub(crate) fn take_failure(&self, error: abi::Error) -> Option<WireFailure> {
        if !error.is_some() {
            return None;
        }
        let mut info = abi::ErrorInfo::EMPTY;
        // SAFETY: the context is the host's, and the struct is as large as it says.
        let unread = self
            .table
            .error_read
            .is_none_or(|read| unsafe { read(self.context, error, &raw mut info) }.is_some());
        if unread {
            return Some(WireFailure::fatal(format!("expected the number of an error, found {}", error.0)));
        }
        let own = |text: abi::Str| {
            // SAFETY: the texts are valid until the error is released, below.
            let bytes = unsafe { text.bytes() };
            String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
        };
        let failure = WireFailure {
            code: info.code,
            bits: info.bits,
            native_code: info.native_code,
            message: own(info.message),
            rule: own(info.rule),
            file: own(info.file),
            line: info.line,
        };
        if let Some(release) = self.table.error_release {
            // SAFETY: the error is alive and not used again.
            unsafe { release(self.context, error) };
        }
        Some(failure)
    }
}

impl WireFailure {
    /// A failure that the plugin cannot continue after.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::new(abi::Code::FATAL, message)
    }

    /// A failure without details.
    pub fn new(code: abi::Code, message: impl Into<String>) -> Self {
        Self {
            code,
            bits: abi::ErrorFlags(0),
            native_code: 0,
            message: message.into(),
            rule: String::new(),
            file: String::new(),
            line: 0,
        }
    }

    pub(crate) fn write_failure(&self, writer: &mut ByteWriter<'_>) {
        writer.put_u32(self.code.0);
        writer.put_u32(self.bits.0);
        writer.put_i64(self.native_code);
        writer.put_u32(self.line);
        writer.put_text(&self.message, MAX_MESSAGE);
        writer.put_text(&self.rule, MAX_DETAIL);
        writer.put_text(&self.file, MAX_DETAIL);
    }

    pub(crate) fn read_failure(reader: &mut ByteReader<'_>) -> Result<Self, WireBreach> {
        Ok(Self {
            code: abi::Code(reader.take_u32()?),
            bits: abi::ErrorFlags(reader.take_u32()?),
            native_code: reader.take_i64()?,
            line: reader.take_u32()?,
            message: reader.take_text()?.to_owned(),
            rule: reader.take_text()?.to_owned(),
            file: reader.take_text()?.to_owned(),
        })
    }
}
