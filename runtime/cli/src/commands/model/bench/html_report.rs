//! The report of a benchmark as a page with plots.

use super::BenchmarkReport;
use crate::commands::model::html_page::{self, ColumnAlignment, escape_html, push_formatted};
use oarlock_report::statistics::TimeStatistics;
use oarlock_report::step_profile::ProfileRow;
use oarlock_report::text::format_milliseconds;

/// Size of a plot; the margins hold the axis labels on the left and below.
const PLOT_WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 200.0;
const PLOT_LEFT_MARGIN: f64 = 70.0;
const PLOT_BOTTOM_MARGIN: f64 = 30.0;
/// At most this many runs are drawn.
const MAX_POINTS: usize = 2000;
const HISTOGRAM_BINS: usize = 60;
/// Ops that get a bar.
const MAX_OPS: usize = 20;

/// The times of one runtime.
struct TimeSeries<'a> {
    name: String,
    class: &'static str,
    times: &'a [f64],
}

pub(super) fn render_benchmark(report: &BenchmarkReport) -> String {
    let mut body = String::new();
    let rows = |facts: Vec<(&'static str, String)>| -> Vec<Vec<String>> {
        facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
    };
    let two = [("", ColumnAlignment::Left), ("", ColumnAlignment::Left)];
    html_page::push_table(&mut body, &two, &rows(report.summary_lines()));
    let mut series =
        vec![TimeSeries { name: "Oarlock".to_owned(), class: "one", times: &report.measured.times }];
    if let Some(compared) = &report.compared {
        push_formatted(
            &mut body,
            format_args!("<h2>{}</h2>\n", escape_html(&compared.verdict_text(report.callers))),
        );
        html_page::push_table(&mut body, &two, &rows(compared.summary_lines()));
        series.push(TimeSeries { name: compared.peer_name(), class: "two", times: &compared.measured.times });
    }
    let scale = TimeScale::from_series(&series);
    body.push_str("<h2>Latency, run by run</h2>\n");
    draw_runs(&mut body, &series, &scale);
    body.push_str("<h2>Latency, how often</h2>\n");
    draw_distribution(&mut body, &series, &scale);
    body.push_str("<h2>What takes the time</h2>\n<p class=\"quiet\">Measured in runs of their own, in which every step is waited for.</p>\n");
    draw_op_bars(&mut body, &report.profile.ops);
    let number = |title| (title, ColumnAlignment::Right);
    let text = |title| (title, ColumnAlignment::Left);
    let titles =
        [text("op"), number("count"), number("time"), number("share"), number("GFLOP/s"), number("GB/s")];
    let op =
        |row: &ProfileRow| [vec![row.op.clone(), row.count.to_string()], row.rate_texts().to_vec()].concat();
    html_page::push_table(&mut body, &titles, &report.profile.ops.iter().map(op).collect::<Vec<_>>());
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
    let step = |row: &&ProfileRow| {
        let how = row.how.as_ref().or(row.kernel.as_ref()).cloned().unwrap_or_default();
        let names = [row.step_label(), row.op.clone(), row.device.clone(), how];
        [names.to_vec(), row.rate_texts().to_vec()].concat()
    };
    html_page::push_table(
        &mut body,
        &titles,
        &report.profile.slowest_steps().iter().map(step).collect::<Vec<_>>(),
    );
    if let Some(note) = report.profile.omission_note() {
        push_formatted(&mut body, format_args!("<p class=\"quiet\">{note}.</p>\n"));
    }
    html_page::render_page(&format!("Benchmark of {}", report.model), &body)
}

/// The range of times shown. A few very slow runs are cut off, since they would squeeze all others.
struct TimeScale {
    least: f64,
    most: f64,
}

impl TimeScale {
    fn from_series(series: &[TimeSeries<'_>]) -> Self {
        let all: Vec<TimeStatistics> =
            series.iter().filter_map(|series| TimeStatistics::from_times(series.times)).collect();
        let least = all.iter().map(|times| times.min).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(|times| times.p99 + (times.p99 - times.min) * 0.2).fold(0.0, f64::max);
        let least = if least.is_finite() { least } else { 0.0 };
        Self { least, most: most.max(least * 1.01).max(least + 1e-6) }
    }

    /// The position of a time from 0 to 1; outliers are clamped to the edge.
    fn relative_position(&self, time: f64) -> f64 {
        ((time - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }
}

fn open_plot(page: &mut String, height: f64) {
    let (width, height) = (PLOT_LEFT_MARGIN + PLOT_WIDTH + 50.0, height + PLOT_BOTTOM_MARGIN + 20.0);
    push_formatted(
        page,
        format_args!("<div class=\"wide\"><svg width=\"{width}\" height=\"{height}\" role=\"img\">\n"),
    );
}

fn draw_legend(page: &mut String, series: &[TimeSeries<'_>]) {
    for (index, TimeSeries { name, class, .. }) in series.iter().enumerate() {
        let x = PLOT_LEFT_MARGIN + 200.0 * index as f64;
        push_formatted(page, format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"8\" r=\"4\"/>"));
        push_formatted(page, format_args!("<text x=\"{}\" y=\"12\">{}</text>\n", x + 9.0, escape_html(name)));
    }
}

/// Draws a point for each run.
fn draw_runs(page: &mut String, series: &[TimeSeries<'_>], scale: &TimeScale) {
    open_plot(page, PLOT_HEIGHT);
    draw_legend(page, series);
    let y = |time: f64| 20.0 + PLOT_HEIGHT * (1.0 - scale.relative_position(time));
    for part in 0..=4 {
        let value = scale.least + (scale.most - scale.least) * f64::from(part) / 4.0;
        let (y, end) = (y(value), PLOT_LEFT_MARGIN + PLOT_WIDTH);
        push_formatted(
            page,
            format_args!(
                "<line class=\"axis\" x1=\"{PLOT_LEFT_MARGIN}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ),
        );
        let label = format_milliseconds(value);
        push_formatted(
            page,
            format_args!(
                "<text class=\"quiet\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>\n",
                PLOT_LEFT_MARGIN - 8.0,
                y + 4.0
            ),
        );
    }
    for TimeSeries { class, times, .. } in series {
        let step = times.len().div_ceil(MAX_POINTS).max(1);
        let last = times.len().saturating_sub(1).max(1) as f64;
        for (index, time) in times.iter().enumerate().step_by(step) {
            let x = PLOT_LEFT_MARGIN + PLOT_WIDTH * index as f64 / last;
            push_formatted(
                page,
                format_args!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"1.6\"/>", y(*time)),
            );
        }
    }
    page.push_str("</svg></div>\n");
}

/// Draws a histogram of the times.
fn draw_distribution(page: &mut String, series: &[TimeSeries<'_>], scale: &TimeScale) {
    open_plot(page, PLOT_HEIGHT);
    draw_legend(page, series);
    let bins: Vec<Vec<f64>> = series.iter().map(|series| histogram_shares(series.times, scale)).collect();
    let most = bins.iter().flatten().copied().fold(1e-9, f64::max);
    let width = PLOT_WIDTH / HISTOGRAM_BINS as f64;
    for (TimeSeries { class, .. }, bins) in series.iter().zip(&bins) {
        for (index, share) in bins.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let height = PLOT_HEIGHT * share / most;
            let (x, y) = (PLOT_LEFT_MARGIN + width * index as f64, 20.0 + PLOT_HEIGHT - height);
            push_formatted(
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
        let (x, y) = (PLOT_LEFT_MARGIN + PLOT_WIDTH * f64::from(part) / 4.0, PLOT_HEIGHT + 38.0);
        let label = format_milliseconds(value);
        push_formatted(
            page,
            format_args!(
                "<text class=\"quiet\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y}\">{label}</text>"
            ),
        );
    }
    page.push_str("</svg></div>\n");
}

/// The fraction of times in each bin.
fn histogram_shares(times: &[f64], scale: &TimeScale) -> Vec<f64> {
    let mut bins = vec![0.0; HISTOGRAM_BINS];
    for time in times {
        let bin = (scale.relative_position(*time) * HISTOGRAM_BINS as f64) as usize;
        bins[bin.min(HISTOGRAM_BINS - 1)] += 1.0 / times.len() as f64;
    }
    bins
}

/// Draws a bar for each op, scaled by its share.
fn draw_op_bars(page: &mut String, ops: &[ProfileRow]) {
    const ROW_HEIGHT: f64 = 22.0;
    const NAME_WIDTH: f64 = 190.0;
    let shown = &ops[..ops.len().min(MAX_OPS)];
    let longest = shown.iter().map(|row| row.share).fold(1e-9, f64::max);
    open_plot(page, ROW_HEIGHT * shown.len() as f64 - PLOT_BOTTOM_MARGIN);
    for (index, row) in shown.iter().enumerate() {
        let y = ROW_HEIGHT * index as f64;
        let width = (PLOT_WIDTH - NAME_WIDTH) * row.share / longest;
        let name = escape_html(&row.op);
        push_formatted(
            page,
            format_args!(
                "<text text-anchor=\"end\" x=\"{}\" y=\"{}\">{name}</text>",
                NAME_WIDTH - 8.0,
                y + 15.0
            ),
        );
        push_formatted(
            page,
            format_args!(
                "<rect class=\"one\" x=\"{NAME_WIDTH}\" y=\"{}\" width=\"{width:.1}\" height=\"16\"/>",
                y + 3.0
            ),
        );
        push_formatted(
            page,
            format_args!(
                "<text class=\"quiet\" x=\"{:.1}\" y=\"{}\">{}, {:.1} %</text>\n",
                NAME_WIDTH + width + 6.0,
                y + 15.0,
                format_milliseconds(row.ms),
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
        let series = [TimeSeries { name: String::new(), class: "one", times: &times }];
        let scale = TimeScale::from_series(&series);
        let shares: f64 = histogram_shares(&times, &scale).iter().sum();
        assert!((shares - 1.0).abs() < 1e-9);
        assert_eq!((scale.relative_position(0.0), scale.relative_position(99.0)), (0.0, 1.0));
    }

    #[test]
    fn runs_of_one_length_can_be_drawn() {
        let series = [TimeSeries { name: String::new(), class: "one", times: &[2.0, 2.0] }];
        let mut page = String::new();
        draw_runs(&mut page, &series, &TimeScale::from_series(&series));
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
