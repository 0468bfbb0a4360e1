//! A host that keeps errors and messages, for one layer.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::abi;

#[derive(Default)]
pub(crate) struct TestHost {
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) messages: Mutex<Vec<String>>,
    errors: Mutex<(u64, BTreeMap<u64, KeptError>)>,
}

struct KeptError {
    code: abi::Code,
    bits: abi::ErrorFlags,
    message: Box<str>,
}

pub(crate) static SERVICES: abi::HostTable = abi::HostTable {
    error_create: Some(create_error),
    error_read: Some(read_error),
    error_release: Some(release_error),
    log: Some(log_message),
    option: Some(read_option),
    ..abi::HostTable::EMPTY
};

impl TestHost {
    pub(crate) fn make_error(&self, bits: abi::ErrorFlags, message: &str) -> abi::Error {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.0 += 1;
        let number = errors.0;
        let kept = KeptError { code: abi::Code::EXTERNAL, bits, message: message.into() };
        errors.1.insert(number, kept);
        abi::Error(number)
    }

    /// The message of an error; `None` if it is not the host's.
    pub(crate) fn error_message(&self, error: abi::Error) -> Option<String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.1.get(&error.0).map(|kept| kept.message.to_string())
    }
}

unsafe extern "C" fn create_error(context: *mut c_void, info: *const abi::ErrorInfo) -> abi::Error {
    // SAFETY: the context is the test's own, and the text lives during the call.
    let (host, info) = unsafe { (&*context.cast::<TestHost>(), &*info) };
    // SAFETY: as above.
    let message = unsafe { info.message.text() }.unwrap_or("?");
    host.make_error(info.bits, message)
}

unsafe extern "C" fn read_error(
    context: *mut c_void,
    failure: abi::Error,
    info: *mut abi::ErrorInfo,
) -> abi::Error {
    // SAFETY: the context is the test's own.
    let host = unsafe { &*context.cast::<TestHost>() };
    let errors = host.errors.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kept) = errors.1.get(&failure.0) else {
        drop(errors);
        return host.make_error(abi::ErrorFlags(0), "no such error");
    };
    let message = abi::Str { data: kept.message.as_ptr(), size: kept.message.len() as u64 };
    // SAFETY: the layer provides the place; the text is boxed and stays until the error is released.
    unsafe { *info = abi::ErrorInfo { code: kept.code, bits: kept.bits, message, ..abi::ErrorInfo::EMPTY } };
    abi::Error::NONE
}

unsafe extern "C" fn release_error(context: *mut c_void, failure: abi::Error) -> abi::Error {
    // SAFETY: the context is the test's own.
    let host = unsafe { &*context.cast::<TestHost>() };
    host.errors.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&failure.0);
    abi::Error::NONE
}

unsafe extern "C" fn log_message(context: *mut c_void, level: abi::LogLevel, text: abi::Str) -> abi::Error {
    // SAFETY: the context is the test's own, and the text lives during the call.
    let (host, text) = unsafe { (&*context.cast::<TestHost>(), text.text()) };
    if level.0 <= abi::LogLevel::INFO.0 {
        let mut messages = host.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(text.unwrap_or("?").to_owned());
    }
    abi::Error::NONE
}

unsafe extern "C" fn read_option(context: *mut c_void, key: abi::Str, value: *mut abi::Str) -> abi::Error {
    // SAFETY: the context is the test's own, the key lives during the call, and the value is to be written.
    unsafe {
        let host = &*context.cast::<TestHost>();
        let found = key.text().and_then(|key| host.options.get(key)).map_or("", String::as_str);
        *value = abi::Str { data: found.as_ptr(), size: found.len() as u64 };
    }
    abi::Error::NONE
}
