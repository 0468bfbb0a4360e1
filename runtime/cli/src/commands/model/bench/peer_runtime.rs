//! Another runtime in a child process, which takes turns with this one on the same inputs.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use oarlock_engine::{RuntimeValue, Session};
use serde::{Deserialize, Serialize};

use super::measured_runs::MeasuredRuns;
use super::{BenchmarkReport, latency_text, throughput_text};
use crate::commands::model::outputs::archive_arrays;
use crate::output::{CommandOutput, NAME_STYLE};
use crate::problem::CommandError;
use crate::render::{TableCell, TextTable};
use oarlock_report::difference::largest_difference;
use oarlock_report::npz;
use oarlock_report::statistics::TimeStatistics;
use oarlock_report::text::{format_bytes, format_figures, format_milliseconds};

const PEER_SCRIPT: &str = include_str!("peer.py");
const PEER_NAME: &str = "onnxruntime";
/// The child is idle if it takes no processor time for so long: three ticks of the clock that Linux counts it with.
const IDLE_TIME: Duration = Duration::from_millis(30);
const MAX_IDLE_WAIT: Duration = Duration::from_secs(2);

/// A Python interpreter that can import the other runtime.
pub(super) struct PeerPython {
    python: PathBuf,
}

/// The child process with the model loaded.
pub(super) struct PeerProcess {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    complaints: std::fs::File,
    /// Holds the inputs and the peer's outputs.
    files: tempfile::TempDir,
    first: FirstRunReply,
    measured: MeasuredRuns,
}

/// The child's message after its first run.
#[derive(Deserialize)]
struct FirstRunReply {
    version: String,
    load_ms: f64,
    first_run_ms: f64,
    peak_bytes: u64,
}

#[derive(Serialize)]
pub(super) struct PeerComparison {
    name: &'static str,
    version: String,
    load_ms: f64,
    first_run_ms: f64,
    peak_bytes: u64,
    pub(super) latency_ms: TimeStatistics,
    throughput_per_s: f64,
    /// The peer's median time over ours.
    pub(super) ratio: f64,
    /// Our throughput over the peer's.
    throughput_ratio: f64,
    /// Largest difference between outputs over the largest element of each; `None` if they cannot be compared.
    largest_difference: Option<f64>,
    #[serde(skip)]
    pub(super) measured: MeasuredRuns,
}

impl PeerPython {
    pub(super) fn find_python(python: Option<&Path>) -> Result<Self, CommandError> {
        let python = python.unwrap_or(Path::new("python3"));
        let shown = python.display();
        let hint = format!(
            "install it with `{shown} -m pip install {PEER_NAME} numpy`, or name another Python with `--python`"
        );
        let tried = Command::new(python)
            .args(["-c", "import numpy, onnxruntime"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output();
        let found = match tried {
            Ok(tried) if tried.status.success() => return Ok(Self { python: python.to_owned() }),
            Ok(tried) => {
                let stderr = String::from_utf8_lossy(&tried.stderr);
                stderr.lines().last().unwrap_or("one that ends with an error").to_owned()
            }
            Err(error) => error.to_string(),
        };
        let message = format!("`{shown}`: expected a Python that has {PEER_NAME}, found: {found}");
        Err(CommandError::new(message).with_hint(hint))
    }

    /// Starts the child, which loads the model and runs it once.
    pub(super) fn start_process(
        self,
        model: &Path,
        session: &Session,
        inputs: &[RuntimeValue],
        threads: u64,
        callers: u16,
    ) -> Result<PeerProcess, CommandError> {
        let failed = |error: std::io::Error| {
            CommandError::new(format!("`{}`: expected it to start, found: {error}", self.python.display()))
        };
        let files = tempfile::tempdir().map_err(failed)?;
        let (given, made) = (files.path().join("inputs.npz"), files.path().join("outputs.npz"));
        npz::write_npz(&given, &archive_arrays(session.inputs(), inputs)?)?;
        let complaints = tempfile::tempfile().map_err(failed)?;
        let mut child = Command::new(&self.python)
            .args(["-c", PEER_SCRIPT])
            .args([model, &given, &made])
            .args([threads.to_string(), callers.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CommandError::new("expected pipes to the other runtime, found none"));
        };
        let first = FirstRunReply { version: String::new(), load_ms: 0.0, first_run_ms: 0.0, peak_bytes: 0 };
        let answers = BufReader::new(answers);
        let measured = MeasuredRuns::default();
        let mut running = PeerProcess { child, ask: Some(ask), answers, complaints, files, first, measured };
        running.first = running.read_reply()?;
        Ok(running)
    }
}

impl PeerProcess {
    pub(super) fn warm_up(&mut self, runs: u32) -> Result<(), CommandError> {
        self.request_runs(runs).map(drop)
    }

    /// Measures `runs` runs of each caller after one that warms up.
    pub(super) fn run_turn(&mut self, runs: u32) -> Result<(), CommandError> {
        self.request_runs(1)?;
        let turn = self.request_runs(runs)?;
        self.measured.add_turn(turn);
        Ok(())
    }

    /// Waits for the threads of the child, which spin for more work for 70 ms after a run with onnxruntime 1.31 and would take the
    /// processors away from what is measured next.
    pub(super) fn wait_until_idle(&self) {
        let begin = Instant::now();
        let mut before = self.processor_ticks();
        while begin.elapsed() < MAX_IDLE_WAIT {
            thread::sleep(IDLE_TIME);
            let now = self.processor_ticks();
            if now == before {
                break;
            }
            before = now;
        }
    }

    /// The processor time of the child in ticks; `None` if the system does not tell.
    fn processor_ticks(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name of the program, in parentheses, may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // The times in user mode and in the kernel are fields 14 and 15, and the first one here is field 3.
        fields.get(11..13)?.iter().map(|ticks| ticks.parse::<u64>().ok()).sum()
    }

    fn request_runs(&mut self, runs: u32) -> Result<MeasuredRuns, CommandError> {
        if let Some(ask) = &mut self.ask {
            // Writing to a child that has exited fails; reading its answer then reports that.
            _ = writeln!(ask, "{runs}").and_then(|()| ask.flush());
        }
        self.read_reply()
    }

    fn read_reply<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, CommandError> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        if let (Ok(1..), Ok(answer)) = (read, serde_json::from_str(&line)) {
            return Ok(answer);
        }
        let mut stderr = String::new();
        let rewound = self.complaints.rewind();
        _ = rewound.and_then(|()| self.complaints.read_to_string(&mut stderr));
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        let message = format!("expected {PEER_NAME} to run the model, found: {last}");
        Err(CommandError::new(message).with_hint("leave `--compare` out, or give inputs that both take"))
    }

    /// Stops the child and compares outputs and times.
    pub(super) fn finish_comparison(
        mut self,
        session: &Session,
        made: &[RuntimeValue],
        own: &MeasuredRuns,
    ) -> Result<PeerComparison, CommandError> {
        // The child exits at the end of its input.
        self.ask = None;
        let theirs =
            npz::read_npz::<CommandError>(&self.files.path().join("outputs.npz"), &|_, _, _| Ok(()))?;
        let cpu =
            session.devices().last().ok_or_else(|| CommandError::new("expected a device, found none"))?;
        let mut largest: Option<f64> = None;
        for (index, value) in made.iter().enumerate() {
            let other = theirs.iter().find(|(name, _)| *name == index.to_string());
            let (RuntimeValue::Tensor(ours), Some((_, array))) = (value, other) else { continue };
            let difference = largest_difference(ours, &array.to_tensor(cpu)?)?;
            largest = largest.into_iter().chain(difference).reduce(f64::max);
        }
        let measured = std::mem::take(&mut self.measured);
        let latency_ms = measured.latency_ms()?;
        let FirstRunReply { version, load_ms, first_run_ms, peak_bytes } = &self.first;
        Ok(PeerComparison {
            name: PEER_NAME,
            version: version.clone(),
            load_ms: *load_ms,
            first_run_ms: *first_run_ms,
            peak_bytes: *peak_bytes,
            ratio: latency_ms.median / own.latency_ms()?.median,
            latency_ms,
            throughput_per_s: measured.throughput_per_s(),
            throughput_ratio: own.throughput_per_s() / measured.throughput_per_s(),
            largest_difference: largest,
            measured,
        })
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        self.ask = None;
        // The child may have exited already; either way it must not survive.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl PeerComparison {
    /// Such as `onnxruntime 1.20`.
    pub(super) fn peer_name(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Says in words which one is faster; with several callers, which one has the higher throughput.
    pub(super) fn verdict_text(&self, callers: u16) -> String {
        let factor = if callers > 1 { self.throughput_ratio } else { self.ratio };
        let (first, second) = if factor >= 1.0 { ("Oarlock", self.name) } else { (self.name, "Oarlock") };
        let factor = format_figures(factor.max(1.0 / factor));
        if callers > 1 {
            format!("{first} has {factor} times the throughput of {second}")
        } else {
            format!("{first} is {factor} times as fast as {second}")
        }
    }

    pub(super) fn summary_lines(&self) -> Vec<(&'static str, String)> {
        let difference = match self.largest_difference {
            Some(0.0) => "none, outputs are the same".to_owned(),
            Some(difference) => format!("{difference:.1e} of the largest element at most"),
            None => "not known, as the outputs are of different shapes or kinds".to_owned(),
        };
        vec![
            ("compared", self.peer_name()),
            ("load", format_milliseconds(self.load_ms)),
            ("first run", format_milliseconds(self.first_run_ms)),
            ("latency", latency_text(&self.latency_ms)),
            ("throughput", throughput_text(self.throughput_per_s)),
            ("memory", format!("{} at most, with Python", format_bytes(self.peak_bytes))),
            ("difference", difference),
        ]
    }

    /// Prints both side by side.
    pub(super) fn print_comparison(&self, own: &BenchmarkReport, output: &mut CommandOutput) {
        let mut table = TextTable::new(1);
        self.summary_lines().iter().for_each(|(name, value)| {
            table.add_row([TableCell::with_style(name, NAME_STYLE), TableCell::new(value)]);
        });
        let figures = if own.callers > 1 {
            let theirs = throughput_text(self.throughput_per_s);
            format!(
                "{} against {theirs}, {} callers at once",
                format_figures(own.throughput_per_s),
                own.callers
            )
        } else {
            let medians = [own.latency_ms.median, self.latency_ms.median];
            medians.map(format_milliseconds).join(" against ")
        };
        let verdict = format!("{} ({figures})", self.verdict_text(own.callers));
        let start = format!(
            "{} against {} from the file to the first outputs",
            format_milliseconds(own.load_ms + own.first_run_ms),
            format_milliseconds(self.load_ms + self.first_run_ms)
        );
        table.add_row([TableCell::with_style("start", NAME_STYLE), TableCell::new(start)]);
        table.add_row([
            TableCell::with_style("verdict", NAME_STYLE),
            TableCell::with_style(verdict, NAME_STYLE),
        ]);
        table.print_table(output);
    }
}
