//! Choices for many machines: by the function, by the install script, and in the generated tables.

mod fake_machine;
mod generated_tables;
mod install;

use oarlock_matrix::select::{InstallChoice, InstallPreferences, TargetMachine, select_install};
use oarlock_matrix::{OWN_MATRIX, WheelMatrix};

use serde::Deserialize;

#[derive(Deserialize)]
struct ChoiceCases {
    case: Vec<ChoiceCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoiceCase {
    name: String,
    matrix: String,
    machine: TargetMachine,
    #[serde(default)]
    wish: InstallPreferences,
    gives: String,
    /// One of the reasons to expect.
    says: Option<String>,
}

impl ChoiceCase {
    fn all_cases() -> Vec<Self> {
        let cases: ChoiceCases = toml::from_str(include_str!("machines.toml")).expect("machines");
        assert!(cases.case.len() >= 40);
        cases.case
    }

    fn select_install(&self) -> Result<InstallChoice, oarlock_formats::Error> {
        let matrix = if self.matrix == "own" {
            own_matrix()
        } else {
            WheelMatrix::historical(&self.matrix).expect("an era")
        };
        select_install(&matrix, &self.machine, &self.wish)
    }
}

fn own_matrix() -> WheelMatrix {
    WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix")
}

#[test]
fn each_machine_gets_a_package_it_can_run() {
    let mut wrong = Vec::new();
    for case in ChoiceCase::all_cases() {
        let found = match case.select_install() {
            Ok(choice) => choice.install_command(),
            Err(error) => format!("error: {error}"),
        };
        if let (Some(says), Ok(choice)) = (&case.says, case.select_install()) {
            assert!(choice.reasons.contains(says), "{}: {:?}", case.name, choice.reasons);
        }
        let ChoiceCase { name, gives, .. } = case;
        let is_right = match gives.strip_prefix("error: ") {
            Some(part) => found.starts_with("error: ") && found.contains(part),
            None => found == gives,
        };
        if !is_right {
            wrong.push(format!("{name}\n  expected {gives}\n  found    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
