//! What is chosen for many machines: by the function, by the script that people install with, and by what goes along with
//! them.

mod carried;
mod install;
mod machine_here;

use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::select::{Choice, Machine, Wish, select};
use serde::Deserialize;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    matrix: String,
    machine: Machine,
    #[serde(default)]
    wish: Wish,
    gives: String,
    /// One of the reasons that are told with it.
    says: Option<String>,
}

impl Case {
    fn all() -> Vec<Self> {
        let cases: Cases = toml::from_str(include_str!("machines.toml")).expect("machines");
        assert!(cases.case.len() >= 40);
        cases.case
    }

    fn choice(&self) -> Result<Choice, oarlock_pack::Error> {
        let matrix = if self.matrix == "own" { own() } else { Matrix::of_era(&self.matrix).expect("an era") };
        select(&matrix, &self.machine, &self.wish)
    }
}

fn own() -> Matrix {
    Matrix::read("matrix.toml", OWN).expect("our own matrix")
}

#[test]
fn each_machine_gets_what_runs_on_it() {
    let mut wrong = Vec::new();
    for case in Case::all() {
        let found = match case.choice() {
            Ok(choice) => choice.command(),
            Err(error) => format!("error: {error}"),
        };
        if let (Some(says), Ok(choice)) = (&case.says, case.choice()) {
            assert!(choice.reasons.contains(says), "{}: {:?}", case.name, choice.reasons);
        }
        let Case { name, gives, .. } = case;
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
