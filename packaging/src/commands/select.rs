//! `oarlock-pack select`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_matrix::select::{InstallPreferences, TargetMachine, select_install};

use super::MatrixChoice;
use super::say::say;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct SelectArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// The Python to install for
    #[arg(long, value_name = "FILE", default_value = "python3", conflicts_with = "machine")]
    python: String,
    /// A file that describes a machine, instead of this machine
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// The device to install for, such as `cuda`, `opencl` or `cpu`, or `cuda12` regardless of the driver; by default the best for
    /// the machine
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The library for matrix products, such as `mkl`
    #[arg(long, value_name = "NAME")]
    blas: Option<String>,
    /// Only install files without AVX instructions
    #[arg(long)]
    without_avx: bool,
    /// Omit the packages of vendor libraries, such as NVRTC or MKL, on a machine that has them
    #[arg(long)]
    local_libraries: bool,
}

pub(crate) fn run(call: &SelectArguments, json: bool) -> Result<(), Box<dyn Error>> {
    let machine = match &call.machine {
        Some(file) => {
            let of_file = |error: &dyn Error| format!("`{}`: {error}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| of_file(&error))?;
            toml::from_str(&text).map_err(|error| of_file(&error))?
        }
        None => TargetMachine::probe_local(&call.python)?,
    };
    let wish = InstallPreferences {
        device: call.device.clone(),
        blas: call.blas.clone(),
        without_avx: call.without_avx,
        local_libraries: call.local_libraries,
    };
    let choice = select_install(&call.choice.read_matrix()?, &machine, &wish)?;
    if json {
        say!("{:#}", serde_json::to_value(&choice)?);
        return Ok(());
    }
    say!("{}", choice.install_command());
    choice.reasons.iter().for_each(|reason| eprintln!("  {reason}"));
    Ok(())
}
