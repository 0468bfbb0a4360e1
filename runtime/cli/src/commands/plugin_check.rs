//! `oarlock plugin check`: takes one plugin through all steps of the host and explains each.
//!
//! The host makes every decision; this command only names the step. Steps after the first failure are not reached.

use std::path::Path;

use oarlock_conformance::{ConformanceExceptions, ConformanceReport, SuiteSettings};
use oarlock_host::{
    HOST_CONTRACT, JudgeContext, JudgedPlugin, LoadedPluginReport, PluginCandidate, PluginDevice, PluginInfo,
    PluginKind, PluginManifest, PluginOrigin, PluginOutcome, Refusal, RefusalReason, judge_candidate,
};
use serde_json::{json, to_value};

use super::conformance::{SuiteChild, SuiteOutcome, SuiteRequest};
use super::suite_report::{ReportFiles, print_failures, record_run};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, PluginCheckChoice};
use crate::messages::PluginMessages;
use crate::output::{BAD_STYLE, CommandOutput, GOOD_STYLE, QUIET_STYLE};
use crate::output_file;
use crate::problem::CommandError;
use crate::render::{json_name, print_labeled};
use crate::session::{ADAPTERS, HostSession, host_options, probe_command, unusable_file};

/// The steps, in the order in which the host takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CheckStep {
    Permissions,
    Configuration,
    Manifest,
    Machine,
    Elf,
    Trust,
    Promises,
    Symbols,
    Libraries,
    Probe,
    Load,
    Contract,
    Tables,
    Identity,
    Devices,
    Conformance,
}

const CHECK_STEPS: [(CheckStep, &str); 16] = [
    (CheckStep::Permissions, "permissions"),
    (CheckStep::Configuration, "configuration"),
    (CheckStep::Manifest, "manifest"),
    (CheckStep::Machine, "machine"),
    (CheckStep::Elf, "ELF"),
    (CheckStep::Trust, "trust"),
    (CheckStep::Promises, "promises"),
    (CheckStep::Symbols, "symbols"),
    (CheckStep::Libraries, "libraries"),
    (CheckStep::Probe, "probe"),
    (CheckStep::Load, "load"),
    (CheckStep::Contract, "contract"),
    (CheckStep::Tables, "tables"),
    (CheckStep::Identity, "identity"),
    (CheckStep::Devices, "devices"),
    (CheckStep::Conformance, "conformance"),
];

/// The phases of loading. The same refusal can mean another step in another phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadPhase {
    Judge,
    Probe,
    Start,
}

#[derive(Default)]
struct PluginInspection {
    judged: Option<JudgedPlugin>,
    info: Option<PluginInfo>,
    loaded: Option<LoadedPluginReport>,
    devices: Vec<String>,
    notes: Vec<String>,
    refused: Option<(CheckStep, Refusal)>,
    /// Outcome of the conformance suite, if it was run.
    finding: Option<SuiteOutcome>,
}

pub(crate) fn check_plugin(
    global: &GlobalOptions,
    wish: &PluginCheckChoice,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let files = ReportFiles {
        html: wish.html.as_deref(),
        junit: wish.junit.as_deref(),
        json: wish.report.as_deref(),
    };
    output_file::check_output_files(files.paths())?;
    let file = std::path::absolute(&wish.file).map_err(|error| unusable_file(&wish.file, &error))?;
    // Started before the plugin is loaded here, where it may spoil what a child inherits.
    let suite = if wish.quick { None } else { Some(SuiteChild::start_child(&file, global)?) };
    let mut walk = PluginInspection::check_file(&file, global)?;
    if let (Some(suite), None) = (suite, &walk.refused) {
        let request = walk.suite_request(global, wish);
        walk.finding = Some(suite.run_suite(&request, &mut walk.notes)?);
    }
    match walk.suite_report() {
        Some(report) => files.write_report(report)?,
        None if files.paths().next().is_some() => {
            walk.notes.push("there is no report to write, since the suite did not come to an end".to_owned());
        }
        None => {}
    }
    let is_well = walk.refused.is_none() && walk.is_conforming();
    if let (true, true, Some(report)) = (wish.record, is_well, walk.suite_report()) {
        let record = record_run(&file, report)?;
        walk.notes
            .push(format!("recorded in the manifest: {}, report {}", record.date, record.report_sha256));
    }
    if global.json {
        let step = |(step, name): &(CheckStep, &str)| {
            let (state, found) = walk.step_row(*step);
            json!({ "step": name, "state": state, "found": found })
        };
        let steps: Vec<_> = CHECK_STEPS.iter().map(step).collect();
        let refusal =
            to_value(walk.refused.as_ref().map(|(_, refusal)| refusal)).map_err(CommandError::new)?;
        let report = to_value(walk.suite_report()).map_err(CommandError::new)?;
        let value = json!({ "file": file.display().to_string(), "usable": walk.refused.is_none(), "steps": steps, "refusal": refusal,
            "conformance": report, "notes": walk.notes });
        super::print_json(output, &value)?;
        return Ok(is_well);
    }
    for (step, name) in CHECK_STEPS {
        let (state, found) = walk.step_row(step);
        let style = match state {
            "pass" => GOOD_STYLE,
            "fail" => BAD_STYLE,
            _ => QUIET_STYLE,
        };
        let state = output.paint_text(style, state);
        print_labeled(output, &format!("{state}  {name:<13}  "), 21, &found);
    }
    if let Some(report) = walk.suite_report() {
        print_failures(report, output);
    }
    for note in &walk.notes {
        print_labeled(output, "note: ", 6, note);
    }
    output.write_line("");
    let (style, verdict) = match &walk.refused {
        None if is_well => (GOOD_STYLE, "The plugin can be used here"),
        None => (BAD_STYLE, "The plugin can be used here, and does not conform to the contract"),
        Some(_) => (BAD_STYLE, "The plugin cannot be used here"),
    };
    let verdict = output.paint_text(style, verdict);
    output.write_line(&verdict);
    Ok(is_well)
}

impl PluginInspection {
    fn check_file(file: &Path, global: &GlobalOptions) -> Result<Self, CommandError> {
        let messages = PluginMessages::new(global);
        let mut options = host_options(global, &messages)?;
        options.paths = vec![file.to_path_buf()];
        let mut context = JudgeContext::new(&options.config, &options.environment, HOST_CONTRACT)?;
        context.adapters.clone_from(&options.adapters);
        let mut walk = Self::default();
        let judged = match judge_candidate(
            PluginCandidate { path: file.to_path_buf(), origin: PluginOrigin::Explicit },
            &context,
        ) {
            Ok(judged) => judged,
            Err(refusal) => return Ok(walk.with_refusal(LoadPhase::Judge, refusal)),
        };
        walk.notes.extend(judged.notes.iter().cloned());
        // The host trusts a manifest and skips the probe. Authors of a plugin still want to see the probe's result.
        let probed = options.probe_afresh(&judged, &probe_command());
        walk.judged = Some(judged);
        walk.notes.extend(probed.notes);
        match probed.verdict {
            Ok(info) => walk.info = Some(info),
            Err(refusal) => return Ok(walk.with_refusal(LoadPhase::Probe, refusal)),
        }
        let session = HostSession::start_with_options(&options, &messages, global)?;
        walk.start_plugin(file, &session)
    }

    fn start_plugin(mut self, file: &Path, session: &HostSession) -> Result<Self, CommandError> {
        let report = session.host.report().plugins.iter().find(|report| report.file == file);
        let report = report
            .ok_or_else(|| CommandError::new(format!("`{}`: the host did not find it", file.display())))?;
        self.notes.extend(
            report.notes.iter().filter(|note| !self.notes.contains(note)).cloned().collect::<Vec<_>>(),
        );
        match &report.outcome {
            PluginOutcome::Refused(refusal) => Ok(self.with_refusal(LoadPhase::Start, refusal.clone())),
            PluginOutcome::Loaded(loaded) => {
                let mine = |device: &&PluginDevice| device.plugin().info().name == loaded.info.name;
                self.devices =
                    session.host.devices().iter().filter(mine).map(PluginDevice::to_string).collect();
                self.loaded = Some(loaded.as_ref().clone());
                Ok(self)
            }
        }
    }

    fn with_refusal(mut self, part: LoadPhase, refusal: Refusal) -> Self {
        self.refused = Some((refusing_step(part, refusal.reason), refusal));
        self
    }

    /// What the child is to run: a layer needs a plugin to wrap, and kernels may need the device of another.
    fn suite_request(&self, global: &GlobalOptions, wish: &PluginCheckChoice) -> SuiteRequest {
        let layer = self.info.as_ref().filter(|info| info.kind == PluginKind::Layer);
        let manifest = self.judged.as_ref().and_then(|judged| judged.manifest.as_ref());
        let exceptions =
            manifest.map_or_else(ConformanceExceptions::default, |manifest| ConformanceExceptions {
                unsupported: manifest.unsupported.clone(),
                expected_failure: manifest.expected_failure.clone(),
            });
        SuiteRequest {
            plugins: global.plugins.clone(),
            layer: layer.map(|info| info.name.clone()),
            settings: SuiteSettings { profile: wish.profile.clone(), exceptions, ..SuiteSettings::default() },
        }
    }

    fn suite_report(&self) -> Option<&ConformanceReport> {
        match &self.finding {
            Some(SuiteOutcome::Report(report)) => Some(report),
            _ => None,
        }
    }

    fn is_conforming(&self) -> bool {
        match &self.finding {
            Some(SuiteOutcome::Report(report)) => report.has_passed(),
            Some(SuiteOutcome::Broken(_)) => false,
            Some(SuiteOutcome::NothingToCheck(_)) | None => true,
        }
    }

    /// The status of a step and its explanation.
    fn step_row(&self, step: CheckStep) -> (&'static str, String) {
        match &self.refused {
            None if step == CheckStep::Conformance => self.conformance_row(),
            Some((failed, refusal)) if *failed == step => {
                let Refusal { expected, found, remedy, reason, .. } = refusal;
                ("fail", format!("expected {expected}, found {found}; {remedy} ({})", json_name(reason)))
            }
            Some((failed, _)) if *failed < step => ("skip", "not reached".to_owned()),
            _ => ("pass", self.step_finding(step)),
        }
    }

    fn conformance_row(&self) -> (&'static str, String) {
        let report = match &self.finding {
            None => return ("skip", "left out".to_owned()),
            Some(SuiteOutcome::NothingToCheck(reason)) => return ("skip", reason.clone()),
            Some(SuiteOutcome::Broken(reason)) => return ("fail", reason.clone()),
            Some(SuiteOutcome::Report(report)) => report,
        };
        let number =
            |name: &str| report.results.iter().filter(|result| result.outcome.name() == name).count();
        let profiles: Vec<_> = report.profiles.iter().map(|profile| profile.name.as_str()).collect();
        let found = format!(
            "suite {} of {}: {} checks passed, {} failed, {} unsupported",
            report.suite,
            profiles.join(", "),
            number("passed"),
            number("failed") + number("not run"),
            number("unsupported")
        );
        (if report.has_passed() { "pass" } else { "fail" }, found)
    }

    fn step_finding(&self, step: CheckStep) -> String {
        let of_judged = |say: &dyn Fn(&JudgedPlugin) -> String| self.judged.as_ref().map(say);
        let of_info = |say: &dyn Fn(&PluginInfo) -> String| self.info.as_ref().map(say);
        let beside = |judged: &JudgedPlugin| {
            judged.manifest.as_ref().map(|_| PluginManifest::path_beside(&judged.candidate.path))
        };
        let found = match step {
            CheckStep::Permissions => Some("nobody else can write to the file".to_owned()),
            CheckStep::Configuration => Some("not disabled".to_owned()),
            CheckStep::Manifest => of_judged(&|judged| match beside(judged) {
                Some(path) => format!("`{}`", path.display()),
                None => "none, so the host has to probe".to_owned(),
            }),
            CheckStep::Machine => {
                of_judged(&|judged| match judged.manifest.as_ref().and_then(|manifest| manifest.isa.as_ref())
                {
                    Some(isa) => format!("has `{isa}`"),
                    None => "nothing in particular is needed of the processor".to_owned(),
                })
            }
            CheckStep::Elf => of_judged(&|judged| format!("a shared object, sha256 {}", judged.digest)),
            CheckStep::Trust => of_judged(&|judged| match &judged.signed_by {
                Some(key) => format!("signed with the key `{}`", key.display()),
                None => "no signature, and none is asked for".to_owned(),
            }),
            CheckStep::Promises => of_judged(&|judged| match &judged.manifest {
                Some(manifest) if manifest.sha256.is_some() => "the hash is that of the manifest".to_owned(),
                _ => "none made about the file".to_owned(),
            }),
            CheckStep::Symbols => of_judged(&|judged| match ADAPTERS
                .iter()
                .find(|adapter| adapter.recognizes_file(&judged.elf))
            {
                Some(adapter) => {
                    format!("`{}` of another program, for which there is an adapter", adapter.entry)
                }
                None => format!("`{}` and nothing else", oarlock_host::ENTRY_SYMBOL),
            }),
            CheckStep::Libraries => of_judged(&|judged| match judged.elf.links.needed.as_slice() {
                [] => "none needed".to_owned(),
                needed => needed.join(", "),
            }),
            CheckStep::Probe => {
                Some("it answers, and its devices are readied, in a process of its own".to_owned())
            }
            CheckStep::Load => Some("the dynamic linker takes it".to_owned()),
            CheckStep::Contract => {
                of_info(&|info| format!("{}, this host speaks {HOST_CONTRACT}", info.contract))
            }
            CheckStep::Tables => of_info(&|info| {
                let kernels = oarlock_report::text::format_count(info.kernel_count, "kernel", "kernels");
                let profiles = (!info.profiles.is_empty()).then(|| info.profiles.join(", "));
                let drafts = crate::render::draft_list(info).map(|drafts| format!("drafts: {drafts}"));
                profiles.into_iter().chain(drafts).chain([kernels]).collect::<Vec<_>>().join("; ")
            }),
            CheckStep::Identity => {
                of_info(&|info| format!("{} {}, {}", info.name, info.version, json_name(&info.kind)))
            }
            CheckStep::Devices => Some(match self.devices.as_slice() {
                [] => "none".to_owned(),
                devices => devices.join(", "),
            }),
            CheckStep::Conformance => None,
        };
        // After a refusal, only the failing step is known.
        found.unwrap_or_else(|| "nothing speaks against it".to_owned())
    }
}

/// Maps a refusal to the step where the host makes it.
fn refusing_step(part: LoadPhase, reason: RefusalReason) -> CheckStep {
    match (part, reason) {
        (_, RefusalReason::Unreadable | RefusalReason::SymlinkLoop | RefusalReason::WritableByOthers) => {
            CheckStep::Permissions
        }
        (LoadPhase::Judge, RefusalReason::Disabled) => CheckStep::Configuration,
        (LoadPhase::Judge, RefusalReason::ManifestInvalid | RefusalReason::ContractVersion) => {
            CheckStep::Manifest
        }
        (LoadPhase::Judge, RefusalReason::WrongArchitecture | RefusalReason::IsaUnsupported) => {
            CheckStep::Machine
        }
        (
            LoadPhase::Judge,
            RefusalReason::NotAllowed
            | RefusalReason::SignatureMissing
            | RefusalReason::SignatureInvalid
            | RefusalReason::KeyRevoked
            | RefusalReason::FileNotSigned,
        ) => CheckStep::Trust,
        (LoadPhase::Judge, RefusalReason::HashMismatch | RefusalReason::ManifestLies) => CheckStep::Promises,
        (
            LoadPhase::Judge,
            RefusalReason::SymbolLeak
            | RefusalReason::HostSymbolImported
            | RefusalReason::EntryMissing
            | RefusalReason::PartOfPlugin,
        ) => CheckStep::Symbols,
        (
            LoadPhase::Judge,
            RefusalReason::SanitizerMismatch | RefusalReason::SonameMissing | RefusalReason::UnsafeSearchPath,
        ) => CheckStep::Libraries,
        (LoadPhase::Judge, _) => CheckStep::Elf,
        (
            LoadPhase::Probe,
            RefusalReason::ProbeCrashed | RefusalReason::ProbeTimedOut | RefusalReason::ProbeFailed,
        ) => CheckStep::Probe,
        (LoadPhase::Probe, RefusalReason::ContractVersion) => CheckStep::Contract,
        (
            LoadPhase::Probe,
            RefusalReason::ContractBroken | RefusalReason::SlotMissing | RefusalReason::BadName,
        ) => CheckStep::Tables,
        (LoadPhase::Probe, _) => CheckStep::Load,
        (
            LoadPhase::Start,
            RefusalReason::Duplicate | RefusalReason::ManifestLies | RefusalReason::Disabled,
        ) => CheckStep::Identity,
        (LoadPhase::Start, _) => CheckStep::Devices,
    }
}
