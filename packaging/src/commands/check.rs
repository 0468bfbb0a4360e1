//! `oarlock-pack check`.

use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use oarlock_pack::check;

use super::say::say;
use super::{MatrixChoice, counted};

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    choice: MatrixChoice,
    /// The wheels
    #[arg(required = true, value_name = "WHEEL")]
    wheels: Vec<PathBuf>,
}

pub(crate) fn run(call: &Call, json: bool) -> Result<(), Box<dyn Error>> {
    let count = check::wheels(&call.choice.read()?, &call.wheels)?;
    if json {
        say!("{}", serde_json::json!({ "wheels": count }));
    } else {
        let verb = if count == 1 { "is" } else { "are" };
        say!("{} {verb} what the matrix says", counted(count, "wheel"));
    }
    Ok(())
}
