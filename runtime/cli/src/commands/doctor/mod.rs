//! `oarlock doctor`: tries everything there is, and says what is wrong and what to do about it.

mod cause;
mod computation;
mod examined;
mod patience;
mod surroundings;
mod together;
mod trial;
mod verdict;

use oarlock_core::flags::Flags;
use oarlock_host::LoadReport;
use serde_json::{Value, json, to_value};

use self::cause::Finding;
use self::examined::Examined;
use self::surroundings::Surroundings;
use self::together::Together;
use self::verdict::{Summary, WorksWell, several};
use crate::arguments::Global;
use crate::messages::Messages;
use crate::output::{BAD, GOOD, NAME, Output, QUIET};
use crate::problem::Problem;
use crate::render::{labelled, name_of, named, sentence};
use crate::session::{Core, options};
use crate::{Verdict, variables, watched};

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
    let mut flags = variables::flags()?;
    let chosen = without_device(&mut flags)?;
    let core = Core::with(options, messages, flags)?;
    if is_text {
        output.line("");
        heading(output, "Devices");
    }
    let mut show = |print: &dyn Fn(&mut Output)| {
        if is_text {
            print(output);
            output.flush();
        }
    };
    let devices = try_each(&core, &mut |device| show(&|output| device.print(global.verbose > 0, output)));
    if devices.is_empty() {
        show(&|output| sentence(output, 2, "none"));
    }
    let together = try_together(&devices, &core, &mut |kind| show(&|output| kind.print(output)));
    watched::tell("the plugins were ended");
    let report = core.runtime.host().report();
    let unknown = chosen.and_then(|name| core.runtime.device(&name).err());
    let unknown = unknown.map(|error| format!("the flag `device`: {error}"));
    let notes = report.notes.iter().cloned().chain(unknown).collect();
    let all = Found { surroundings, devices, together, report, notes };
    let summary = all.summary();
    if is_text {
        all.print_rest(&summary, output);
    } else {
        super::print_json(output, &all.in_json(&summary)?)?;
    }
    // A plugin that takes the process down at its end takes no finding with it.
    output.flush();
    Ok(summary.is_well())
}

/// Tries every device by itself.
fn try_each(core: &Core, show: &mut dyn FnMut(&Examined)) -> Vec<Examined> {
    let examine = |device: oarlock_host::Device| {
        watched::tell(&format!("`{device}` of {} was tried", named(device.plugin())));
        let examined = Examined::of(&device, core);
        show(&examined);
        examined
    };
    core.runtime.host().devices().into_iter().map(examine).collect()
}

/// Tries those that work at the same time, where there are several of a type.
fn try_together(devices: &[Examined], core: &Core, show: &mut dyn FnMut(&Together)) -> Vec<Together> {
    let examine = |kind: Vec<oarlock_core::Device>| {
        let (device_type, plugin) = (kind[0].device_type(), named(kind[0].host_device().plugin()));
        watched::tell(&format!("all `{device_type}` devices of {plugin} were tried at the same time"));
        let together = Together::of(&kind, core);
        show(&together);
        together
    };
    kinds(devices, core).into_iter().map(examine).collect()
}

/// Everything that was found out.
struct Found<'a> {
    surroundings: Surroundings,
    devices: Vec<Examined>,
    together: Vec<Together>,
    report: &'a LoadReport,
    notes: Vec<String>,
}

impl Found<'_> {
    fn summary(&self) -> Summary {
        let failing_together = self.together.iter().filter(|kind| !kind.works());
        Summary {
            devices: self.devices.len(),
            failing: self.devices.iter().filter(|device| !device.works()).count(),
            failing_together: failing_together.map(|kind| several(kind.count(), &kind.device_type)).collect(),
            unused: self.report.refused().filter(|refusal| self.report.is_wrong(refusal)).count(),
            notes: self.notes.len(),
        }
    }

    /// Prints what was not shown while it was found out.
    fn print_rest(&self, summary: &Summary, output: &mut Output) {
        print_refused(self.report, output);
        print_notes(&self.notes, output);
        output.line("");
        for works_well in WorksWell::all(&self.devices, &self.together) {
            output.line(&works_well.to_string());
        }
        let style = if summary.is_well() { GOOD } else { BAD };
        let text = output.paint(style, &summary.to_string());
        output.line(&text);
    }

    fn in_json(&self, summary: &Summary) -> Result<Value, Problem> {
        let works_well: Vec<Value> = WorksWell::all(&self.devices, &self.together)
            .iter()
            .map(|kind| json!({ "device_type": kind.device_type, "count": kind.count }))
            .collect();
        Ok(json!({
            "well": summary.is_well(),
            "verdict": summary.to_string(),
            "works_well_on": works_well,
            "environment": to_value(&self.surroundings).map_err(Problem::new)?,
            "devices": self.devices.iter().map(Examined::in_json).collect::<Vec<_>>(),
            "together": self.together.iter().map(Together::in_json).collect::<Vec<_>>(),
            "plugins": to_value(&self.report.plugins).map_err(Problem::new)?,
            "notes": self.notes,
        }))
    }
}

/// Takes the device out of the flags: one that is not there keeps a runtime from starting, and here it is found out why.
fn without_device(flags: &mut Flags) -> Result<Option<String>, Problem> {
    let chosen = flags.device();
    flags.set("device", "")?;
    Ok(chosen)
}

/// The devices that work, by type, where there are several of one.
fn kinds(devices: &[Examined], core: &Core) -> Vec<Vec<oarlock_core::Device>> {
    let works = |device: &&oarlock_core::Device| {
        devices.iter().any(|examined| examined.device == device.name() && examined.works())
    };
    let mut kinds: Vec<Vec<oarlock_core::Device>> = Vec::new();
    for device in core.runtime.devices().iter().filter(works) {
        match kinds.iter_mut().find(|kind| kind[0].device_type() == device.device_type()) {
            Some(kind) => kind.push(device.clone()),
            None => kinds.push(vec![device.clone()]),
        }
    }
    kinds.retain(|kind| kind.len() > 1);
    kinds
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

fn print_refused(report: &LoadReport, output: &mut Output) {
    for (index, refusal) in report.refused().enumerate() {
        if index == 0 {
            output.line("");
            heading(output, "Plugins not used");
        }
        let style = if report.is_wrong(refusal) { BAD } else { QUIET };
        let reason = output.paint(style, &name_of(&refusal.reason));
        output.line(&format!("  {reason}"));
        Finding::of_refusal(refusal).print("", 4, output);
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
