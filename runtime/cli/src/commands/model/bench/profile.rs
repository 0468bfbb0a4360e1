//! What each step of a run takes, and how near it is to what the machine could do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use oarlock_engine::{Cost, Datum, Session};
use serde::Serialize;

use crate::commands::model::statistics::median;
use crate::commands::model::{figures, milliseconds, op_of, time};
use crate::output::{NAME, Output, QUIET};
use crate::problem::Problem;
use crate::render::{Cell, Table};

/// How many runs are looked at, step by step.
const RUNS: usize = 7;
/// No further run begins after this.
const LONG_ENOUGH: Duration = Duration::from_secs(3);
/// How many steps are printed one by one.
const MOST_STEPS: usize = 10;

/// What the steps of a run take.
#[derive(Serialize)]
pub(super) struct Profile {
    /// What ops take together, the one that takes most first.
    pub(super) ops: Vec<Row>,
    /// What each step takes, in the order of the run.
    pub(super) steps: Vec<Row>,
}

/// One op, or one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) op: String,
    /// The name of the node; nothing for several.
    pub(super) node: Option<String>,
    pub(super) device: String,
    /// What runs it; nothing for several.
    pub(super) kernel: Option<String>,
    pub(super) count: usize,
    pub(super) ms: f64,
    /// Of all steps.
    pub(super) share: f64,
    /// Thousands of millions of multiplications and additions in a second.
    pub(super) gflops: Option<f64>,
    /// Thousands of millions of bytes that have to be read or written in a second.
    pub(super) gb_per_s: Option<f64>,
    #[serde(skip)]
    cost: Cost,
}

impl Profile {
    /// Runs step by step, a few times; `told` before each run how many there were, and of how many.
    pub(super) fn take(
        session: &Session,
        inputs: &[Datum],
        told: impl Fn(usize, usize),
    ) -> Result<Self, Problem> {
        let plan = session.plan(inputs)?;
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); plan.steps().len()];
        let began = Instant::now();
        for run in 0..RUNS {
            if run > 0 && began.elapsed() > LONG_ENOUGH {
                break;
            }
            told(run, RUNS);
            for timing in session.run_timed(inputs)?.1 {
                if let Some(times) = taken.get_mut(timing.step) {
                    times.push(milliseconds(timing.end - timing.begin));
                }
            }
        }
        let row = |(step, mut times): (oarlock_engine::StepInfo<'_>, Vec<f64>)| {
            times.sort_by(f64::total_cmp);
            let node = step.node();
            let op = if step.is_copy() { "copy".to_owned() } else { op_of(&node.domain, &node.op) };
            Row {
                op,
                node: Some(node.name.to_string()),
                device: step.device().name().to_owned(),
                kernel: Some(step.runner()),
                count: 1,
                ms: median(&times),
                share: 0.0,
                gflops: None,
                gb_per_s: None,
                cost: step.cost(),
            }
        };
        Ok(Self::of(plan.steps().zip(taken).map(row).collect()))
    }

    fn of(mut steps: Vec<Row>) -> Self {
        let whole: f64 = steps.iter().map(|step| step.ms).sum();
        let mut ops: BTreeMap<(&str, &str), Row> = BTreeMap::new();
        for step in &steps {
            let all = ops.entry((&step.op, &step.device)).or_insert_with(|| Row {
                node: None,
                kernel: None,
                count: 0,
                ms: 0.0,
                cost: Cost { flops: Some(0), bytes: Some(0) },
                ..step.clone()
            });
            all.count += 1;
            all.ms += step.ms;
            let sum = |all: Option<u64>, one: Option<u64>| all.zip(one).map(|(all, one)| all + one);
            all.cost.flops = sum(all.cost.flops, step.cost.flops);
            all.cost.bytes = sum(all.cost.bytes, step.cost.bytes);
        }
        let mut ops: Vec<Row> = ops.into_values().collect();
        ops.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        for row in ops.iter_mut().chain(&mut steps) {
            row.share = if whole > 0.0 { row.ms / whole } else { 0.0 };
            let rate = |amount: u64| if row.ms > 0.0 { Some(amount as f64 / row.ms / 1e6) } else { None };
            row.gflops = row.cost.flops.and_then(rate);
            row.gb_per_s = row.cost.bytes.filter(|bytes| *bytes > 0).and_then(rate);
        }
        Self { ops, steps }
    }

    /// The steps that take most, those first.
    pub(super) fn slowest(&self) -> Vec<&Row> {
        let mut steps: Vec<&Row> = self.steps.iter().collect();
        steps.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        steps
    }

    pub(super) fn print(&self, output: &mut Output) {
        let several =
            self.steps.iter().any(|step| self.steps.first().is_some_and(|first| first.device != step.device));
        let mut table = Table::new(0);
        let titles = ["op", "count", "time", "share", "GFLOP/s", "GB/s"];
        table.row(titles.map(|title| Cell::styled(title, QUIET)));
        for row in &self.ops {
            let op = if several { format!("{} on {}", row.op, row.device) } else { row.op.clone() };
            table.row(row.cells(op, &row.count.to_string()));
        }
        table.print(output);
        let slowest = self.slowest();
        if slowest.len() > 1 {
            output.line("");
            let mut table = Table::new(0);
            let all = slowest.len();
            let title = if all > MOST_STEPS { format!("slowest of {all} steps") } else { "step".to_owned() };
            let titles = [title.as_str(), "op", "time", "share", "GFLOP/s", "GB/s"];
            table.row(titles.map(|title| Cell::styled(title, QUIET)));
            for row in slowest.into_iter().take(MOST_STEPS) {
                let name = row.node.as_deref().filter(|name| !name.is_empty()).unwrap_or("(no name)");
                table.row(row.cells(name, &row.op));
            }
            table.print(output);
        }
    }
}

impl Row {
    /// How long it takes and how fast it is, in text.
    pub(super) fn rates(&self) -> [String; 4] {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), figures);
        let share = format!("{:.1} %", self.share * 100.0);
        [time(self.ms), share, rate(self.gflops), rate(self.gb_per_s)]
    }

    fn cells(&self, name: impl AsRef<str>, next: &str) -> Vec<Cell> {
        let rates = self.rates().map(Cell::new);
        [Cell::styled(name, NAME), Cell::new(next)].into_iter().chain(rates).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(op: &str, ms: f64, flops: Option<u64>) -> Row {
        Row {
            op: op.to_owned(),
            node: Some(String::new()),
            device: "cpu:0".to_owned(),
            kernel: None,
            count: 1,
            ms,
            share: 0.0,
            gflops: None,
            gb_per_s: None,
            cost: Cost { flops, bytes: Some(1_000_000) },
        }
    }

    #[test]
    fn steps_of_one_op_are_added_up_and_the_slowest_comes_first() {
        let steps =
            vec![step("Relu", 1.0, None), step("Conv", 2.0, Some(4_000_000)), step("Relu", 5.0, None)];
        let profile = Profile::of(steps);
        let ops: Vec<(&str, usize, f64)> =
            profile.ops.iter().map(|row| (row.op.as_str(), row.count, row.ms)).collect();
        assert_eq!(ops, [("Relu", 2, 6.0), ("Conv", 1, 2.0)]);
        assert_eq!(profile.ops[0].share, 0.75);
        assert_eq!((profile.ops[1].gflops, profile.ops[0].gflops), (Some(2.0), None));
        assert_eq!(profile.ops[1].gb_per_s, Some(0.5));
        assert_eq!(profile.slowest()[0].ms, 5.0);
    }
}
