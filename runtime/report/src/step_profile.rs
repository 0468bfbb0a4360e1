//! Profiles each step of a run, and compares its rate with what the machine can do.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use oarlock_engine::{NodeCost, RuntimeValue, Session, StepTiming};
use serde::Serialize;

use crate::graph_text::{qualified_op_name, step_op_name};
use crate::statistics::sorted_median;
use crate::text::{format_count, format_figures, format_milliseconds, to_milliseconds};

/// Runs that are profiled step by step.
const PROFILED_RUNS: usize = 7;
/// No further run starts after this.
const PROFILING_TIME: Duration = Duration::from_secs(3);

/// What the steps of a run take.
#[derive(Serialize)]
pub struct StepProfile {
    /// Times summed by op, the slowest first.
    pub ops: Vec<ProfileRow>,
    /// Time of each step, in the order of execution. A step of a loop body is summed over all iterations.
    pub steps: Vec<ProfileRow>,
    /// Steps of loop bodies beyond the limit of the profiler; their time counts for the enclosing step.
    pub omitted: usize,
}

/// One op or one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileRow {
    /// The op, with its domain unless it is that of ONNX.
    pub op: String,
    /// Name of the node; `None` for an op of several nodes.
    pub node: Option<String>,
    /// The device that ran it.
    pub device: String,
    /// Name, or else op, of the node whose branch or body contains it.
    pub within: Option<String>,
    /// `None` if several kernels ran it.
    pub kernel: Option<String>,
    /// The kernel's own description of its method, if it gives one.
    pub how: Option<String>,
    /// How often it ran.
    pub count: usize,
    /// Its time in milliseconds.
    pub ms: f64,
    /// Fraction of the time of all steps.
    pub share: f64,
    /// Billions of multiplications and additions per second.
    pub gflops: Option<f64>,
    /// Billions of bytes that must be read or written per second.
    pub gb_per_s: Option<f64>,
    #[serde(skip)]
    cost: NodeCost,
}

impl StepProfile {
    /// Runs the model step by step a few times; before each run, `progress` gets how many are done, and the total.
    pub fn measure_steps(
        session: &Session,
        inputs: &[RuntimeValue],
        progress: impl Fn(usize, usize),
    ) -> Result<Self, oarlock_core::Error> {
        let mut taken: Vec<StepTimes> = Vec::new();
        let mut places: HashMap<(usize, usize), usize> = HashMap::new();
        let mut omitted = 0;
        let began = Instant::now();
        for run in 0..PROFILED_RUNS {
            if run > 0 && began.elapsed() > PROFILING_TIME {
                break;
            }
            progress(run, PROFILED_RUNS);
            let timings = session.run_timed(inputs)?.1;
            omitted = timings.omitted;
            for (timing, own) in timings.steps.iter().zip(exclusive_times(&timings.steps)) {
                let place = *places.entry(timing.step_key()).or_insert_with(|| {
                    taken.push(StepTimes::new(timing, &timings.steps));
                    taken.len() - 1
                });
                taken[place].add_time(run, own);
            }
        }
        Ok(Self { omitted, ..Self::from_steps(taken.into_iter().map(StepTimes::into_row).collect()) })
    }

    fn from_steps(mut steps: Vec<ProfileRow>) -> Self {
        let whole: f64 = steps.iter().map(|step| step.ms).sum();
        let mut ops: BTreeMap<(&str, &str), ProfileRow> = BTreeMap::new();
        for step in &steps {
            let all = ops.entry((&step.op, &step.device)).or_insert_with(|| ProfileRow {
                node: None,
                within: None,
                kernel: None,
                how: None,
                count: 0,
                ms: 0.0,
                cost: NodeCost { flops: Some(0), bytes: Some(0) },
                ..step.clone()
            });
            all.count += step.count;
            all.ms += step.ms;
            let sum = |all: Option<u64>, one: Option<u64>| all.zip(one).map(|(all, one)| all + one);
            all.cost.flops = sum(all.cost.flops, step.cost.flops);
            all.cost.bytes = sum(all.cost.bytes, step.cost.bytes);
        }
        let mut ops: Vec<ProfileRow> = ops.into_values().collect();
        ops.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        for row in ops.iter_mut().chain(&mut steps) {
            row.share = if whole > 0.0 { row.ms / whole } else { 0.0 };
            let rate = |amount: u64| if row.ms > 0.0 { Some(amount as f64 / row.ms / 1e6) } else { None };
            row.gflops = row.cost.flops.and_then(rate);
            row.gb_per_s = row.cost.bytes.filter(|bytes| *bytes > 0).and_then(rate);
        }
        Self { ops, steps, omitted: 0 }
    }

    /// Slowest first.
    pub fn slowest_steps(&self) -> Vec<&ProfileRow> {
        let mut steps: Vec<&ProfileRow> = self.steps.iter().collect();
        steps.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        steps
    }

    /// A note about steps missing from the profile.
    pub fn omission_note(&self) -> Option<String> {
        let steps = format_count(self.omitted, "step", "steps");
        (self.omitted > 0)
            .then(|| format!("{steps} of bodies were not looked at; they count for the loops they are in"))
    }
}

/// Times of one step, to become a row.
struct StepTimes {
    /// The first timing keeps the plan alive, whose address is part of the key.
    first: StepTiming,
    within: Option<String>,
    /// Time in each profiled run.
    times: Vec<f64>,
    /// Executions over all runs.
    count: usize,
}

impl StepTimes {
    fn new(timing: &StepTiming, all: &[StepTiming]) -> Self {
        let name = |at: usize| {
            let node = all[at].step().node();
            if node.name.is_empty() {
                qualified_op_name(&node.domain, &node.op)
            } else {
                node.name.to_string()
            }
        };
        Self { first: timing.clone(), within: timing.within.map(name), times: Vec::new(), count: 0 }
    }

    fn add_time(&mut self, run: usize, time: f64) {
        self.times.resize(self.times.len().max(run + 1), 0.0);
        self.times[run] += time;
        self.count += 1;
    }

    fn into_row(mut self) -> ProfileRow {
        let runs = self.times.len().max(1);
        self.times.sort_by(f64::total_cmp);
        let step = self.first.step();
        let (node, how) = (step.node(), step.description());
        let count = self.count.div_ceil(runs);
        let all = |amount: Option<u64>| amount.and_then(|amount| amount.checked_mul(count as u64));
        let NodeCost { flops, bytes } = step.cost();
        ProfileRow {
            op: step_op_name(step),
            node: Some(node.name.to_string()),
            device: step.device().name().to_owned(),
            within: self.within,
            kernel: Some(step.runner()),
            how: (!how.is_empty()).then(|| how.to_owned()),
            count,
            ms: sorted_median(&self.times),
            share: 0.0,
            gflops: None,
            gb_per_s: None,
            cost: NodeCost { flops: all(flops), bytes: all(bytes) },
        }
    }
}

/// Time of each step without its nested steps, in milliseconds.
fn exclusive_times(timings: &[StepTiming]) -> Vec<f64> {
    let mut own: Vec<f64> = timings.iter().map(|timing| to_milliseconds(timing.end - timing.begin)).collect();
    for timing in timings {
        if let Some(outer) = timing.within {
            own[outer] -= to_milliseconds(timing.end - timing.begin);
        }
    }
    own
}

impl ProfileRow {
    /// Name and enclosing node.
    pub fn step_label(&self) -> String {
        let name = self.node.as_deref().filter(|name| !name.is_empty()).unwrap_or("(no name)");
        match &self.within {
            Some(outer) if self.count > 1 => format!("{name}, {} times in {outer}", self.count),
            Some(outer) => format!("{name} in {outer}"),
            None => name.to_owned(),
        }
    }

    /// Time, share and rates as text.
    pub fn rate_texts(&self) -> [String; 4] {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), format_figures);
        let share = format!("{:.1} %", self.share * 100.0);
        [format_milliseconds(self.ms), share, rate(self.gflops), rate(self.gb_per_s)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_row(op: &str, ms: f64, flops: Option<u64>) -> ProfileRow {
        ProfileRow {
            op: op.to_owned(),
            node: Some(String::new()),
            device: "cpu:0".to_owned(),
            within: None,
            kernel: None,
            how: None,
            count: 1,
            ms,
            share: 0.0,
            gflops: None,
            gb_per_s: None,
            cost: NodeCost { flops, bytes: Some(1_000_000) },
        }
    }

    #[test]
    fn steps_of_one_op_are_added_up_and_the_slowest_comes_first() {
        let steps = vec![
            sample_row("Relu", 1.0, None),
            sample_row("Conv", 2.0, Some(4_000_000)),
            sample_row("Relu", 5.0, None),
        ];
        let profile = StepProfile::from_steps(steps);
        let ops: Vec<(&str, usize, f64)> =
            profile.ops.iter().map(|row| (row.op.as_str(), row.count, row.ms)).collect();
        assert_eq!(ops, [("Relu", 2, 6.0), ("Conv", 1, 2.0)]);
        assert_eq!(profile.ops[0].share, 0.75);
        assert_eq!((profile.ops[1].gflops, profile.ops[0].gflops), (Some(2.0), None));
        assert_eq!(profile.ops[1].gb_per_s, Some(0.5));
        assert_eq!(profile.slowest_steps()[0].ms, 5.0);
    }
}
