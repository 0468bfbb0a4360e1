//! The report of a benchmark as a page with plots.

use super::Report;
use super::profile::Row;
use crate::commands::model::page::{self, Align, add, escape};
use crate::commands::model::statistics::Times;
use crate::commands::model::time;

/// The size of a plot, and the room for what stands left of and below it.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 70.0;
const BELOW: f64 = 30.0;
/// Of more runs only so many are drawn.
const MOST_POINTS: usize = 2000;
/// How many bars a distribution has.
const BINS: usize = 60;
/// How many ops have bars.
const MOST_OPS: usize = 20;

/// Times of one runtime, as they are drawn.
struct Series<'a> {
    name: String,
    class: &'static str,
    times: &'a [f64],
}

pub(super) fn page(report: &Report) -> String {
    let mut body = String::new();
    let rows = |facts: Vec<(&'static str, String)>| -> Vec<Vec<String>> {
        facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
    };
    let two = [("", Align::Left), ("", Align::Left)];
    page::table(&mut body, &two, &rows(report.facts()));
    let mut series = vec![Series { name: "Oarlock".to_owned(), class: "one", times: &report.times }];
    if let Some(compared) = &report.compared {
        add(&mut body, format_args!("<h2>{}</h2>\n", escape(&compared.verdict())));
        page::table(&mut body, &two, &rows(compared.facts()));
        series.push(Series { name: compared.name(), class: "two", times: &compared.times });
    }
    let scale = Scale::of(&series);
    body.push_str("<h2>Latency, run by run</h2>\n");
    runs(&mut body, &series, &scale);
    body.push_str("<h2>Latency, how often</h2>\n");
    distribution(&mut body, &series, &scale);
    body.push_str("<h2>What takes the time</h2>\n<p class=\"quiet\">Measured in runs of their own, in which every step is waited for.</p>\n");
    bars(&mut body, &report.profile.ops);
    let number = |title| (title, Align::Right);
    let text = |title| (title, Align::Left);
    let titles =
        [text("op"), number("count"), number("time"), number("share"), number("GFLOP/s"), number("GB/s")];
    let op = |row: &Row| [vec![row.op.clone(), row.count.to_string()], row.rates().to_vec()].concat();
    page::table(&mut body, &titles, &report.profile.ops.iter().map(op).collect::<Vec<_>>());
    body.push_str("<h2>Every step, the slowest first</h2>\n");
    let titles = [
        text("node"),
        text("op"),
        text("device"),
        text("how"),
        number("time"),
        number("share"),
        number("GFLOP/s"),
        number("GB/s"),
    ];
    let step = |row: &&Row| {
        let how = row.how.as_ref().or(row.kernel.as_ref()).cloned().unwrap_or_default();
        let names = [row.label(), row.op.clone(), row.device.clone(), how];
        [names.to_vec(), row.rates().to_vec()].concat()
    };
    page::table(&mut body, &titles, &report.profile.slowest().iter().map(step).collect::<Vec<_>>());
    if let Some(note) = report.profile.note() {
        add(&mut body, format_args!("<p class=\"quiet\">{note}.</p>\n"));
    }
    page::page(&format!("Benchmark of {}", report.model), &body)
}

/// The times that fit into a plot: a few very slow runs would leave no room for all others.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn of(series: &[Series<'_>]) -> Self {
        let all: Vec<Times> = series.iter().filter_map(|series| Times::of(series.times)).collect();
        let least = all.iter().map(|times| times.min).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(|times| times.p99 + (times.p99 - times.min) * 0.2).fold(0.0, f64::max);
        let least = if least.is_finite() { least } else { 0.0 };
        Self { least, most: most.max(least * 1.01).max(least + 1e-6) }
    }

    /// Where a time stands, from 0 to 1; what is beyond stands at the edge.
    fn place(&self, time: f64) -> f64 {
        ((time - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }
}

fn open(page: &mut String, height: f64) {
    let (width, height) = (LEFT + WIDTH + 50.0, height + BELOW + 20.0);
    add(page, format_args!("<div class=\"wide\"><svg width=\"{width}\" height=\"{height}\" role=\"img\">\n"));
}

fn legend(page: &mut String, series: &[Series<'_>]) {
    for (index, Series { name, class, .. }) in series.iter().enumerate() {
        let x = LEFT + 200.0 * index as f64;
        add(page, format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"8\" r=\"4\"/>"));
        add(page, format_args!("<text x=\"{}\" y=\"12\">{}</text>\n", x + 9.0, escape(name)));
    }
}

/// A point for each run.
fn runs(page: &mut String, series: &[Series<'_>], scale: &Scale) {
    open(page, HEIGHT);
    legend(page, series);
    let y = |time: f64| 20.0 + HEIGHT * (1.0 - scale.place(time));
    for part in 0..=4 {
        let value = scale.least + (scale.most - scale.least) * f64::from(part) / 4.0;
        let (y, end) = (y(value), LEFT + WIDTH);
        add(
            page,
            format_args!("<line class=\"axis\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"),
        );
        let label = time(value);
        add(
            page,
            format_args!(
                "<text class=\"quiet\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>\n",
                LEFT - 8.0,
                y + 4.0
            ),
        );
    }
    for Series { class, times, .. } in series {
        let step = times.len().div_ceil(MOST_POINTS).max(1);
        let last = times.len().saturating_sub(1).max(1) as f64;
        for (index, time) in times.iter().enumerate().step_by(step) {
            let x = LEFT + WIDTH * index as f64 / last;
            add(
                page,
                format_args!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"1.6\"/>", y(*time)),
            );
        }
    }
    page.push_str("</svg></div>\n");
}

/// How many runs took how long.
fn distribution(page: &mut String, series: &[Series<'_>], scale: &Scale) {
    open(page, HEIGHT);
    legend(page, series);
    let bins: Vec<Vec<f64>> = series.iter().map(|series| histogram(series.times, scale)).collect();
    let most = bins.iter().flatten().copied().fold(1e-9, f64::max);
    let width = WIDTH / BINS as f64;
    for (Series { class, .. }, bins) in series.iter().zip(&bins) {
        for (index, share) in bins.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let height = HEIGHT * share / most;
            let (x, y) = (LEFT + width * index as f64, 20.0 + HEIGHT - height);
            add(
                page,
                format_args!(
                    "<rect class=\"{class}\" opacity=\".7\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                    width - 1.0
                ),
            );
        }
    }
    for part in 0..=4 {
        let value = scale.least + (scale.most - scale.least) * f64::from(part) / 4.0;
        let (x, y) = (LEFT + WIDTH * f64::from(part) / 4.0, HEIGHT + 38.0);
        let label = time(value);
        add(
            page,
            format_args!(
                "<text class=\"quiet\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y}\">{label}</text>"
            ),
        );
    }
    page.push_str("</svg></div>\n");
}

/// Which share of the times lies in each bin.
fn histogram(times: &[f64], scale: &Scale) -> Vec<f64> {
    let mut bins = vec![0.0; BINS];
    for time in times {
        let bin = (scale.place(*time) * BINS as f64) as usize;
        bins[bin.min(BINS - 1)] += 1.0 / times.len() as f64;
    }
    bins
}

/// A bar for each op, as long as its share.
fn bars(page: &mut String, ops: &[Row]) {
    const ROW: f64 = 22.0;
    const NAMES: f64 = 190.0;
    let shown = &ops[..ops.len().min(MOST_OPS)];
    let longest = shown.iter().map(|row| row.share).fold(1e-9, f64::max);
    open(page, ROW * shown.len() as f64 - BELOW);
    for (index, row) in shown.iter().enumerate() {
        let y = ROW * index as f64;
        let width = (WIDTH - NAMES) * row.share / longest;
        let name = escape(&row.op);
        add(
            page,
            format_args!("<text text-anchor=\"end\" x=\"{}\" y=\"{}\">{name}</text>", NAMES - 8.0, y + 15.0),
        );
        add(
            page,
            format_args!(
                "<rect class=\"one\" x=\"{NAMES}\" y=\"{}\" width=\"{width:.1}\" height=\"16\"/>",
                y + 3.0
            ),
        );
        add(
            page,
            format_args!(
                "<text class=\"quiet\" x=\"{:.1}\" y=\"{}\">{}, {:.1} %</text>\n",
                NAMES + width + 6.0,
                y + 15.0,
                time(row.ms),
                row.share * 100.0
            ),
        );
    }
    page.push_str("</svg></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_some_bin() {
        let times = [1.0, 1.1, 1.2, 9.0];
        let series = [Series { name: String::new(), class: "one", times: &times }];
        let scale = Scale::of(&series);
        let shares: f64 = histogram(&times, &scale).iter().sum();
        assert!((shares - 1.0).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(99.0)), (0.0, 1.0));
    }

    #[test]
    fn runs_of_one_length_can_be_drawn() {
        let series = [Series { name: String::new(), class: "one", times: &[2.0, 2.0] }];
        let mut page = String::new();
        runs(&mut page, &series, &Scale::of(&series));
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
