//! How many devices of a type there are, in words.

use oarlock_report::text::format_count;

/// `1 npu device`, `4 npu devices`.
pub(super) fn count_devices(number: usize, device_type: &str) -> String {
    let name = oarlock_host::sanitize_text(device_type);
    format_count(number, &format!("{name} device"), &format!("{name} devices"))
}
