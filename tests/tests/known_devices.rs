//! For a missing device the core names the package that provides it; this must match what `packaging/matrix.toml` builds and plans.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use oarlock_host::KNOWN_DEVICES;
use serde::Deserialize;

/// The part of the matrix that is compared.
#[derive(Deserialize)]
struct DeviceMatrix {
    axes: BTreeMap<String, Vec<String>>,
    wheels: Vec<WheelGroup>,
}

/// A group of wheels.
#[derive(Deserialize)]
struct WheelGroup {
    device: OneOrMany,
    accelerator: Option<OneOrMany>,
    blas: Option<OneOrMany>,
    parts: Vec<String>,
    planned: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    /// The values, with `*` expanded to all of an axis.
    fn axis_values(&self, axis: &[String]) -> Vec<String> {
        match self {
            Self::One(any) if any == "*" => axis.to_vec(),
            Self::One(one) => vec![one.clone()],
            Self::Many(many) => many.clone(),
        }
    }
}

fn read_text(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Devices of the matrix, each with the wheels needed besides the core; none if they are only planned.
fn devices_in_matrix() -> BTreeMap<String, BTreeSet<String>> {
    let DeviceMatrix { axes, wheels } =
        toml::from_str(&read_text("packaging/matrix.toml")).expect("a matrix");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_device = |group: &&WheelGroup| group.blas.is_none() && !group.parts.contains(&"core".to_owned());
    for group in wheels.iter().filter(is_device) {
        let accelerators = match &group.accelerator {
            Some(accelerator) => accelerator.axis_values(&axes["accelerator"]),
            None => vec![String::new()],
        };
        for device in group.device.axis_values(&axes["device"]) {
            let wheels = found.entry(device.clone()).or_default();
            if group.planned.is_none() {
                wheels.extend(accelerators.iter().map(|accelerator| format!("{device}{accelerator}")));
            }
        }
    }
    found
}

#[test]
fn what_the_core_says_of_devices_is_what_the_matrix_builds_and_plans() {
    let known = KNOWN_DEVICES.iter().map(|known| {
        let wheels = known.wheels.iter().map(|wheel| (*wheel).to_owned()).collect();
        (known.device_type.to_owned(), wheels)
    });
    assert_eq!(known.collect::<BTreeMap<String, BTreeSet<String>>>(), devices_in_matrix());
}

#[test]
fn the_help_of_the_command_names_what_is_planned() {
    let text = read_text("docs/src/reference/command.md");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let planned = KNOWN_DEVICES.iter().filter(|known| known.is_planned());
    let names: Vec<String> = planned.map(|known| format!("`{}`", known.device_type)).collect();
    let (last, others) = names.split_last().expect("something is planned");
    let sentence = format!("{} and {last} are planned and have no plugin yet", others.join(", "));
    assert!(text.contains(&sentence), "expected `{sentence}` in the help of `oarlock devices`");
}
