//! The numbers that functions of a custom device return, as errors with text.

use oarlock_sdk::{Code, PluginError, Result};

/// The number that a function returns.
pub(crate) type StatusNumber = u32;

pub(crate) const SUCCESS: StatusNumber = 0;
/// It worked, but not quite as asked, such as an asynchronous call that was synchronous.
pub(crate) const WARNING: StatusNumber = 1;
pub(crate) const FAILED: StatusNumber = 2;
const WRONG_USE: StatusNumber = 3;
const INTERNAL: StatusNumber = 4;

/// The error for a status of `function`. Where the function takes memory, what fails is that there is not enough of it.
#[track_caller]
pub(crate) fn check_status(
    status: StatusNumber,
    function: &str,
    device: Option<u32>,
    takes_memory: bool,
) -> Result<()> {
    let (code, meaning) = match status {
        SUCCESS | WARNING => return Ok(()),
        FAILED if takes_memory => {
            (Code::RESOURCE_EXHAUSTED, "failed, for lack of memory or another resource")
        }
        FAILED => (Code::EXTERNAL, "failed, for lack of a resource or because it could not be done"),
        WRONG_USE => (Code::INVALID_ARGUMENT, "an argument, or the time of the call, is wrong"),
        INTERNAL => (Code::EXTERNAL, "an error inside the custom device"),
        _ => (Code::EXTERNAL, "no status that the interface knows"),
    };
    let place = device.map(|device| format!(" on device {device}")).unwrap_or_default();
    let message = format!(
        "expected `{function}` of the custom device to succeed{place}, found status {status}: {meaning}"
    );
    Err(PluginError::new(code, message).with_native_code(status.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_a_code_and_a_sentence() {
        let code = |status, takes| check_status(status, "f", Some(3), takes).map_err(|error| error.code());
        assert_eq!((code(SUCCESS, true), code(WARNING, true)), (Ok(()), Ok(())));
        assert_eq!(code(FAILED, true), Err(Code::RESOURCE_EXHAUSTED));
        assert_eq!(code(FAILED, false), Err(Code::EXTERNAL));
        assert_eq!(code(WRONG_USE, false), Err(Code::INVALID_ARGUMENT));
        assert_eq!(code(77, false), Err(Code::EXTERNAL));
        let error = check_status(INTERNAL, "create_stream", Some(3), false).expect_err("an error");
        assert!(error.message().contains("`create_stream` of the custom device to succeed on device 3"));
    }
}
