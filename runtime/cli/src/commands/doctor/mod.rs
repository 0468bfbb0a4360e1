//! `oarlock doctor`: tries everything there is, and says what is wrong and what to do about it.

mod patience;
mod surroundings;
mod trial;
mod watched;

use oarlock_host::{Code, Device, Failure, LoadReport, Refusal, clean_text};
use serde_json::{Value, json, to_value};

use self::patience::{Cause, Checked};
use self::surroundings::Surroundings;
use self::trial::Fault;
pub(crate) use self::watched::watch;
use crate::Verdict;
use crate::arguments::Global;
use crate::messages::Messages;
use crate::output::{BAD, GOOD, NAME, NOTABLE, Output, QUIET};
use crate::problem::Problem;
use crate::render::{count, labelled, name_of, sentence};
use crate::session::{Session, is_wrong, options};

pub(crate) fn run(global: &Global, output: &mut Output) -> Verdict {
    let messages = Messages::new(global);
    let options = options(global, &messages)?;
    let surroundings = Surroundings::of(&options);
    let is_text = !global.json;
    if is_text {
        heading(output, "Environment");
        surroundings.print(output);
        // What was found out so far is worth reading even if a plugin takes this process down.
        output.flush();
    }
    let session = Session::with(&options, messages, global)?;
    if is_text {
        output.line("");
        heading(output, "Devices");
    }
    let mut examined = Vec::new();
    for device in session.host.devices() {
        output.flush();
        watched::tell(&format!("`{device}` was tried"));
        let device = Examined::of(&device, &session);
        if is_text {
            device.print(global.verbose > 0, output);
        }
        examined.push(device);
    }
    let report = session.host.report();
    let refused: Vec<&Refusal> = report.refused().collect();
    let verdict = Summary {
        devices: examined.len(),
        failing: examined.iter().filter(|device| !device.works()).count(),
        unused: refused.iter().filter(|refusal| is_wrong(refusal, report)).count(),
        notes: report.notes.len(),
    };
    if is_text {
        print_refused(&refused, report, output);
        print_notes(&report.notes, output);
        output.line("");
        let style = if verdict.is_well() { GOOD } else { BAD };
        let text = output.paint(style, &verdict.to_string());
        output.line(&text);
    } else {
        let value = json!({
            "well": verdict.is_well(),
            "verdict": verdict.to_string(),
            "environment": to_value(&surroundings).map_err(Problem::new)?,
            "devices": examined.iter().map(Examined::in_json).collect::<Vec<_>>(),
            "plugins": to_value(&report.plugins).map_err(Problem::new)?,
            "notes": report.notes,
        });
        super::print_json(output, &value)?;
    }
    Ok(verdict.is_well())
}

fn heading(output: &mut Output, text: &str) {
    let text = output.paint(NAME, text);
    output.line(&text);
}

/// Prints a fact, each of its values on a line of its own.
fn fact(output: &mut Output, what: &str, values: &[String]) {
    for (index, value) in values.iter().enumerate() {
        let what = output.paint(QUIET, &format!("{:<13}", if index == 0 { what } else { "" }));
        labelled(output, &format!("  {what}  "), 17, value);
    }
}

fn print_refused(refused: &[&Refusal], report: &LoadReport, output: &mut Output) {
    if refused.is_empty() {
        return;
    }
    output.line("");
    heading(output, "Plugins not used");
    for refusal in refused {
        let style = if is_wrong(refusal, report) { BAD } else { QUIET };
        let reason = output.paint(style, &name_of(&refusal.reason));
        output.line(&format!("  {reason}"));
        sentence(output, 4, &refusal.to_string());
    }
}

fn print_notes(notes: &[String], output: &mut Output) {
    if notes.is_empty() {
        return;
    }
    output.line("");
    heading(output, "Notes");
    notes.iter().for_each(|note| sentence(output, 2, note));
}

/// A device and what became of its trial.
struct Examined {
    device: String,
    plugin: String,
    /// The package to update when it does not work.
    package: String,
    checked: Vec<Checked>,
}

impl Examined {
    fn of(device: &Device, session: &Session) -> Self {
        let info = device.plugin().info();
        let checked = patience::try_device(device, session.host.plugins(), &session.messages);
        Self {
            device: device.to_string(),
            plugin: format!("{} {}", info.name, info.version),
            package: if info.package.is_empty() { info.name.clone() } else { info.package.clone() },
            checked,
        }
    }

    fn works(&self) -> bool {
        self.checked.iter().all(|checked| checked.outcome.is_ok())
    }

    fn print(&self, with_details: bool, output: &mut Output) {
        let works = self.works();
        let state = if works { output.paint(GOOD, "works") } else { output.paint(BAD, "fails") };
        let name = output.paint(NAME, &clean_text(&self.device));
        let description =
            self.checked.first().and_then(|first| first.outcome.as_deref().ok()).unwrap_or_default();
        let plugin = output.paint(QUIET, &self.plugin);
        let parts = [state, name, clean_text(description), plugin];
        let line: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        output.line(&format!("  {}", line.join("  ")));
        if works && !with_details {
            let steps: Vec<&str> = self.checked.iter().map(|checked| checked.step.name()).collect();
            sentence(output, 9, &steps.join(", "));
            return;
        }
        for checked in &self.checked {
            let step = checked.step.name();
            match &checked.outcome {
                Ok(found) => sentence(output, 9, &format!("{step}: {found}")),
                Err(cause) => {
                    sentence(output, 9, &format!("{step}: {}", cause.message()));
                    let hint = format!("         {}: ", output.paint(NOTABLE, "hint"));
                    labelled(output, &hint, 15, &cause.remedy(&self.package));
                }
            }
        }
    }

    fn in_json(&self) -> Value {
        let step = |checked: &Checked| match &checked.outcome {
            Ok(found) => json!({ "step": checked.step.name(), "ok": true, "found": found }),
            Err(cause) => json!({
                "step": checked.step.name(),
                "ok": false,
                "found": cause.message(),
                "remedy": cause.remedy(&self.package),
            }),
        };
        let steps: Vec<Value> = self.checked.iter().map(step).collect();
        json!({ "device": self.device, "plugin": self.plugin, "works": self.works(), "steps": steps })
    }
}

impl Cause {
    fn message(&self) -> String {
        match self {
            Self::Fault(Fault::Reported(failure)) => failure.to_string(),
            Self::Fault(Fault::WrongResult(found)) => found.clone(),
            Self::NoAnswer => {
                format!("expected an answer within {} s, found none", patience::LIMIT.as_secs())
            }
            Self::Died => "expected the trial to end, found that it did not".to_owned(),
        }
    }

    fn remedy(&self, package: &str) -> String {
        let of_failure = |failure: &Failure| {
            if failure.is_device_lost() {
                Some("see whether the device is still there, and start its driver or the machine again")
            } else if failure.code == Code::RESOURCE_EXHAUSTED {
                Some("end other programs that use the device, and try again")
            } else if failure.is_retryable() || failure.code == Code::UNAVAILABLE {
                Some("try again later")
            } else {
                None
            }
        };
        let known = match self {
            Self::Fault(Fault::Reported(failure)) => of_failure(failure),
            Self::NoAnswer => {
                Some("see what keeps the device busy, and start its driver or the machine again")
            }
            Self::Fault(Fault::WrongResult(_)) | Self::Died => None,
        };
        known.map_or_else(|| format!("update `{package}`, or tell its vendor"), str::to_owned)
    }
}

/// What it all comes to.
struct Summary {
    devices: usize,
    failing: usize,
    unused: usize,
    notes: usize,
}

impl Summary {
    fn is_well(&self) -> bool {
        self.devices > 0 && self.failing == 0 && self.unused == 0 && self.notes == 0
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_well() {
            return write!(f, "All is well: {}", count(self.devices, "device works", "devices work"));
        }
        let mut wrong = Vec::new();
        match (self.devices, self.failing) {
            (0, _) => wrong.push("there are no devices".to_owned()),
            (_, 0) => {}
            (devices, failing) => {
                wrong.push(format!(
                    "{failing} of {} {}",
                    count(devices, "device", "devices"),
                    if failing == 1 { "fails" } else { "fail" }
                ));
            }
        }
        if self.unused > 0 {
            wrong.push(format!("{} not used", count(self.unused, "plugin is", "plugins are")));
        }
        if self.notes > 0 {
            wrong.push(count(self.notes, "note above wants a look", "notes above want a look"));
        }
        write!(f, "Something is wrong: {}", wrong.join(", "))
    }
}
