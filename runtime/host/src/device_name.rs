//! The names of devices as users write them.

use std::fmt;
use std::str::FromStr;

/// The name of a device: a type, and optionally a number. Upper and lower case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    /// The type, such as `cuda`.
    pub device_type: String,
    /// The number of the device among those of its type; if there is none, the first is meant.
    pub id: Option<u32>,
}

/// A text that is no name of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedDeviceName(String);

impl fmt::Display for MalformedDeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.0;
        write!(f, "expected a device such as `cpu` or `cuda:1`, a type and perhaps a number, found `{found}`")
    }
}

impl std::error::Error for MalformedDeviceName {}

impl FromStr for DeviceName {
    type Err = MalformedDeviceName;

    fn from_str(name: &str) -> Result<Self, MalformedDeviceName> {
        let malformed = || MalformedDeviceName(name.to_owned());
        let (device_type, id) = match name.split_once(':') {
            None => (name, None),
            Some((device_type, id)) => {
                let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
                let id = id.parse().ok().filter(|_| is_number).ok_or_else(malformed)?;
                (device_type, Some(id))
            }
        };
        let is_letter = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
        if device_type.is_empty() || !device_type.chars().all(is_letter) {
            return Err(malformed());
        }
        Ok(Self { device_type: device_type.to_owned(), id })
    }
}

impl DeviceName {
    /// True if this names the type.
    pub fn names_type(&self, device_type: &str) -> bool {
        self.device_type.eq_ignore_ascii_case(device_type)
    }

    /// True if this names the device, or may name it because the number is left out.
    pub fn names_device(&self, device_type: &str, id: u32) -> bool {
        self.names_type(device_type) && self.id.is_none_or(|own| own == id)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{}:{id}", self.device_type),
            None => f.write_str(&self.device_type),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_type_and_perhaps_a_number() {
        let parse = |name: &str| name.parse::<DeviceName>().expect("a name");
        assert_eq!(parse("cpu"), DeviceName { device_type: "cpu".to_owned(), id: None });
        assert_eq!(parse("opencl:1"), DeviceName { device_type: "opencl".to_owned(), id: Some(1) });
        assert_eq!(parse("Custom-CPU:0").to_string(), "Custom-CPU:0");
    }

    #[test]
    fn a_name_means_devices_without_regard_to_case() {
        let parse = |name: &str| name.parse::<DeviceName>().expect("a name");
        assert!(parse("ACME").names_device("acme", 7) && parse("acme:7").names_device("Acme", 7));
        assert!(!parse("acme:6").names_device("acme", 7) && !parse("acme2").names_device("acme", 7));
    }

    #[test]
    fn what_is_no_name_is_refused_with_an_example() {
        for name in ["", ":", "cpu:", "cpu:-1", "cpu:+1", "cpu:1:2", "cpu:99999999999", "c pu", "cpu: 1"] {
            let error = name.parse::<DeviceName>().expect_err("no name");
            assert!(error.to_string().contains("`cuda:1`"), "{name}: {error}");
        }
    }
}
