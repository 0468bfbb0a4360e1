//! `oarlock-pack build`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_matrix::options::resolve_options;
use oarlock_matrix::select::local_capabilities;
use oarlock_pack::build::{BuildOutcome, WorkspaceBuilder};
use oarlock_pack::build_plan::WheelPlan;

use super::options::render_options;
use super::progress::ProgressReporter;
use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct BuildArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// A row of the matrix, such as `OpenCL`; may be given several times. By default, every row that can be built
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    /// Rows by a build option of PaddlePaddle, such as `WITH_GPU=ON`; `oarlock-pack options` explains each
    #[arg(short = 'D', value_name = "NAME=VALUE", conflicts_with = "rows")]
    options: Vec<String>,
    /// The directory for the wheels; `debug` below it gets debug symbols by build id
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    out: PathBuf,
    /// The command `oarlock`, which queries plugins; by default cargo builds it
    #[arg(long, value_name = "FILE")]
    oarlock: Option<PathBuf>,
    /// Pack quickly; the files are a few percent larger
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(call: &BuildArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read_matrix()?;
    let mut rows = call.rows.clone();
    if !call.options.is_empty() {
        let resolved = resolve_options(&matrix, &call.options, &local_capabilities)?;
        if !json {
            eprint!("{}", render_options(&resolved));
        }
        rows = resolved.rows;
    }
    let plan = WheelPlan::new(&matrix, &rows)?;
    let builder = WorkspaceBuilder::new(".".as_ref())?.with_command(call.oarlock.clone());
    if dry_run {
        show_plan(&plan, call, json);
        return Ok(());
    }
    let effort = if call.quick { CompressionEffort::Usual } else { CompressionEffort::Most };
    let progress = ProgressReporter::new();
    let outcome = builder.build_wheels(&plan, &call.out, effort, &|step| {
        progress.begin_step(step.done, step.all, &step.text);
    });
    drop(progress);
    show_outcome(&outcome?, json);
    Ok(())
}

fn show_plan(plan: &WheelPlan<'_>, call: &BuildArguments, json: bool) {
    let names: Vec<PathBuf> = plan.rows().iter().map(|row| call.out.join(row.name.to_string())).collect();
    let parts: Vec<String> = plan.recipes().iter().map(ToString::to_string).collect();
    if json {
        say!("{:#}", json!({ "compiled": parts, "wheels": names }));
        return;
    }
    parts.iter().for_each(|part| say!("would compile {part}"));
    names.iter().for_each(|name| say!("would write {}", name.display()));
}

fn show_outcome(outcome: &BuildOutcome, json: bool) {
    let BuildOutcome {
        wheels,
        took,
        packing,
        shared_compile_time: once,
        separate_compile_time: apart,
        notes,
    } = outcome;
    let saved = apart.saturating_sub(*once);
    if json {
        let wheels: Vec<_> =
            wheels.iter().map(|(file, bytes)| json!({ "file": file, "bytes": bytes })).collect();
        let seconds = json!({
            "took": took.as_secs_f64(),
            "packing": packing.as_secs_f64(),
            "compiling": { "once": once.as_secs_f64(), "apart": apart.as_secs_f64(), "saved": saved.as_secs_f64() },
        });
        say!("{:#}", json!({ "wheels": wheels, "seconds": seconds, "notes": notes }));
        return;
    }
    for (file, bytes) in wheels {
        say!("{} ({:.2} MB)", file.display(), *bytes as f64 / 1e6);
    }
    notes.iter().for_each(|note| say!("note: {note}"));
    say!(
        "{} in {:.0} s, {:.0} s of that packing; compiling each part took {:.0} s when it was last done, and \
         would take {:.0} s for each wheel alone: {:.0} s saved",
        count_label(wheels.len(), "wheel"),
        took.as_secs_f64(),
        packing.as_secs_f64(),
        once.as_secs_f64(),
        apart.as_secs_f64(),
        saved.as_secs_f64()
    );
}
