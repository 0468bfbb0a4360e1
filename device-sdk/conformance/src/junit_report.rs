//! The report in the XML of JUnit, which most systems for continuous integration show.

use crate::findings::{CheckOutcome, NumbersOutcome};
use crate::markup::EscapedMarkup;
use crate::report::ConformanceReport;

impl ConformanceReport {
    /// Renders the report as a JUnit file: a test case for each check, and one for each kernel and dtype.
    pub fn render_junit(&self) -> String {
        let checks = self.results.iter().map(|result| {
            let inner = match &result.outcome {
                CheckOutcome::Passed => String::new(),
                CheckOutcome::Failed(message) | CheckOutcome::NotRun(message) => element("failure", message),
                CheckOutcome::Unsupported(message) | CheckOutcome::ExpectedFailure(message) => {
                    element("skipped", message)
                }
            };
            let seconds = result.micros as f64 / 1e6;
            test_case(&result.profile, &format!("{} [{}]", result.name, result.rule), seconds, &inner)
        });
        let numbers = self.numbers.iter().map(|row| {
            let message = row.message.as_deref().unwrap_or_default();
            let inner = match row.outcome {
                NumbersOutcome::Passed => String::new(),
                NumbersOutcome::Failed => element("failure", message),
                NumbersOutcome::NoReference => element("skipped", "the suite has no reference"),
                NumbersOutcome::Refused | NumbersOutcome::ExpectedFailure => element("skipped", message),
            };
            test_case("numbers", &format!("{} {} {}", row.op, row.versions, row.dtype), 0.0, &inner)
        });
        let cases: Vec<String> = checks.chain(numbers).collect();
        let count = |kind: &str| cases.iter().filter(|case| case.contains(kind)).count();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{} {}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
            EscapedMarkup(&self.plugin),
            EscapedMarkup(&self.plugin_version),
            cases.len(),
            count("<failure "),
            count("<skipped "),
            cases.concat()
        )
    }
}

fn element(name: &str, message: &str) -> String {
    format!("<{name} message=\"{}\"/>", EscapedMarkup(message))
}

fn test_case(class: &str, name: &str, seconds: f64, inner: &str) -> String {
    let (class, name) = (EscapedMarkup(class), EscapedMarkup(name));
    format!("  <testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.6}\">{inner}</testcase>\n")
}
