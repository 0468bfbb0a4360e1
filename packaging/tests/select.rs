//! What is chosen for many machines.

use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::select::{Machine, Wish, select};
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
}

#[test]
fn each_machine_gets_what_runs_on_it() {
    let cases: Cases = toml::from_str(include_str!("machines.toml")).expect("machines");
    assert!(cases.case.len() >= 40);
    let mut wrong = Vec::new();
    for Case { name, matrix, machine, wish, gives } in cases.case {
        let matrix = match &*matrix {
            "own" => Matrix::read("matrix.toml", OWN),
            era => Matrix::of_era(era),
        };
        let found = match select(&matrix.expect("a matrix"), &machine, &wish) {
            Ok(choice) => choice.command(),
            Err(error) => format!("error: {error}"),
        };
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
