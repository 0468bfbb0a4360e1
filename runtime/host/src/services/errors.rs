//! The registry of errors behind the numbers that plugins return.
//!
//! A plugin never passes ownership of memory to the host to describe an error: it lets the host create the error, and returns
//! its number. So an error outlives its plugin, and a number that the host never issued, or that was released, is detected
//! instead of dereferenced. All hosts of a process share one registry, since a number does not identify the host that issued
//! it; the mutex is locked only on errors.

#![expect(unsafe_code, reason = "plugins describe their errors with pointers to text")]

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_abi as abi;
pub use oarlock_abi::{Code, ErrorFlags};

/// Limit on a message in bytes; longer ones are truncated.
const MAX_MESSAGE_LENGTH: usize = 16 * 1024;
/// Limit on the other texts.
const MAX_DETAIL_LENGTH: usize = 1024;
/// Limit on live errors. A plugin that never releases errors must not exhaust the host's memory.
const MAX_LIVE_ERRORS: usize = 1 << 16;
/// The upper bits of every number, so that small numbers and addresses are not mistaken for errors.
const ERROR_MARK: u64 = 0x0A12 << 48;
/// The number returned once there are too many live errors; no slot has this generation.
const TOO_MANY_ERRORS: abi::Error = abi::Error(ERROR_MARK | (u32::MAX as u64) << 16);

/// A failure of a plugin or of a service of the host. One pointer wide, so that results stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFailure(Box<FailureDetails>);

/// The contents of a [`PluginFailure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureDetails {
    /// The category of the failure.
    pub code: Code,
    /// What was expected, what was found, what to do.
    pub message: String,
    /// The name of the plugin, or of the part of the host, that failed.
    pub origin: String,
    /// The violated rule of the contract, or empty.
    pub rule: String,
    /// The error number of the library or driver below the plugin, or 0.
    pub native_code: i64,
    /// Hints for callers, such as whether a retry may help.
    pub flags: ErrorFlags,
    /// The source file that created the error, or empty.
    pub file: String,
    /// The line in that file, or 0.
    pub line: u32,
}

impl PluginFailure {
    /// A failure of the part of the host that `origin` names.
    pub fn new(origin: &str, code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(FailureDetails {
            code,
            message: message.into(),
            origin: origin.to_owned(),
            rule: String::new(),
            native_code: 0,
            flags: ErrorFlags(0),
            file: String::new(),
            line: 0,
        }))
    }

    /// Adds the violated rule.
    #[must_use]
    pub fn with_rule(mut self, rule: &str) -> Self {
        rule.clone_into(&mut self.0.rule);
        self
    }

    /// Takes over what an error of another process said besides its message.
    pub(crate) fn set_details(&mut self, flags: ErrorFlags, native_code: i64, file: String, line: u32) {
        (self.0.flags, self.0.native_code, self.0.file, self.0.line) = (flags, native_code, file, line);
    }

    /// True if the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.flags.contains(ErrorFlags::RETRYABLE)
    }

    /// True if the device is gone and every handle on it is dead.
    pub fn is_device_lost(&self) -> bool {
        self.flags.contains(ErrorFlags::DEVICE_LOST)
    }

    /// A required slot turned out to be empty, although the table was checked: a layer emptied it.
    #[cold]
    pub(crate) fn empty_slot(table: &str, slot: &str) -> Self {
        let message =
            format!("expected a function in `{slot}` of table `{table}`, found none; a layer dropped it");
        Self::new("host", Code::FATAL, message).with_rule("P-1")
    }

    /// Copies a plugin's description of its error.
    ///
    /// # Safety
    ///
    /// The texts of `info` are readable.
    pub(crate) unsafe fn from_error_info(info: &abi::ErrorInfo, origin: &str) -> Self {
        // SAFETY: the caller vouches for every text.
        let (message, rule, file) = unsafe {
            (
                bounded_text(info.message, MAX_MESSAGE_LENGTH),
                bounded_text(info.rule, MAX_DETAIL_LENGTH),
                bounded_text(info.file, MAX_DETAIL_LENGTH),
            )
        };
        Self(Box::new(FailureDetails {
            code: info.code,
            message,
            origin: origin.to_owned(),
            rule,
            native_code: info.native_code,
            flags: info.bits,
            file,
            line: info.line,
        }))
    }

    /// Registers the failure; the number can cross the boundary.
    pub(crate) fn into_error(self) -> abi::Error {
        lock_registry().insert_error(self.0)
    }
}

impl FailureDetails {
    /// The C struct for a plugin. Its texts borrow from this failure.
    pub(crate) fn as_error_info(&self) -> abi::ErrorInfo {
        abi::ErrorInfo {
            code: self.code,
            bits: self.flags,
            native_code: self.native_code,
            message: abi::Str::borrowed(&self.message),
            rule: abi::Str::borrowed(&self.rule),
            origin: abi::Str::borrowed(&self.origin),
            file: abi::Str::borrowed(&self.file),
            line: self.line,
            ..abi::ErrorInfo::EMPTY
        }
    }
}

impl Deref for PluginFailure {
    type Target = FailureDetails;

    fn deref(&self) -> &FailureDetails {
        &self.0
    }
}

impl fmt::Display for PluginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.origin.is_empty() {
            write!(f, "`{}`: ", self.origin)?;
        }
        match (self.message.as_str(), self.code.name()) {
            ("", Some(name)) => write!(f, "failed with the code `{name}` and no message")?,
            ("", None) => write!(f, "failed with the code {} and no message", self.code.0)?,
            (message, _) => f.write_str(message)?,
        }
        let mut details = Vec::new();
        if !self.rule.is_empty() {
            details.push(format!("rule {}", self.rule));
        }
        if self.native_code != 0 {
            details.push(format!("native code {}", self.native_code));
        }
        if self.is_device_lost() {
            details.push("the device is lost".to_owned());
        }
        if details.is_empty() { Ok(()) } else { write!(f, " ({})", details.join(", ")) }
    }
}

impl std::error::Error for PluginFailure {}

/// Converts the return value of a call; a failure is read and released.
#[inline]
pub(crate) fn result_from_error(error: abi::Error) -> Result<(), PluginFailure> {
    if error.is_some() { Err(take_failure(error)) } else { Ok(()) }
}

/// Takes an error out of the registry, which releases it.
#[cold]
pub(crate) fn take_failure(error: abi::Error) -> PluginFailure {
    if error == TOO_MANY_ERRORS {
        return too_many_errors();
    }
    match lock_registry().remove_error(error) {
        Some(details) => PluginFailure(details),
        None => unknown_error(error),
    }
}

/// Frees an error that a plugin created and that will not be read.
pub(crate) fn release_error(error: abi::Error) -> Result<(), PluginFailure> {
    if error == TOO_MANY_ERRORS || lock_registry().remove_error(error).is_some() {
        Ok(())
    } else {
        Err(unknown_error(error))
    }
}

/// Reads an error without releasing it. Its texts live until it is released.
pub(crate) fn read_error(error: abi::Error) -> Result<abi::ErrorInfo, PluginFailure> {
    let registry = lock_registry();
    let (index, generation) = split_error(error).ok_or_else(|| unknown_error(error))?;
    match registry.slots.get(index) {
        Some(ErrorSlot { generation: found, details: Some(details) }) if *found == generation => {
            // The box does not move until it is removed, so references to its texts stay valid.
            Ok(details.as_error_info())
        }
        _ => Err(unknown_error(error)),
    }
}

/// The number of live errors in this process.
pub fn live_errors() -> usize {
    let registry = lock_registry();
    registry.slots.len() - registry.free.len()
}

#[derive(Debug)]
struct ErrorSlot {
    generation: u32,
    details: Option<Box<FailureDetails>>,
}

#[derive(Debug)]
struct ErrorRegistry {
    slots: Vec<ErrorSlot>,
    free: Vec<usize>,
}

static ERROR_REGISTRY: Mutex<ErrorRegistry> =
    Mutex::new(ErrorRegistry { slots: Vec::new(), free: Vec::new() });

fn lock_registry() -> MutexGuard<'static, ErrorRegistry> {
    ERROR_REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ErrorRegistry {
    fn insert_error(&mut self, details: Box<FailureDetails>) -> abi::Error {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < MAX_LIVE_ERRORS => {
                self.slots.push(ErrorSlot { generation: 0, details: None });
                self.slots.len() - 1
            }
            None => return TOO_MANY_ERRORS,
        };
        let slot = &mut self.slots[index];
        slot.details = Some(details);
        abi::Error(ERROR_MARK | u64::from(slot.generation) << 16 | index as u64)
    }

    fn remove_error(&mut self, error: abi::Error) -> Option<Box<FailureDetails>> {
        let (index, generation) = split_error(error)?;
        let slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let details = slot.details.take()?;
        slot.generation = (generation + 1) % u32::MAX;
        self.free.push(index);
        Some(details)
    }
}

/// Splits a number into slot index and generation; `None` if it is not the number of an error.
fn split_error(error: abi::Error) -> Option<(usize, u32)> {
    let generation = (error.0 >> 16) as u32;
    (error.0 & (0xFFFF << 48) == ERROR_MARK).then_some(((error.0 & 0xFFFF) as usize, generation))
}

fn unknown_error(error: abi::Error) -> PluginFailure {
    let message = format!(
        "expected an error made with `error_create` and not released since, found the number {:#x}; the plugin's \
         vendor has to correct this",
        error.0
    );
    PluginFailure::new("host", Code::FATAL, message).with_rule("R-1")
}

fn too_many_errors() -> PluginFailure {
    let message = format!(
        "an error was lost because {MAX_LIVE_ERRORS} others are alive; release errors after reading them"
    );
    PluginFailure::new("host", Code::RESOURCE_EXHAUSTED, message)
}

/// Copies a text of a plugin, truncated to `longest` bytes. Invalid UTF-8 is replaced, and the text notes this.
///
/// # Safety
///
/// The text is readable.
unsafe fn bounded_text(text: abi::Str, longest: usize) -> String {
    let whole = text.size;
    let cut = abi::Str { size: whole.min(longest as u64), ..text };
    // SAFETY: the caller vouches for the text, of which this is the beginning.
    let Some(bytes) = (unsafe { cut.bytes() }) else {
        return "(text at a null address, against rule S-5)".to_owned();
    };
    let is_cut = whole > longest as u64;
    match std::str::from_utf8(bytes) {
        Ok(text) if is_cut => format!("{text}…"),
        Ok(text) => text.to_owned(),
        // Truncation may split a character; this is not the plugin's fault.
        Err(error) if is_cut && error.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned() + "…"
        }
        Err(_) => String::from_utf8_lossy(bytes).into_owned() + " (not UTF-8, against rule S-5)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_failure() -> PluginFailure {
        PluginFailure::new("acme", Code::RESOURCE_EXHAUSTED, "expected 1 GiB, found 2").with_rule("M-3")
    }

    #[test]
    fn a_failure_survives_the_way_through_a_number() {
        let error = sample_failure().into_error();
        assert!(error.is_some());
        assert_eq!(take_failure(error), sample_failure());
        assert_eq!(result_from_error(abi::Error::NONE), Ok(()));
    }

    #[test]
    fn a_number_that_was_released_or_never_made_is_noticed() {
        let stale = sample_failure().into_error();
        take_failure(stale);
        let fresh = sample_failure().into_error();
        for error in
            [stale, abi::Error(1), abi::Error(0xdead_beef_dead_beef), abi::Error(ERROR_MARK | 0xFFFF)]
        {
            let failure = take_failure(error);
            assert_eq!((failure.code, failure.rule.as_str()), (Code::FATAL, "R-1"));
            assert!(failure.message.contains(&format!("{:#x}", error.0)), "{failure}");
            assert!(read_error(error).is_err());
        }
        assert_eq!(take_failure(fresh), sample_failure());
    }

    #[test]
    fn a_full_registry_says_so_and_goes_on() {
        let mut registry = ErrorRegistry { slots: Vec::new(), free: Vec::new() };
        let all: Vec<_> = (0..MAX_LIVE_ERRORS).map(|_| registry.insert_error(sample_failure().0)).collect();
        assert_eq!(registry.insert_error(sample_failure().0), TOO_MANY_ERRORS);
        assert!(registry.remove_error(all[7]).is_some());
        assert_ne!(registry.insert_error(sample_failure().0), all[7]);
        assert_eq!(take_failure(TOO_MANY_ERRORS).code, Code::RESOURCE_EXHAUSTED);
    }

    #[test]
    fn bad_and_endless_text_is_kept_as_far_as_it_goes() {
        let copied = |bytes: &[u8]| {
            let message = abi::Str { data: bytes.as_ptr(), size: bytes.len() as u64 };
            let info = abi::ErrorInfo { message, ..abi::ErrorInfo::EMPTY };
            // SAFETY: the message lives through the call and the other texts are empty.
            unsafe { PluginFailure::from_error_info(&info, "acme") }.message.clone()
        };
        assert_eq!(copied(b"a\xff"), "a\u{fffd} (not UTF-8, against rule S-5)");
        let long = "é".repeat(MAX_MESSAGE_LENGTH);
        assert_eq!(
            copied(&long.as_bytes()[..MAX_MESSAGE_LENGTH + 100]).len(),
            MAX_MESSAGE_LENGTH + "…".len()
        );
        let shifted = format!("a{long}");
        assert!(copied(shifted.as_bytes()).ends_with("é…"));
    }

    #[test]
    fn a_failure_reads_as_one_sentence_with_its_origin() {
        assert_eq!(sample_failure().to_string(), "`acme`: expected 1 GiB, found 2 (rule M-3)");
        let silent = PluginFailure::new("acme", Code::NOT_FOUND, "");
        assert_eq!(silent.to_string(), "`acme`: failed with the code `not_found` and no message");
    }
}
