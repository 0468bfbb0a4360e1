//! `oarlock plugins`: what became of every plugin that was found.

use oarlock_host::{LoadReport, LoadedPlugin, PluginReport, Refusal};

use crate::Verdict;
use crate::arguments::Global;
use crate::output::{NAME, NOTABLE, Output, QUIET};
use crate::render::{draft_list, labelled, name_of, origin, sentence};
use crate::session::Session;

pub(crate) fn run(global: &Global, output: &mut Output) -> Verdict {
    let session = Session::start(global)?;
    let report = session.host.report();
    if global.json {
        super::print_json(output, report)?;
    } else {
        print_all(report, output);
    }
    output.flush();
    Ok(session.mention_what_is_missing(global, false))
}

fn print_all(report: &LoadReport, output: &mut Output) {
    for (index, (plugin, loaded)) in report.loaded().enumerate() {
        if index > 0 {
            output.line("");
        }
        print_loaded(plugin, loaded, output);
    }
    let refused: Vec<&PluginReport> =
        report.plugins.iter().filter(|plugin| refusal_of(plugin).is_some()).collect();
    if !refused.is_empty() {
        let heading = output.paint(NAME, "Not used");
        output.line(&format!("\n{heading}"));
        refused.into_iter().for_each(|plugin| print_refused(plugin, output));
    }
}

fn refusal_of(plugin: &PluginReport) -> Option<&Refusal> {
    match &plugin.outcome {
        oarlock_host::Outcome::Refused(refusal) => Some(refusal),
        oarlock_host::Outcome::Loaded(_) => None,
    }
}

fn print_loaded(plugin: &PluginReport, loaded: &LoadedPlugin, output: &mut Output) {
    let info = &loaded.info;
    let name = output.paint(NAME, &format!("{} {}", info.name, info.version));
    output.line(&format!("{name}  {}", name_of(&info.kind)));
    let support = match info.support_note.as_str() {
        "" => info.support_level.to_string(),
        note => format!("{}, says the plugin: {note}", info.support_level),
    };
    let conformance = match &loaded.conformance {
        Some(run) => format!("{} on {}, by suite {}", run.passed.join(", "), run.date, run.suite),
        None => "not in a manifest; `oarlock plugin check` runs the suite".to_owned(),
    };
    let file = match plugin.origin {
        Some(from) => format!("{} ({})", plugin.file.display(), origin(from)),
        None => "built in".to_owned(),
    };
    let is_device = info.device_type.is_some();
    let devices = if loaded.devices.is_empty() { "none".to_owned() } else { loaded.devices.join(", ") };
    let facts = [
        ("devices", is_device.then_some(devices)),
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
            let what = output.paint(QUIET, &format!("{what:<11}"));
            labelled(output, &format!("    {what}  "), 17, &fact);
        }
    }
    print_notes(plugin, output);
}

fn print_refused(plugin: &PluginReport, output: &mut Output) {
    let Some(refusal) = refusal_of(plugin) else { return };
    let reason = output.paint(NOTABLE, &name_of(&refusal.reason));
    output.line(&format!("  {reason}"));
    sentence(output, 4, &refusal.to_string());
    print_notes(plugin, output);
}

fn print_notes(plugin: &PluginReport, output: &mut Output) {
    for note in &plugin.notes {
        sentence(output, 4, &format!("note: {note}"));
    }
}
