//! Text that crosses the boundary.

use crate::{Error, Str};

impl Str {
    /// The text of a static string.
    pub const fn new(text: &'static str) -> Self {
        Self { data: text.as_ptr(), size: text.len() as u64 }
    }

    /// The text of a string, for a call that does not keep a reference to it.
    pub const fn borrowed(text: &str) -> Self {
        Self { data: text.as_ptr(), size: text.len() as u64 }
    }

    /// The maximum size of a text in bytes.
    pub const MAX_BYTES: u64 = 1 << 24;

    /// True if the text has no bytes.
    pub const fn is_empty(self) -> bool {
        self.size == 0
    }

    /// The bytes; `None` if the pointer is null or the size exceeds [`Str::MAX_BYTES`], unless the text is empty.
    ///
    /// # Safety
    ///
    /// A pointer that is not null points to `size` bytes that stay readable and unchanged for `'a`.
    pub unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        match self.size {
            0 => Some(&[]),
            size if size > Self::MAX_BYTES || self.data.is_null() => None,
            // SAFETY: the pointer is not null and the caller vouches for the bytes behind it.
            size => Some(unsafe { core::slice::from_raw_parts(self.data, size as usize) }),
        }
    }

    /// The text, if it is UTF-8.
    ///
    /// # Safety
    ///
    /// As for [`Str::bytes`].
    pub unsafe fn text<'a>(self) -> Option<&'a str> {
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.bytes() }.and_then(|bytes| core::str::from_utf8(bytes).ok())
    }
}

impl Error {
    /// Success.
    pub const NONE: Self = Self(0);

    /// True if it is an error, not success.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}
