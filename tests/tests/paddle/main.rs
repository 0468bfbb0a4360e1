//! Paddle models on the engine, compared with Paddle's own results: every supported op, and small networks of the usual kinds.
//!
//! `scripts/export-paddle-models` writes the models; without them there is one test, ignored, with a message.
//! `OARLOCK_TEST_DEVICES` lists the devices, separated by commas; the default is `cpu`. This program also checks that the list of
//! ops in the book is correct; `OARLOCK_WRITE`, set to anything, rewrites it.

mod case;
#[path = "../operators/compare.rs"]
mod compare;
#[path = "../operators/start.rs"]
mod start;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use oarlock_engine::import::paddle;

use crate::case::PaddleCase;

/// Ops that only older programs contain. The Paddle of the tests cannot run them, so there are no reference results.
const OLDER_PROGRAM_OPS: [&str; 5] = ["one_hot", "pad2d", "squeeze", "sync_batch_norm", "unsqueeze"];

/// Markers around the list of ops in the book.
const OP_LIST_MARKERS: [&str; 2] = ["<!-- ops of Paddle -->\n", "<!-- end of the ops of Paddle -->\n"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        compare::comparison_trial(),
        Trial::test("the book lists the ops that are supported", check_book),
    ];
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("paddle-models");
    let in_json = PaddleCase::read_cases(&directory.join("json"));
    let cases: Vec<Arc<PaddleCase>> =
        PaddleCase::read_cases(&directory).into_iter().chain(in_json).map(Arc::new).collect();
    if cases.is_empty() {
        let missing = format!("`{}` is missing: run `scripts/export-paddle-models`", directory.display());
        eprintln!("No model of Paddle is tested. {missing}.");
        trials.push(Trial::test(missing, || Ok(())).with_ignored_flag(true));
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    let models = cases.clone();
    trials.push(Trial::test("every op that is supported is in a model", move || check_coverage(&models)));
    let models = cases.clone();
    trials.push(Trial::test("a model with a byte changed is refused or is a graph", move || {
        Ok(models.iter().try_for_each(|case| {
            case.check_mutations().map_err(|message| format!("{}: {message}", case.case_name()))
        })?)
    }));
    let runtime = Arc::new(start::start_runtime());
    trials.push(start::isa_trial(&runtime));
    let devices = std::env::var("OARLOCK_TEST_DEVICES").unwrap_or_else(|_| "cpu".to_owned());
    for device in devices.split(',').map(str::trim) {
        for case in &cases {
            let (runtime, case, name) = (runtime.clone(), case.clone(), device.to_owned());
            trials.push(Trial::test(format!("{device}/{}", case.case_name()), move || {
                let device = runtime.device(&name).map_err(|error| error.to_string())?;
                Ok(case.run_case(&runtime, &device)?)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check_coverage(cases: &[Arc<PaddleCase>]) -> Result<(), libtest_mimic::Failed> {
    let there: BTreeSet<&str> = cases.iter().flat_map(|case| case.op_names()).collect();
    // Ops that only Paddle 3 has go by the names that they have there, without that of its dialect.
    let newer: BTreeSet<&str> = there.iter().filter_map(|op| op.strip_prefix("1.")).collect();
    let is_there = |op: &str| there.contains(op) || newer.contains(op);
    let missing: Vec<&str> = paddle::supported_ops()
        .into_iter()
        .filter(|op| !is_there(op) && !OLDER_PROGRAM_OPS.contains(op))
        .collect();
    let known: Vec<&&str> = OLDER_PROGRAM_OPS.iter().filter(|op| there.contains(**op)).collect();
    if missing.is_empty() && known.is_empty() {
        return Ok(());
    }
    Err(format!("expected a model for each of {missing:?}, and none for {known:?}").into())
}

/// Checks the list of ops in the book.
fn check_book() -> Result<(), libtest_mimic::Failed> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/user/models.md");
    let page = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let [begin, end] = OP_LIST_MARKERS.map(|mark| page.find(mark));
    let (Some(begin), Some(end)) = (begin.map(|at| at + OP_LIST_MARKERS[0].len()), end) else {
        return Err(format!("expected {OP_LIST_MARKERS:?} in `{}`, found none", file.display()).into());
    };
    let ops: Vec<String> = paddle::supported_ops().into_iter().map(|op| format!("`{op}`")).collect();
    let mut list = String::from("\n");
    let mut width = 0;
    for (at, op) in ops.iter().enumerate() {
        let piece = if at + 1 < ops.len() { format!("{op},") } else { format!("{op}.") };
        if width > 0 && width + piece.len() + 1 > 120 {
            list.push('\n');
            width = 0;
        } else if width > 0 {
            list.push(' ');
            width += 1;
        }
        width += piece.len();
        list.push_str(&piece);
    }
    list.push_str("\n\n");
    if page[begin..end] == list {
        return Ok(());
    }
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        let new = format!("{}{list}{}", &page[..begin], &page[end..]);
        return fs::write(&file, new).map_err(|error| error.to_string().into());
    }
    let what = format!("`{}` lists other ops than those that are supported", file.display());
    Err(format!("{what}: run `OARLOCK_WRITE=1 cargo test -p oarlock-tests --test paddle`").into())
}
