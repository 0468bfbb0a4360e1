//! `oarlock-pack check`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_pack::check;

use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct WheelCheckArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// The wheels
    #[arg(required = true, value_name = "WHEEL")]
    wheels: Vec<PathBuf>,
}

pub(crate) fn run(call: &WheelCheckArguments, json: bool) -> Result<(), Box<dyn Error>> {
    let count = check::check_wheels(&call.choice.read_matrix()?, &call.wheels)?;
    if json {
        say!("{}", serde_json::json!({ "wheels": count }));
    } else {
        let verb = if count == 1 { "matches" } else { "match" };
        say!("{} {verb} the matrix", count_label(count, "wheel"));
    }
    Ok(())
}
