//! `oarlock doctor`: tries everything, and says what is wrong and what to do about it.

mod bisection;
mod computation;
mod concurrent_trial;
mod device_count;
mod diagnosis;
mod examination;
mod plugin_environment;
mod trial;
mod trial_fault;
mod trial_summary;
mod watchdog;

use oarlock_core::flags::Flags;
use oarlock_host::LoadReport;
use serde_json::{Value, json, to_value};

use self::concurrent_trial::ConcurrentTrial;
use self::device_count::count_devices;
use self::diagnosis::DeviceDiagnosis;
use self::examination::DeviceExamination;
use self::plugin_environment::PluginEnvironment;
use self::trial_summary::{DoctorSummary, WorkingDevices};
use crate::arguments::{DoctorArguments, GlobalOptions};
use crate::messages::PluginMessages;
use crate::output::{BAD_STYLE, CommandOutput, GOOD_STYLE, NAME_STYLE, QUIET_STYLE};
use crate::problem::CommandError;
use crate::render::{json_name, plugin_with_file, print_labeled, print_sentence};
use crate::session::{CoreSession, host_options};
use crate::{CommandVerdict, environment_flags, watched_child};

pub(crate) fn run_doctor(
    global: &GlobalOptions,
    call: &DoctorArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    if call.bisect {
        return bisection::bisect_plugins(global, output);
    }
    let messages = PluginMessages::new(global);
    let options = host_options(global, &messages)?;
    let mut flags = environment_flags::flags_from_environment()?;
    let surroundings = PluginEnvironment::new(&options, &flags);
    let is_text = !global.json;
    let chosen = take_device_flag(&mut flags)?;
    // Before anything is written: if a plugin takes the process along, the command is started again without it.
    let core = CoreSession::start_with_options(options, messages, flags);
    if is_text {
        print_heading(output, "Environment");
        surroundings.print_environment(output);
        // Findings so far are worth reading even if a plugin kills the process.
        output.flush();
    }
    let core = core?;
    if is_text {
        output.write_line("");
        print_heading(output, "Devices");
    }
    let mut show = |print: &dyn Fn(&mut CommandOutput)| {
        if is_text {
            print(output);
            output.flush();
        }
    };
    let devices = try_each_device(&core, &mut |device| {
        show(&|output| device.print_examination(global.verbose > 0, output));
    });
    if devices.is_empty() {
        show(&|output| print_sentence(output, 2, "none"));
    }
    let together =
        try_devices_together(&devices, &core, &mut |kind| show(&|output| kind.print_trial(output)));
    let report = core.runtime.host().report();
    let unknown = chosen.and_then(|name| core.runtime.device(&name).err());
    let unknown = unknown.map(|error| format!("the flag `device`: {error}"));
    let notes = report.notes.iter().cloned().chain(unknown).collect();
    let all = DoctorReport { surroundings, devices, together, report, notes };
    let summary = all.summarize();
    if is_text {
        all.print_rest(&summary, output);
    } else {
        super::print_json(output, &all.to_json(&summary)?)?;
    }
    // A plugin that kills the process while it shuts down must not take the findings with it.
    output.flush();
    Ok(summary.is_healthy())
}

/// Tries each device alone.
fn try_each_device(core: &CoreSession, show: &mut dyn FnMut(&DeviceExamination)) -> Vec<DeviceExamination> {
    let examine = |device: oarlock_host::PluginDevice| {
        watched_child::send_status(&format!("`{device}` of {} was tried", plugin_with_file(device.plugin())));
        let examined = DeviceExamination::examine_device(&device, core);
        show(&examined);
        examined
    };
    core.runtime.host().devices().into_iter().map(examine).collect()
}

/// Runs the working devices of one type concurrently, if there are several.
fn try_devices_together(
    devices: &[DeviceExamination],
    core: &CoreSession,
    show: &mut dyn FnMut(&ConcurrentTrial),
) -> Vec<ConcurrentTrial> {
    let examine = |kind: Vec<oarlock_core::Device>| {
        let (device_type, plugin) = (kind[0].device_type(), plugin_with_file(kind[0].host_device().plugin()));
        watched_child::send_status(&format!(
            "all `{device_type}` devices of {plugin} were tried at the same time"
        ));
        let together = ConcurrentTrial::run_concurrently(&kind, core);
        show(&together);
        together
    };
    group_working_devices(devices, core).into_iter().map(examine).collect()
}

struct DoctorReport<'a> {
    surroundings: PluginEnvironment,
    devices: Vec<DeviceExamination>,
    together: Vec<ConcurrentTrial>,
    report: &'a LoadReport,
    notes: Vec<String>,
}

impl DoctorReport<'_> {
    fn summarize(&self) -> DoctorSummary {
        let failing_together = self.together.iter().filter(|kind| !kind.is_working());
        DoctorSummary {
            devices: self.devices.len(),
            failing: self.devices.iter().filter(|device| !device.is_working()).count(),
            failing_together: failing_together
                .map(|kind| count_devices(kind.device_count(), &kind.device_type))
                .collect(),
            unused: self.report.refusals().filter(|refusal| self.report.is_fault(refusal)).count(),
            notes: self.notes.len(),
        }
    }

    /// Prints what was not already printed along the way.
    fn print_rest(&self, summary: &DoctorSummary, output: &mut CommandOutput) {
        print_refused(self.report, output);
        print_notes(&self.notes, output);
        output.write_line("");
        for works_well in WorkingDevices::from_trials(&self.devices, &self.together) {
            output.write_line(&works_well.to_string());
        }
        let style = if summary.is_healthy() { GOOD_STYLE } else { BAD_STYLE };
        let text = output.paint_text(style, &summary.to_string());
        output.write_line(&text);
    }

    fn to_json(&self, summary: &DoctorSummary) -> Result<Value, CommandError> {
        let works_well: Vec<Value> = WorkingDevices::from_trials(&self.devices, &self.together)
            .iter()
            .map(|kind| json!({ "device_type": kind.device_type, "count": kind.count }))
            .collect();
        Ok(json!({
            "well": summary.is_healthy(),
            "verdict": summary.to_string(),
            "works_well_on": works_well,
            "environment": to_value(&self.surroundings).map_err(CommandError::new)?,
            "devices": self.devices.iter().map(DeviceExamination::to_json).collect::<Vec<_>>(),
            "together": self.together.iter().map(ConcurrentTrial::to_json).collect::<Vec<_>>(),
            "plugins": to_value(&self.report.plugins).map_err(CommandError::new)?,
            "notes": self.notes,
        }))
    }
}

/// Removes the device from the flags: a missing device would keep the runtime from starting, and the doctor has to find out
/// why.
fn take_device_flag(flags: &mut Flags) -> Result<Option<String>, CommandError> {
    let chosen = flags.default_device();
    flags.set("device", "")?;
    Ok(chosen)
}

/// Working devices by type, for types with several of them.
fn group_working_devices(
    devices: &[DeviceExamination],
    core: &CoreSession,
) -> Vec<Vec<oarlock_core::Device>> {
    let works = |device: &&oarlock_core::Device| {
        devices.iter().any(|examined| examined.device == device.name() && examined.is_working())
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

fn print_heading(output: &mut CommandOutput, text: &str) {
    let text = output.paint_text(NAME_STYLE, text);
    output.write_line(&text);
}

/// Prints a label with one value per line.
fn print_fact(output: &mut CommandOutput, what: &str, values: &[String]) {
    for (index, value) in values.iter().enumerate() {
        let what = output.paint_text(QUIET_STYLE, &format!("{:<13}", if index == 0 { what } else { "" }));
        print_labeled(output, &format!("  {what}  "), 17, value);
    }
}

fn print_refused(report: &LoadReport, output: &mut CommandOutput) {
    for (index, refusal) in report.refusals().enumerate() {
        if index == 0 {
            output.write_line("");
            print_heading(output, "Plugins not used");
        }
        let style = if report.is_fault(refusal) { BAD_STYLE } else { QUIET_STYLE };
        let reason = output.paint_text(style, &json_name(&refusal.reason));
        output.write_line(&format!("  {reason}"));
        DeviceDiagnosis::from_refusal(refusal).print_diagnosis("", 4, output);
    }
}

fn print_notes(notes: &[String], output: &mut CommandOutput) {
    if notes.is_empty() {
        return;
    }
    output.write_line("");
    print_heading(output, "Notes");
    notes.iter().for_each(|note| print_sentence(output, 2, note));
}
