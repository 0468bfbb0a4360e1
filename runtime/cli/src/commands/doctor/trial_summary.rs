//! The conclusion of `oarlock doctor`.

use std::fmt;

use super::concurrent_trial::ConcurrentTrial;
use super::device_count::count_devices;
use super::examination::DeviceExamination;
use oarlock_report::text::format_count;

/// The number of working devices of a type, alone or concurrently.
pub(super) struct WorkingDevices<'a> {
    pub(super) device_type: &'a str,
    pub(super) count: usize,
}

impl<'a> WorkingDevices<'a> {
    /// For each device type: an entry for a device that works alone, then one for several that work concurrently.
    pub(super) fn from_trials(
        devices: &'a [DeviceExamination],
        together: &'a [ConcurrentTrial],
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for device in devices.iter().filter(|device| device.is_working()) {
            let device_type = device.device_type.as_str();
            if all.iter().all(|known| known.device_type != device_type) {
                all.push(Self { device_type, count: 1 });
                let several =
                    together.iter().filter(|kind| kind.is_working() && kind.device_type == device_type);
                all.extend(several.map(|kind| Self { device_type, count: kind.device_count() }));
            }
        }
        all
    }
}

impl fmt::Display for WorkingDevices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oarlock works well on {}", count_devices(self.count, self.device_type))
    }
}

/// Counts of what was tried and what failed.
pub(super) struct DoctorSummary {
    pub(super) devices: usize,
    pub(super) failing: usize,
    /// Devices that work alone but not concurrently, such as `2 npu devices`.
    pub(super) failing_together: Vec<String>,
    pub(super) unused: usize,
    pub(super) notes: usize,
}

impl DoctorSummary {
    pub(super) fn is_healthy(&self) -> bool {
        let wrong = [self.failing, self.failing_together.len(), self.unused, self.notes];
        self.devices > 0 && wrong.iter().all(|count| *count == 0)
    }
}

impl fmt::Display for DoctorSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = format_count(self.devices, "device", "devices");
        if self.is_healthy() {
            let work = if self.devices == 1 { "works" } else { "work" };
            return write!(f, "All is well: Oarlock is installed, and {devices} {work}");
        }
        let mut wrong = Vec::new();
        if self.devices == 0 {
            wrong.push("there are no devices".to_owned());
        }
        if self.failing > 0 {
            let fail = if self.failing == 1 { "fails" } else { "fail" };
            wrong.push(format!("{} of {devices} {fail}", self.failing));
        }
        wrong.extend(self.failing_together.iter().map(|devices| format!("{devices} fail at the same time")));
        if self.unused > 0 {
            wrong.push(format!("{} not used", format_count(self.unused, "plugin is", "plugins are")));
        }
        if self.notes > 0 {
            wrong.push(format_count(self.notes, "note above wants a look", "notes above want a look"));
        }
        write!(f, "Something is wrong: {}", wrong.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_counted_and_nothing_wrong_is_well() {
        let well =
            DoctorSummary { devices: 2, failing: 0, failing_together: Vec::new(), unused: 0, notes: 0 };
        assert_eq!(well.to_string(), "All is well: Oarlock is installed, and 2 devices work");
        let wrong = DoctorSummary {
            failing: 1,
            failing_together: vec!["2 npu devices".to_owned()],
            unused: 2,
            notes: 1,
            ..well
        };
        assert!(!wrong.is_healthy());
        assert_eq!(
            wrong.to_string(),
            "Something is wrong: 1 of 2 devices fails, 2 npu devices fail at the same time, 2 plugins are not used, \
             1 note above wants a look"
        );
        let none =
            DoctorSummary { devices: 0, failing: 0, failing_together: Vec::new(), unused: 0, notes: 0 };
        assert_eq!(none.to_string(), "Something is wrong: there are no devices");
    }

    #[test]
    fn a_type_of_devices_is_named_once_alone_and_once_for_all() {
        let shown = |device_type, count| WorkingDevices { device_type, count }.to_string();
        assert_eq!(shown("npu", 1), "Oarlock works well on 1 npu device");
        assert_eq!(shown("npu", 4), "Oarlock works well on 4 npu devices");
    }
}
