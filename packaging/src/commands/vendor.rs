//! `oarlock-pack vendor`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use oarlock_image::{ImageSources, PackageCache};
use oarlock_pack::build_plan::WheelPlan;
use oarlock_pack::vendor::VendorDirectory;

use super::image::{MirrorChoice, fetch_packages};
use super::progress::ProgressReporter;
use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct VendorArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// A row of the matrix to build, such as `OpenCL`; may be given several times. By default, every row that can be built; the
    /// CUDA rows need 2 GB of NVIDIA's libraries
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    #[command(flatten)]
    mirror: MirrorChoice,
}

pub(crate) fn run(call: &VendorArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read_matrix()?;
    let plan = WheelPlan::new(&matrix, &call.rows)?;
    let images = ImageSources::of_all_architectures()?;
    let vendored = VendorDirectory::new(Path::new("."))?;
    let locked = images.iter().flat_map(|it| &it.lock.packages);
    // What is for all architectures is in each lock.
    let debian: BTreeMap<_, _> = locked.map(|package| (&package.path, package)).collect();
    let debian: Vec<_> = debian.into_values().collect();
    let packages = count_label(debian.len(), "package");
    if dry_run {
        if json {
            say!("{:#}", json!({ "vendor": "vendor", "debian": debian.len() }));
        } else {
            say!("would download crates, tools from PyPI and {packages} of Debian to vendor");
        }
        return Ok(());
    }
    let progress = ProgressReporter::new();
    vendored.begin_vendoring()?;
    progress.begin_stage(1, 3, "crates");
    vendored.vendor_crates()?;
    progress.begin_stage(2, 3, "tools and libraries from PyPI");
    vendored.vendor_python(&plan)?;
    progress.begin_stage(3, 3, "packages of Debian");
    fetch_packages(
        &PackageCache::with_mirror(&vendored.debian_path(), call.mirror.find_mirror()),
        &debian,
        &progress,
    )?;
    vendored.finish_vendoring()?;
    drop(progress);
    if json {
        say!("{:#}", json!({ "vendor": "vendor", "debian": debian.len() }));
    } else {
        say!("vendor has crates, tools from PyPI and {packages} of Debian: nothing is fetched from now on");
    }
    Ok(())
}
