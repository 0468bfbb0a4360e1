//! `oarlock bench`: how fast a model runs, and what takes the time.
//!
//! Runs that are measured are whole runs, one after the other, with nothing between them but a look at the clock. What
//! each step takes is found in other runs, in which every step is waited for, so that looking does not slow down what is
//! measured.

mod html;
mod peer;
mod profile;

use std::time::{Duration, Instant};

use oarlock_core::flags::Value;
use oarlock_engine::Datum;
use serde::Serialize;

use super::accuracy::Accuracy;
use super::fallback::FallbackReport;
use super::feeds::{Missing, Wish};
use super::statistics::Times;
use super::{Kind, Subject, clear, figures, lock, milliseconds, show, source, time};
use crate::Verdict;
use crate::arguments::{BenchCall, Global};
use crate::output::{NAME, Output};
use crate::problem::Problem;
use crate::render::{Cell, Table, bytes};
use crate::target;
use peer::{Outcome, Rival};
use profile::Profile;

/// How long the measured runs take when their number is left open.
const LONG_ENOUGH: Duration = Duration::from_secs(3);
/// How many runs there are then.
const RUNS: std::ops::RangeInclusive<u32> = 10..=10_000;
/// In how many turns runs are measured where two runtimes take turns.
const TURNS: u32 = 10;
/// How long both rest between turns: threads that wait actively for more work of their own have gone to sleep by then.
const REST: Duration = Duration::from_millis(30);

/// How many inputs are shown.
const MOST_INPUTS: usize = 4;

/// Everything that was measured.
#[derive(Serialize)]
struct Report {
    model: String,
    devices: Vec<String>,
    threads: u64,
    inputs: Vec<Kind>,
    /// From the file to a session.
    load_ms: f64,
    /// With the plan for the shapes of the inputs, and kernels that are readied.
    first_run_ms: f64,
    runs: usize,
    latency_ms: Times,
    /// How many runs there are in a second, one after the other.
    throughput_per_s: f64,
    memory: Memory,
    /// Which device runs how many nodes, and what the CPU runs for others.
    fallback: FallbackReport,
    #[serde(flatten)]
    profile: Profile,
    compared: Option<Outcome>,
    /// What was rounded and how far that leads; nothing where all had to be exact.
    accuracy: Option<Accuracy>,
    /// Each run, in order.
    #[serde(skip)]
    times: Vec<f64>,
}

/// How much memory it took.
#[derive(Serialize)]
struct Memory {
    /// The most that the process had in memory at a time, pages of files among it.
    peak_bytes: Option<u64>,
    weights_bytes: u64,
    /// What each run takes on all devices, beside inputs and outputs.
    arena_bytes: u64,
}

pub(crate) fn run(global: &Global, call: &BenchCall, output: &mut Output) -> Verdict {
    target::check(call.html.as_deref())?;
    if call.compare.is_some() && source::is_stream(&call.choice.file) {
        let message = "expected a model in a file, which the other runtime reads too, found a stream";
        return Err(Problem::new(message)
            .of_file(&call.choice.file)
            .hint("write it to a file, and name that"));
    }
    let rival = call.compare.map(|_| Rival::find(call.python.as_deref())).transpose()?;
    let subject = Subject::load(global, &call.choice, call.exactness)?;
    subject.check_outputs(&call.choice)?;
    let is_open = call.feeds.inputs.is_empty();
    let missing = Missing::of_seed(call.feeds.random.or(if is_open { Some(0) } else { None }));
    let wish = Wish { inputs: &call.feeds.inputs, shapes: &call.choice.shapes, missing };
    let inputs = subject.feeds(global, &wish)?.data;

    show(&subject.progress, "running for the first time …");
    let began = Instant::now();
    let made = subject.run(&inputs)?;
    let first_run_ms = milliseconds(began.elapsed());
    let fallback = subject.fallback(global, &call.choice, &inputs)?;
    // Taken now, as what follows measures and is no part of running a model.
    let peak_bytes = peak_memory("/proc/self/status");

    let threads = threads(&subject);
    let mut rival = match rival {
        Some(rival) => {
            show(&subject.progress, "starting the other runtime …");
            Some(rival.start(&call.choice.file, &subject.session, &inputs, threads)?)
        }
        None => None,
    };
    let times = measure(&subject, call, &inputs, rival.as_mut())?;
    let told = |run, runs| lock(&subject.progress).bar("running step by step", run, runs);
    let profile = Profile::take(&subject.session, &inputs, told)?;
    let compared = rival.map(|rival| rival.finish(&subject.session, &made, &times)).transpose()?;
    let accuracy = Accuracy::measure(&subject, &inputs, &made)?;
    clear(&subject.progress);

    let latency_ms = Times::of(&times).ok_or_else(|| Problem::new("expected runs, found none"))?;
    let plan = subject.session.plan(&inputs)?;
    let slots = subject.session.inputs().iter().zip(&inputs);
    let report = Report {
        model: call.choice.file.display().to_string(),
        devices: subject.devices(),
        threads,
        inputs: slots.map(|(slot, datum)| Kind::of(&slot.name, datum)).collect(),
        load_ms: milliseconds(subject.loading + subject.preparing),
        first_run_ms,
        runs: times.len(),
        throughput_per_s: 1e3 / latency_ms.mean,
        latency_ms,
        memory: Memory {
            peak_bytes,
            weights_bytes: subject.model.graph.weight_bytes(),
            arena_bytes: plan.arenas().iter().map(|(_, size)| size).sum(),
        },
        fallback,
        profile,
        compared,
        accuracy,
        times,
    };
    if let Some(file) = &call.html {
        target::write_text(file, &html::page(&report))?;
    }
    super::tell(global, output, &report, |output| report.print(output))?;
    Ok(subject.is_complete)
}

/// The times of runs, turn by turn with those of another runtime.
fn measure(
    subject: &Subject,
    call: &BenchCall,
    inputs: &[Datum],
    mut rival: Option<&mut peer::Running>,
) -> Result<Vec<f64>, Problem> {
    for run in 0..call.warmup {
        lock(&subject.progress).bar("warming up", run as usize, call.warmup as usize);
        one(subject, inputs)?;
    }
    let repeat = match call.repeat {
        Some(repeat) => repeat,
        None => {
            let taken = one(subject, inputs)?.as_secs_f64().max(1e-9);
            ((LONG_ENOUGH.as_secs_f64() / taken) as u32).clamp(*RUNS.start(), *RUNS.end())
        }
    };
    let turns = if rival.is_some() { TURNS.min(repeat) } else { 1 };
    if let Some(rival) = &mut rival {
        rival.warm_up(call.warmup)?;
    }
    let mut times = Vec::new();
    for turn in 1..=turns {
        let until = (u64::from(repeat) * u64::from(turn) / u64::from(turns)) as usize;
        let begin = times.len();
        if let Some(rival) = &mut rival {
            rival.take_turn(until - begin)?;
            std::thread::sleep(REST);
            one(subject, inputs)?;
        }
        while times.len() < until {
            times.push(milliseconds(one(subject, inputs)?));
            lock(&subject.progress).bar("measuring", times.len(), repeat as usize);
        }
        if rival.is_some() {
            std::thread::sleep(REST);
        }
    }
    Ok(times)
}

/// One run, until its outputs are there.
fn one(subject: &Subject, inputs: &[Datum]) -> Result<Duration, Problem> {
    let began = Instant::now();
    let outputs = subject.session.run(inputs)?;
    outputs.iter().try_for_each(super::wait)?;
    let taken = began.elapsed();
    drop(outputs);
    Ok(taken)
}

/// How many threads kernels on the CPU may use.
fn threads(subject: &Subject) -> u64 {
    let flag = subject.core.runtime.flags().get("threads");
    let set =
        flag.ok().and_then(|(value, _)| if let Value::Count(count) = value { Some(count) } else { None });
    let all = || std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    set.filter(|count| *count > 0).unwrap_or_else(all)
}

/// The most memory that a process had, as the kernel tells it.
fn peak_memory(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

impl Report {
    fn print(&self, output: &mut Output) {
        let mut table = Table::new(1);
        self.facts().iter().for_each(|(name, value)| table.row([Cell::styled(name, NAME), Cell::new(value)]));
        table.print(output);
        if let Some(compared) = &self.compared {
            output.line("");
            compared.print(&self.latency_ms, self.load_ms + self.first_run_ms, output);
        }
        output.line("");
        self.profile.print(output);
    }

    /// What there is to say in a line each.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let Self { latency_ms: latency, memory, .. } = self;
        let input = |kind: &Kind| match (kind.dtype, &kind.shape) {
            (Some(dtype), Some(shape)) => format!("{} {dtype} {shape:?}", kind.name),
            _ => kind.name.clone(),
        };
        let mut inputs: Vec<String> = self.inputs.iter().take(MOST_INPUTS).map(input).collect();
        if self.inputs.len() > MOST_INPUTS {
            inputs.push(format!("and {} more", self.inputs.len() - MOST_INPUTS));
        }
        let mut taken =
            format!("{} of weights, {} for values", bytes(memory.weights_bytes), bytes(memory.arena_bytes));
        if let Some(peak) = memory.peak_bytes {
            taken = format!("{} at most; {taken}", bytes(peak));
        }
        let mut facts = vec![
            ("model", self.model.clone()),
            (
                "devices",
                format!(
                    "{}, {} on the CPU",
                    self.devices.join(", "),
                    crate::render::count(
                        usize::try_from(self.threads).unwrap_or(usize::MAX),
                        "thread",
                        "threads"
                    )
                ),
            ),
            ("inputs", inputs.join(", ")),
            ("load", time(self.load_ms)),
            ("first run", time(self.first_run_ms)),
            (
                "latency",
                format!(
                    "median {}, mean {}, from {} to {}, 90 % within {}, 99 % within {}",
                    time(latency.median),
                    time(latency.mean),
                    time(latency.min),
                    time(latency.max),
                    time(latency.p90),
                    time(latency.p99)
                ),
            ),
            (
                "throughput",
                format!(
                    "{} runs a second, over {}",
                    figures(self.throughput_per_s),
                    crate::render::count(self.runs, "run", "runs")
                ),
            ),
            ("memory", taken),
        ];
        let accuracy = self.accuracy.iter().flat_map(Accuracy::sentences);
        facts.extend(accuracy.map(|sentence| ("precision", sentence)));
        facts
    }
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
