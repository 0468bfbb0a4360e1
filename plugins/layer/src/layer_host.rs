//! The host's services, with those that the SDK keeps to itself: a layer looks at errors that are not its own.

#![expect(unsafe_code, reason = "the services are functions of a C table")]

use core::ffi::c_void;
use std::ops::Deref;

use oarlock_sdk::{HostServices, abi, copy_sized};

/// The host of a layer.
#[derive(Clone, Copy, Debug)]
pub struct LayerHost {
    services: HostServices,
    context: *mut c_void,
    table: abi::HostTable,
}

// SAFETY: every function of the host may be called on any thread (rule T-1).
unsafe impl Send for LayerHost {}
// SAFETY: as above.
unsafe impl Sync for LayerHost {}

/// What an error says.
#[derive(Clone, Debug)]
pub struct ErrorFacts {
    /// The kind of error.
    pub code: abi::Code,
    /// What a caller can act on.
    pub bits: abi::ErrorFlags,
    /// The message.
    pub message: String,
}

impl LayerHost {
    /// # Safety
    ///
    /// `host` is the host's introduction, whose services live as long as the plugin.
    pub(crate) unsafe fn new(services: HostServices, host: &abi::Host) -> Self {
        // SAFETY: the caller vouches for the table.
        let table = unsafe { copy_sized(host.services, abi::HostTable::EMPTY) };
        Self { services, context: host.context, table }
    }

    /// Reads an error that stays the caller's; `None` if the host never made it, or made it for others.
    pub fn read_error(&self, failure: abi::Error) -> Option<ErrorFacts> {
        let read = self.table.error_read?;
        let mut info = abi::ErrorInfo::EMPTY;
        // SAFETY: the context is the host's own and the struct is ours to write.
        let unread = unsafe { read(self.context, failure, &raw mut info) };
        if unread.is_some() {
            self.release_error(unread);
            return None;
        }
        // SAFETY: the text of an error is valid until the error is released, and nobody but the caller releases it.
        let message = unsafe { info.message.text() }.unwrap_or("?").to_owned();
        Some(ErrorFacts { code: info.code, bits: info.bits, message })
    }

    /// Frees an error.
    pub fn release_error(&self, failure: abi::Error) {
        if let Some(release) = self.table.error_release.filter(|_| failure.is_some()) {
            // SAFETY: the context is the host's own. There is nothing useful to do if releasing an error fails.
            let _ = unsafe { release(self.context, failure) };
        }
    }
}

impl Deref for LayerHost {
    type Target = HostServices;

    fn deref(&self) -> &HostServices {
        &self.services
    }
}
