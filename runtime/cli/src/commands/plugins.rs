//! `oarlock plugins`: lists every plugin found and its outcome.

use oarlock_host::{LoadReport, LoadedPluginReport, PluginReport, Refusal};

use crate::CommandVerdict;
use crate::arguments::GlobalOptions;
use crate::output::{CommandOutput, NAME_STYLE, NOTABLE_STYLE, QUIET_STYLE};
use crate::render::{draft_list, json_name, origin_text, print_labeled, print_sentence};
use crate::session::HostSession;

pub(crate) fn list_plugins(global: &GlobalOptions, output: &mut CommandOutput) -> CommandVerdict {
    let session = HostSession::start_host(global)?;
    let report = session.host.report();
    if global.json {
        super::print_json(output, report)?;
    } else {
        print_plugins(report, output);
    }
    output.flush();
    Ok(session.warn_about_missing(global, false))
}

fn print_plugins(report: &LoadReport, output: &mut CommandOutput) {
    for (index, (plugin, loaded)) in report.loaded_plugins().enumerate() {
        if index > 0 {
            output.write_line("");
        }
        print_loaded(plugin, loaded, output);
    }
    let refused: Vec<&PluginReport> =
        report.plugins.iter().filter(|plugin| plugin_refusal(plugin).is_some()).collect();
    if !refused.is_empty() {
        let heading = output.paint_text(NAME_STYLE, "Not used");
        output.write_line(&format!("\n{heading}"));
        refused.into_iter().for_each(|plugin| print_refused(plugin, output));
    }
}

fn plugin_refusal(plugin: &PluginReport) -> Option<&Refusal> {
    match &plugin.outcome {
        oarlock_host::PluginOutcome::Refused(refusal) => Some(refusal),
        oarlock_host::PluginOutcome::Loaded(_) => None,
    }
}

fn print_loaded(plugin: &PluginReport, loaded: &LoadedPluginReport, output: &mut CommandOutput) {
    let info = &loaded.info;
    let name = output.paint_text(NAME_STYLE, &format!("{} {}", info.name, info.version));
    output.write_line(&format!("{name}  {}", json_name(&info.kind)));
    let support = match info.support_note.as_str() {
        "" => info.support_level.to_string(),
        note => format!("{}, says the plugin: {note}", info.support_level),
    };
    let conformance = match &loaded.conformance {
        Some(run) => {
            let (passed, report) = (run.passed.join(", "), run.report_sha256.to_string());
            // The first digits of a hash tell reports apart; the manifest has all of them.
            let report: String = report.trim_start_matches("sha256:").chars().take(8).collect();
            // A claim, which a signature makes that of a known vendor.
            let claim =
                if loaded.signed_by.is_some() { "says the signed manifest" } else { "says the manifest" };
            format!("{passed} on {}, by suite {}, report {report}…, {claim}", run.date, run.suite)
        }
        None => "not in a manifest; `oarlock plugin check` runs the suite".to_owned(),
    };
    let file = match plugin.origin {
        Some(from) => format!("{} ({})", plugin.file.display(), origin_text(from)),
        None => "built in".to_owned(),
    };
    let is_device = info.device_type.is_some();
    let devices = if loaded.devices.is_empty() { "none".to_owned() } else { loaded.devices.join(", ") };
    let facts = [
        ("devices", is_device.then_some(devices)),
        ("isolated", loaded.process.map(|number| format!("in process {number}"))),
        ("profiles", (!info.profiles.is_empty()).then(|| info.profiles.join(", "))),
        ("drafts", draft_list(info)),
        ("kernels", (info.kernel_count > 0).then(|| info.kernel_count.to_string())),
        ("layers", (!loaded.layers.is_empty()).then(|| loaded.layers.join(", "))),
        ("support", is_device.then_some(support)),
        ("conformance", plugin.origin.is_some().then_some(conformance)),
        ("from", Some(file)),
        ("signed by", loaded.signed_by.as_ref().map(|key| key.display().to_string())),
    ];
    for (what, fact) in facts {
        if let Some(fact) = fact {
            let what = output.paint_text(QUIET_STYLE, &format!("{what:<11}"));
            print_labeled(output, &format!("    {what}  "), 17, &fact);
        }
    }
    print_notes(plugin, output);
}

fn print_refused(plugin: &PluginReport, output: &mut CommandOutput) {
    let Some(refusal) = plugin_refusal(plugin) else { return };
    let reason = output.paint_text(NOTABLE_STYLE, &json_name(&refusal.reason));
    output.write_line(&format!("  {reason}"));
    print_sentence(output, 4, &refusal.to_string());
    print_notes(plugin, output);
}

fn print_notes(plugin: &PluginReport, output: &mut CommandOutput) {
    for note in &plugin.notes {
        print_sentence(output, 4, &format!("note: {note}"));
    }
}
