//! `oarlock replay`: carries out again what the layer `record` wrote down.

mod recorded_calls;
mod replay_memory;
mod replay_report;
mod replayed_op;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use oarlock_plugin_record::{RecordingError, RecordingFrame, RecordingReader};

use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, ReplayArguments};
use crate::environment_flags;
use crate::output::CommandOutput;
use crate::problem::CommandError;
use crate::session::{CoreSession, unusable_file};
use recorded_calls::CallReplay;

pub(crate) fn replay_recording(
    global: &GlobalOptions,
    arguments: &ReplayArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let file = &arguments.file;
    let source = File::open(file).map_err(|error| unusable_file(file, &error))?;
    let mut reader = RecordingReader::open_recording(BufReader::new(source))
        .map_err(|error| reading_error(file, &error))?;
    let core = CoreSession::start_core(global, environment_flags::flags_from_environment()?)?;
    let is_complete = core.warn_about_missing(global, false);
    let device = match &arguments.device {
        Some(name) => core.runtime.device(name)?,
        None => core.runtime.default_device()?.clone(),
    };
    let mut replay = CallReplay::new(&core.runtime, &device, arguments);
    while let Some(frame) = reader.next_frame().map_err(|error| reading_error(file, &error))? {
        match frame {
            RecordingFrame::Target(target) => replay.add_target(target),
            RecordingFrame::Slot(slot) => replay.add_slot(slot),
            RecordingFrame::Call(call) => replay.replay_call(&call),
        }
    }
    let report = replay.finish(reader.is_cut_off());
    if global.json {
        super::print_json(output, &report)?;
    } else {
        report.print_text(output);
    }
    Ok(is_complete && report.different == 0)
}

fn reading_error(file: &Path, error: &RecordingError) -> CommandError {
    CommandError::new(error).for_file(file).with_hint("record again with `--layer record`")
}
