//! `oarlock-pack vendor`.

use std::error::Error;
use std::path::Path;

use clap::Args;
use oarlock_pack::build::Plan;
use oarlock_pack::image::{Lock, Pool, lock};
use oarlock_pack::vendor::Vendored;
use serde_json::json;

use super::image::{MirrorChoice, take};
use super::progress::Progress;
use super::say::say;
use super::{MatrixChoice, counted};

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    choice: MatrixChoice,
    /// A row of the matrix, such as `OpenCL`, that is to be built; may be given several times. Without it all that can be built; those
    /// for CUDA alone take 2 GB of NVIDIA's libraries
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    #[command(flatten)]
    mirror: MirrorChoice,
}

pub(crate) fn run(call: &Call, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read()?;
    let plan = Plan::new(&matrix, &call.rows)?;
    let lock = Lock::read(lock::FILE, lock::OWN)?;
    let vendored = Vendored::new(Path::new("."))?;
    let debian: Vec<_> = lock.packages.iter().collect();
    let packages = counted(debian.len(), "package");
    if dry_run {
        if json {
            say!("{:#}", json!({ "vendor": "vendor", "debian": debian.len() }));
        } else {
            say!("would put crates, tools from PyPI and {packages} of Debian into vendor");
        }
        return Ok(());
    }
    let progress = Progress::new();
    vendored.begin()?;
    progress.stage(1, 3, "crates");
    vendored.take_crates()?;
    progress.stage(2, 3, "tools and libraries from PyPI");
    vendored.take_python(&plan)?;
    progress.stage(3, 3, "packages of Debian");
    take(&Pool::filled_from(&vendored.debian(), call.mirror.find()), &debian, &progress)?;
    vendored.finish()?;
    drop(progress);
    if json {
        say!("{:#}", json!({ "vendor": "vendor", "debian": debian.len() }));
    } else {
        say!("vendor has crates, tools from PyPI and {packages} of Debian: nothing is fetched from now on");
    }
    Ok(())
}
