//! `oarlock-pack build`.

use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use oarlock_pack::build::{Plan, Workshop};
use oarlock_pack::wheel::Effort;

use super::MatrixChoice;

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    choice: MatrixChoice,
    /// A row of the matrix, such as `OpenCL`; may be given several times. Without it all that can be built
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    /// Where the wheels are written
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/wheels")]
    out: PathBuf,
    /// Pack as other tools do, in a moment; the files are larger by some hundredths
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(call: &Call, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read()?;
    let plan = Plan::new(&matrix, &call.rows)?;
    let names: Vec<String> = plan.rows().iter().map(|row| row.name.to_string()).collect();
    let parts: Vec<String> = plan.parts().iter().map(ToString::to_string).collect();
    if !dry_run {
        let effort = if call.quick { Effort::Usual } else { Effort::Most };
        let tell = |text: &str| eprintln!("==> {text}");
        Workshop::new(".".as_ref())?.build(&plan, &call.out, effort, &tell)?;
    }
    if json {
        println!("{:#}", serde_json::json!({ "wheels": names, "compiled": parts, "out": call.out }));
        return Ok(());
    }
    let verb = if dry_run { "would be compiled" } else { "compiled" };
    parts.iter().for_each(|part| println!("{part}: {verb}"));
    names.iter().for_each(|name| println!("{}", call.out.join(name).display()));
    Ok(())
}
