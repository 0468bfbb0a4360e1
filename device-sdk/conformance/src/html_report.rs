//! The report as a self-contained HTML page.

use crate::findings::{CheckResult, SpeedMeasurement};
use crate::heat_map::render_heat_map;
use crate::markup::EscapedMarkup;
use crate::report::ConformanceReport;

const STYLE: &str = include_str!("report.css");

impl ConformanceReport {
    /// Renders the report as an HTML page. The page loads nothing from elsewhere.
    pub fn render_html(&self) -> String {
        let Self { suite, contract, plugin, plugin_version, .. } = self;
        let (plugin, version) = (EscapedMarkup(plugin), EscapedMarkup(plugin_version));
        let verdict = verdict_class(self.has_passed());
        let devices: Vec<String> = self.devices.iter().map(u32::to_string).collect();
        let devices = if devices.is_empty() { "no device".to_owned() } else { devices.join(", ") };
        let numbers = render_heat_map(&self.numbers);
        let measured = self.render_measurements();
        let sections: String =
            self.profiles.iter().map(|profile| self.render_section(&profile.name, profile.passed)).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>Conformance of {plugin} {version}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{plugin} {version}</h1>\n\
             <p class=\"about\">Oarlock conformance suite {suite}, contract {contract}; devices: {devices}</p>\n\
             <p class=\"verdict {verdict}\">conformance: {verdict}</p>\n{sections}{numbers}{measured}</main>\n</body>\n</html>\n"
        )
    }

    /// Figures for information, which pass and fail nothing.
    fn render_measurements(&self) -> String {
        if self.measurements.is_empty() {
            return String::new();
        }
        let row = |figure: &SpeedMeasurement| {
            format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", figure.name, figure.text())
        };
        let rows: String = self.measurements.iter().map(row).collect();
        format!(
            "<section>\n<h2>Speed <small>for information, of this run on this machine</small></h2>\n\
             <div class=\"map\"><table>\n{rows}</table></div>\n</section>\n"
        )
    }

    fn render_section(&self, profile: &str, passed: bool) -> String {
        let rows: String = self.results_for_profile(profile).map(render_row).collect();
        let (verdict, counts, profile) =
            (verdict_class(passed), self.outcome_counts(profile), EscapedMarkup(profile));
        format!(
            "<section>\n<h2>{profile} <span class=\"{verdict}\">{verdict}</span> <small>{counts}</small></h2>\n\
             <ul>\n{rows}</ul>\n</section>\n"
        )
    }
}

fn verdict_class(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

fn render_row(result: &CheckResult) -> String {
    let outcome = result.outcome.name();
    let class = outcome.replace(' ', "-");
    let row_class = if class == "failed" { " class=\"failed\"" } else { "" };
    let (name, rule) = (EscapedMarkup(&result.name), EscapedMarkup(&result.rule));
    let message = result.outcome.message();
    let message = message.map_or(String::new(), |message| format!("<p>{}</p>", EscapedMarkup(message)));
    format!(
        "<li{row_class}><b class=\"{class}\">{outcome}</b><span>{name}</span><code>{rule}</code>{message}</li>\n"
    )
}

#[cfg(test)]
mod tests {
    use crate::findings::{CheckOutcome, CheckResult};
    use crate::report::{ConformanceReport, ProfileResult};

    fn sample_report(message: &str) -> ConformanceReport {
        ConformanceReport {
            suite: "1.0".into(),
            contract: "1.0".into(),
            plugin: "acme".into(),
            plugin_version: "1.4.2".into(),
            devices: vec![4],
            profiles: vec![ProfileResult { name: "core".into(), passed: false }],
            results: vec![CheckResult {
                name: "what goes in comes out".into(),
                rule: "M-5".into(),
                profile: "core".into(),
                outcome: CheckOutcome::Failed(message.into()),
                micros: 7,
            }],
            numbers: Vec::new(),
            measurements: Vec::new(),
        }
    }

    #[test]
    fn a_page_shows_what_failed_and_loads_nothing() {
        let page = sample_report("expected 1, found 2").render_html();
        assert!(
            page.contains("conformance: failed") && page.contains("<p>expected 1, found 2</p>"),
            "{page}"
        );
        for loader in ["http", "src=", "<script", "@import", "url("] {
            assert!(!page.contains(loader), "{loader}");
        }
    }

    #[test]
    fn what_a_plugin_says_cannot_become_part_of_the_page() {
        let page = sample_report("<script>alert('&')</script>").render_html();
        assert!(page.contains("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"), "{page}");
    }

    #[test]
    fn a_report_survives_the_way_through_json() {
        let report = sample_report("why");
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.contains(r#""outcome":"failed","message":"why""#), "{json}");
        assert_eq!(serde_json::from_str::<ConformanceReport>(&json).unwrap(), report);
    }

    #[test]
    fn text_has_a_line_for_each_check_and_the_verdict_of_each_profile() {
        let text = sample_report("why").render_text();
        assert!(text.contains("core: failed (1 failed)"), "{text}");
        assert!(text.contains("failed       what goes in comes out  [M-5]\n               why"), "{text}");
    }
}
