//! `oarlock bench`: measures how fast a model runs, and which steps take the time.
//!
//! Measured runs are whole runs, back to back, with nothing but a clock read in between. Steps are timed in separate runs
//! that wait after every step, so that profiling does not slow down what is measured.

mod html_report;
mod measured_runs;
mod measured_turns;
mod peer_runtime;
mod profile_table;

use std::time::{Duration, Instant};

use oarlock_core::flags::FlagValue;
use oarlock_engine::{RuntimeValue, Session};
use serde::Serialize;

use super::accuracy::AccuracyReport;
use super::model_inputs::{InputRequest, MissingInputs};
use super::{PreparedModel, clear_progress, lock_progress, model_source, show_progress};
use crate::CommandVerdict;
use crate::arguments::{BenchArguments, GlobalOptions};
use crate::output::{CommandOutput, NAME_STYLE};
use crate::output_file;
use crate::problem::CommandError;
use crate::render::{TableCell, TextTable};
use measured_runs::MeasuredRuns;
use measured_turns::measure_in_turns;
use oarlock_report::fallback_report::FallbackReport;
use oarlock_report::statistics::TimeStatistics;
use oarlock_report::step_profile::StepProfile;
use oarlock_report::text::{
    format_bytes, format_count, format_figures, format_milliseconds, to_milliseconds,
};
use oarlock_report::value_description::ValueDescription;
use peer_runtime::{PeerComparison, PeerPython};
use profile_table::print_profile;

/// Inputs shown in the report.
const MAX_SHOWN_INPUTS: usize = 4;

#[derive(Serialize)]
struct BenchmarkReport {
    model: String,
    devices: Vec<String>,
    threads: u64,
    inputs: Vec<ValueDescription>,
    /// From the file to a session.
    load_ms: f64,
    /// Includes planning for the input shapes and preparing kernels.
    first_run_ms: f64,
    /// Threads that run the session at once.
    callers: u16,
    /// Runs of all callers.
    runs: usize,
    latency_ms: TimeStatistics,
    /// Runs per second of all callers together, by the time that passed.
    throughput_per_s: f64,
    memory: MemoryUse,
    /// Nodes on each device, and what the CPU runs for other devices.
    fallback: FallbackReport,
    #[serde(flatten)]
    profile: StepProfile,
    compared: Option<PeerComparison>,
    /// Effect of rounding; `None` if everything was exact.
    accuracy: Option<AccuracyReport>,
    #[serde(skip)]
    measured: MeasuredRuns,
}

#[derive(Serialize)]
struct MemoryUse {
    /// Peak resident memory of the process, including mapped files.
    peak_bytes: Option<u64>,
    weights_bytes: u64,
    /// Arenas of one run on all devices, besides inputs and outputs.
    arena_bytes: u64,
}

pub(crate) fn run_benchmark(
    global: &GlobalOptions,
    call: &BenchArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    output_file::check_output_files(call.html.as_deref())?;
    if call.compare.is_some() && model_source::is_stream(&call.choice.file) {
        let message = "expected a model in a file, which the other runtime reads too, found a stream";
        return Err(CommandError::new(message)
            .for_file(&call.choice.file)
            .with_hint("write it to a file, and name that"));
    }
    let rival = call.compare.map(|_| PeerPython::find_python(call.python.as_deref())).transpose()?;
    let subject = PreparedModel::load_model(global, &call.choice, call.exactness)?;
    subject.check_outputs(&call.choice)?;
    let is_open = call.feeds.inputs.is_empty();
    let missing = MissingInputs::from_seed(call.feeds.random.or(if is_open { Some(0) } else { None }));
    let wish = InputRequest { inputs: &call.feeds.inputs, shapes: &call.choice.shapes, missing };
    let inputs = subject.resolve_inputs(global, &wish)?.data;

    show_progress(&subject.progress, "running for the first time …");
    let began = Instant::now();
    let result = subject.run(&inputs)?;
    let first_run_ms = to_milliseconds(began.elapsed());
    let fallback = subject.report_fallback(global, &call.choice, &inputs)?;
    // Read it now: the profiling below is no part of running a model.
    let peak_bytes = peak_memory("/proc/self/status");

    let threads = thread_count(&subject);
    let mut rival = match rival {
        Some(rival) => {
            show_progress(&subject.progress, "starting the other runtime …");
            Some(rival.start_process(&call.choice.file, &subject.session, &inputs, threads, call.callers)?)
        }
        None => None,
    };
    let measured = measure_in_turns(&subject, call, &inputs, rival.as_mut())?;
    let progress = |run, runs| lock_progress(&subject.progress).show_bar("running step by step", run, runs);
    let profile = StepProfile::measure_steps(&subject.session, &inputs, progress)?;
    let compared =
        rival.map(|rival| rival.finish_comparison(&subject.session, &result, &measured)).transpose()?;
    let accuracy = AccuracyReport::measure_accuracy(&subject, &inputs, &result)?;
    clear_progress(&subject.progress);

    let latency_ms = measured.latency_ms()?;
    let plan = subject.session.plan(&inputs)?;
    let slots = subject.session.inputs().iter().zip(&inputs);
    let report = BenchmarkReport {
        model: call.choice.file.display().to_string(),
        devices: subject.device_names(),
        threads,
        inputs: slots.map(|(slot, value)| ValueDescription::from_value(&slot.name, value)).collect(),
        load_ms: to_milliseconds(subject.loading + subject.preparing),
        first_run_ms,
        callers: call.callers,
        runs: measured.times.len(),
        throughput_per_s: measured.throughput_per_s(),
        latency_ms,
        memory: MemoryUse {
            peak_bytes,
            weights_bytes: subject.model.graph.weight_bytes(),
            arena_bytes: plan.arenas().iter().map(|(_, size)| size).sum(),
        },
        fallback,
        profile,
        compared,
        accuracy,
        measured,
    };
    if let Some(file) = &call.html {
        output_file::write_text_file(file, &html_report::render_benchmark(&report))?;
    }
    super::report_result(global, output, &report, |output| report.print_report(output))?;
    Ok(subject.is_complete)
}

/// Time from the call until the outputs are ready. `scripts/check-quantized` counts the instructions inside, and finds the
/// function by its path.
#[inline(never)]
fn time_run(session: &Session, inputs: &[RuntimeValue]) -> Result<Duration, CommandError> {
    let began = Instant::now();
    let outputs = session.run(inputs)?;
    outputs.iter().try_for_each(super::wait_for_value)?;
    let taken = began.elapsed();
    drop(outputs);
    Ok(taken)
}

/// The number of threads that CPU kernels may use.
fn thread_count(subject: &PreparedModel) -> u64 {
    let flag = subject.core.runtime.flags().get("threads");
    let set =
        flag.ok().and_then(|(value, _)| if let FlagValue::Count(count) = value { Some(count) } else { None });
    let all = || std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    set.filter(|count| *count > 0).unwrap_or_else(all)
}

/// Parses `VmHWM` of `/proc/self/status`.
fn peak_memory(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

impl BenchmarkReport {
    fn print_report(&self, output: &mut CommandOutput) {
        let mut table = TextTable::new(1);
        self.summary_lines().iter().for_each(|(name, value)| {
            table.add_row([TableCell::with_style(name, NAME_STYLE), TableCell::new(value)]);
        });
        table.print_table(output);
        if let Some(compared) = &self.compared {
            output.write_line("");
            compared.print_comparison(self, output);
        }
        output.write_line("");
        print_profile(&self.profile, output);
    }

    /// The report in lines of label and text.
    fn summary_lines(&self) -> Vec<(&'static str, String)> {
        let Self { latency_ms: latency, memory, .. } = self;
        let input = |kind: &ValueDescription| match (kind.dtype, &kind.shape) {
            (Some(dtype), Some(shape)) => format!("{} {dtype} {shape:?}", kind.name),
            _ => kind.name.clone(),
        };
        let mut inputs: Vec<String> = self.inputs.iter().take(MAX_SHOWN_INPUTS).map(input).collect();
        if self.inputs.len() > MAX_SHOWN_INPUTS {
            inputs.push(format!("and {} more", self.inputs.len() - MAX_SHOWN_INPUTS));
        }
        let mut taken = format!(
            "{} of weights, {} for values",
            format_bytes(memory.weights_bytes),
            format_bytes(memory.arena_bytes)
        );
        if let Some(peak) = memory.peak_bytes {
            taken = format!("{} at most; {taken}", format_bytes(peak));
        }
        let mut facts = vec![
            ("model", self.model.clone()),
            (
                "devices",
                format!(
                    "{}, {} on the CPU",
                    self.devices.join(", "),
                    format_count(usize::try_from(self.threads).unwrap_or(usize::MAX), "thread", "threads")
                ),
            ),
            ("inputs", inputs.join(", ")),
            ("load", format_milliseconds(self.load_ms)),
            ("first run", format_milliseconds(self.first_run_ms)),
        ];
        if self.callers > 1 {
            let callers = usize::from(self.callers);
            let each = format_count(self.runs / callers, "run", "runs");
            facts.push(("callers", format!("{callers} callers at once, {each} each")));
        }
        let runs = format_count(self.runs, "run", "runs");
        facts.extend([
            ("latency", latency_text(latency)),
            ("throughput", format!("{}, over {runs}", throughput_text(self.throughput_per_s))),
            ("memory", taken),
        ]);
        let accuracy = self.accuracy.iter().flat_map(AccuracyReport::to_sentences);
        facts.extend(accuracy.map(|sentence| ("precision", sentence)));
        facts
    }
}

/// Such as `median 2.00 ms, mean …`.
fn latency_text(latency: &TimeStatistics) -> String {
    format!(
        "median {}, mean {}, from {} to {}, 90 % within {}, 99 % within {}",
        format_milliseconds(latency.median),
        format_milliseconds(latency.mean),
        format_milliseconds(latency.min),
        format_milliseconds(latency.max),
        format_milliseconds(latency.p90),
        format_milliseconds(latency.p99)
    )
}

fn throughput_text(throughput_per_s: f64) -> String {
    format!("{} runs a second", format_figures(throughput_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_the_peak_of_memory() {
        let peak = peak_memory("/proc/self/status").unwrap();
        assert!(peak > 1 << 16, "{peak}");
        assert_eq!(peak_memory("/nowhere"), None);
    }
}
