//! `oarlock plugin check`: takes one plugin along the way of the host and explains each step.
//!
//! The host decides; this command says at which step it did. Steps after the first that fails are not reached.

use std::path::Path;

use oarlock_conformance::{CheckResult, Outcome as CheckOutcome, Report};
use oarlock_host::{
    Candidate, Device, HOST_CONTRACT, JudgeContext, Judged, LoadedPlugin, Manifest, Origin, Outcome,
    PROBE_TIMEOUT, PluginInfo, Reason, Refusal, judge, probe,
};
use serde_json::{json, to_value};

use super::conformance::{self, Finding};
use crate::Verdict;
use crate::arguments::Global;
use crate::messages::Messages;
use crate::output::{BAD, GOOD, Output, QUIET};
use crate::problem::Problem;
use crate::render::{labelled, name_of};
use crate::session::{Session, options, probe_command, unusable};
use crate::target;

/// The steps, in the order of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
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

const STEPS: [(Step, &str); 16] = [
    (Step::Permissions, "permissions"),
    (Step::Configuration, "configuration"),
    (Step::Manifest, "manifest"),
    (Step::Machine, "machine"),
    (Step::Elf, "ELF"),
    (Step::Trust, "trust"),
    (Step::Promises, "promises"),
    (Step::Symbols, "symbols"),
    (Step::Libraries, "libraries"),
    (Step::Probe, "probe"),
    (Step::Load, "load"),
    (Step::Contract, "contract"),
    (Step::Tables, "tables"),
    (Step::Identity, "identity"),
    (Step::Devices, "devices"),
    (Step::Conformance, "conformance"),
];

/// The parts of the way, in each of which one reason may mean another step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Judge,
    Probe,
    Start,
}

/// What was found out on the way.
#[derive(Default)]
struct Walk {
    judged: Option<Judged>,
    info: Option<PluginInfo>,
    loaded: Option<LoadedPlugin>,
    devices: Vec<String>,
    notes: Vec<String>,
    refused: Option<(Step, Refusal)>,
    /// What the conformance suite found, if it was to run.
    finding: Option<Finding>,
}

/// What the user wants to know of which plugin.
pub(crate) struct Wish<'a> {
    pub(crate) file: &'a Path,
    /// Whether to leave the conformance suite out.
    pub(crate) quick: bool,
    /// Where to write its report as a page.
    pub(crate) html: Option<&'a Path>,
}

pub(crate) fn run(global: &Global, wish: &Wish<'_>, output: &mut Output) -> Verdict {
    target::check(wish.html)?;
    let file = std::path::absolute(wish.file).map_err(|error| unusable(wish.file, &error))?;
    let mut walk = Walk::along(&file, global)?;
    if walk.refused.is_none() && !wish.quick {
        walk.finding = Some(conformance::run(&file, global, &mut walk.notes)?);
    }
    if let (Some(page), Some(report)) = (wish.html, walk.report()) {
        target::write_text(page, &report.render_html())?;
    }
    let is_well = walk.refused.is_none() && walk.conforms();
    if global.json {
        let step = |(step, name): &(Step, &str)| {
            let (state, found) = walk.row(*step);
            json!({ "step": name, "state": state, "found": found })
        };
        let steps: Vec<_> = STEPS.iter().map(step).collect();
        let refusal = to_value(walk.refused.as_ref().map(|(_, refusal)| refusal)).map_err(Problem::new)?;
        let report = to_value(walk.report()).map_err(Problem::new)?;
        let value = json!({ "file": file.display().to_string(), "usable": walk.refused.is_none(), "steps": steps, "refusal": refusal,
            "conformance": report, "notes": walk.notes });
        super::print_json(output, &value)?;
        return Ok(is_well);
    }
    for (step, name) in STEPS {
        let (state, found) = walk.row(step);
        let style = match state {
            "pass" => GOOD,
            "fail" => BAD,
            _ => QUIET,
        };
        let state = output.paint(style, state);
        labelled(output, &format!("{state}  {name:<13}  "), 21, &found);
    }
    for (check, message) in walk.report().into_iter().flat_map(failures) {
        labelled(output, &format!("      {:<21}", check.rule), 27, &format!("{}: {message}", check.name));
    }
    for note in &walk.notes {
        labelled(output, "note: ", 6, note);
    }
    output.line("");
    let (style, verdict) = match &walk.refused {
        None if is_well => (GOOD, "The plugin can be used here"),
        None => (BAD, "The plugin can be used here, and does not conform to the contract"),
        Some(_) => (BAD, "The plugin cannot be used here"),
    };
    let verdict = output.paint(style, verdict);
    output.line(&verdict);
    Ok(is_well)
}

impl Walk {
    fn along(file: &Path, global: &Global) -> Result<Self, Problem> {
        let messages = Messages::new(global);
        let mut options = options(global, &messages)?;
        options.paths = vec![file.to_path_buf()];
        let context = JudgeContext::new(&options.config, &options.environment, HOST_CONTRACT)?;
        let mut walk = Self::default();
        let judged = match judge(Candidate { path: file.to_path_buf(), origin: Origin::Explicit }, &context) {
            Ok(judged) => judged,
            Err(refusal) => return Ok(walk.refuse(Part::Judge, refusal)),
        };
        let real_path = judged.real_path.clone();
        walk.notes.extend(judged.notes.iter().cloned());
        walk.judged = Some(judged);
        // The host trusts a manifest and does not probe; whoever makes a plugin wants to know how it fares all the same.
        let timeout =
            options.config.plugins.probe_timeout_ms.map_or(PROBE_TIMEOUT, std::time::Duration::from_millis);
        let probed = probe(&probe_command(), &real_path, &options.config.options, timeout);
        walk.notes.extend(probed.notes);
        match probed.verdict {
            Ok(info) => walk.info = Some(info),
            Err(refusal) => return Ok(walk.refuse(Part::Probe, refusal)),
        }
        let session = Session::with(&options, messages, global)?;
        walk.start(file, &session)
    }

    fn start(mut self, file: &Path, session: &Session) -> Result<Self, Problem> {
        let report = session.host.report().plugins.iter().find(|report| report.file == file);
        let report =
            report.ok_or_else(|| Problem::new(format!("`{}`: the host did not find it", file.display())))?;
        self.notes.extend(
            report.notes.iter().filter(|note| !self.notes.contains(note)).cloned().collect::<Vec<_>>(),
        );
        match &report.outcome {
            Outcome::Refused(refusal) => Ok(self.refuse(Part::Start, refusal.clone())),
            Outcome::Loaded(loaded) => {
                let mine = |device: &&Device| device.plugin().info().name == loaded.info.name;
                self.devices = session.host.devices().iter().filter(mine).map(Device::to_string).collect();
                self.loaded = Some(loaded.as_ref().clone());
                Ok(self)
            }
        }
    }

    fn refuse(mut self, part: Part, refusal: Refusal) -> Self {
        self.refused = Some((step_of(part, refusal.reason), refusal));
        self
    }

    /// The report of the conformance suite, if there is one.
    fn report(&self) -> Option<&Report> {
        match &self.finding {
            Some(Finding::Report(report)) => Some(report),
            _ => None,
        }
    }

    fn conforms(&self) -> bool {
        match &self.finding {
            Some(Finding::Report(report)) => report.passed(),
            Some(Finding::Broken(_)) => false,
            Some(Finding::NothingToCheck) | None => true,
        }
    }

    /// How a step went, and what there is to say about it.
    fn row(&self, step: Step) -> (&'static str, String) {
        match &self.refused {
            None if step == Step::Conformance => self.conformance_row(),
            Some((failed, refusal)) if *failed == step => {
                let Refusal { expected, found, remedy, reason, .. } = refusal;
                ("fail", format!("expected {expected}, found {found}; {remedy} ({})", name_of(reason)))
            }
            Some((failed, _)) if *failed < step => ("skip", "not reached".to_owned()),
            _ => ("pass", self.found(step)),
        }
    }

    fn conformance_row(&self) -> (&'static str, String) {
        let report = match &self.finding {
            None => return ("skip", "left out".to_owned()),
            Some(Finding::NothingToCheck) => {
                return ("skip", "the suite has checks for devices only".to_owned());
            }
            Some(Finding::Broken(reason)) => return ("fail", reason.clone()),
            Some(Finding::Report(report)) => report,
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
        (if report.passed() { "pass" } else { "fail" }, found)
    }

    fn found(&self, step: Step) -> String {
        let of_judged = |say: &dyn Fn(&Judged) -> String| self.judged.as_ref().map(say);
        let of_info = |say: &dyn Fn(&PluginInfo) -> String| self.info.as_ref().map(say);
        let beside =
            |judged: &Judged| judged.manifest.as_ref().map(|_| Manifest::path_beside(&judged.candidate.path));
        let found = match step {
            Step::Permissions => Some("nobody else can write to the file".to_owned()),
            Step::Configuration => Some("not disabled".to_owned()),
            Step::Manifest => of_judged(&|judged| match beside(judged) {
                Some(path) => format!("`{}`", path.display()),
                None => "none, so the host has to probe".to_owned(),
            }),
            Step::Machine => {
                of_judged(&|judged| match judged.manifest.as_ref().and_then(|manifest| manifest.isa.as_ref())
                {
                    Some(isa) => format!("has `{isa}`"),
                    None => "nothing in particular is needed of the processor".to_owned(),
                })
            }
            Step::Elf => of_judged(&|judged| format!("a shared object, sha256 {}", judged.digest)),
            Step::Trust => of_judged(&|judged| match &judged.signed_by {
                Some(key) => format!("signed with the key `{}`", key.display()),
                None => "no signature, and none is asked for".to_owned(),
            }),
            Step::Promises => of_judged(&|judged| match &judged.manifest {
                Some(manifest) if manifest.sha256.is_some() => "the hash is that of the manifest".to_owned(),
                _ => "none made about the file".to_owned(),
            }),
            Step::Symbols => Some(format!("`{}` and nothing else", oarlock_host::ENTRY)),
            Step::Libraries => of_judged(&|judged| match judged.elf.links.needed.as_slice() {
                [] => "none needed".to_owned(),
                needed => needed.join(", "),
            }),
            Step::Probe => {
                Some("it answers, and its devices are readied, in a process of its own".to_owned())
            }
            Step::Load => Some("the dynamic linker takes it".to_owned()),
            Step::Contract => of_info(&|info| format!("{}, this host speaks {HOST_CONTRACT}", info.contract)),
            Step::Tables => of_info(&|info| {
                let kernels = crate::render::count(info.kernel_count, "kernel", "kernels");
                let profiles = (!info.profiles.is_empty()).then(|| info.profiles.join(", "));
                let drafts = crate::render::draft_list(info).map(|drafts| format!("drafts: {drafts}"));
                profiles.into_iter().chain(drafts).chain([kernels]).collect::<Vec<_>>().join("; ")
            }),
            Step::Identity => {
                of_info(&|info| format!("{} {}, {}", info.name, info.version, name_of(&info.kind)))
            }
            Step::Devices => Some(match self.devices.as_slice() {
                [] => "none".to_owned(),
                devices => devices.join(", "),
            }),
            Step::Conformance => None,
        };
        // Of a file that was refused nothing more is known than at which step.
        found.unwrap_or_else(|| "nothing speaks against it".to_owned())
    }
}

/// The checks that failed or could not be run, with what they say.
fn failures(report: &Report) -> impl Iterator<Item = (&CheckResult, &str)> {
    report.results.iter().filter_map(|result| match &result.outcome {
        CheckOutcome::Failed(message) | CheckOutcome::NotRun(message) => Some((result, message.as_str())),
        CheckOutcome::Passed | CheckOutcome::Unsupported(_) => None,
    })
}

/// The step at which the host refuses a plugin for this reason.
fn step_of(part: Part, reason: Reason) -> Step {
    match (part, reason) {
        (_, Reason::Unreadable | Reason::SymlinkLoop | Reason::WritableByOthers) => Step::Permissions,
        (Part::Judge, Reason::Disabled) => Step::Configuration,
        (Part::Judge, Reason::ManifestInvalid | Reason::ContractVersion) => Step::Manifest,
        (Part::Judge, Reason::WrongArchitecture | Reason::IsaUnsupported) => Step::Machine,
        (Part::Judge, Reason::NotAllowed | Reason::SignatureMissing | Reason::SignatureInvalid) => {
            Step::Trust
        }
        (Part::Judge, Reason::HashMismatch | Reason::ManifestLies) => Step::Promises,
        (Part::Judge, Reason::SymbolLeak | Reason::HostSymbolImported | Reason::EntryMissing) => {
            Step::Symbols
        }
        (Part::Judge, Reason::SanitizerMismatch | Reason::SonameMissing) => Step::Libraries,
        (Part::Judge, _) => Step::Elf,
        (Part::Probe, Reason::ProbeCrashed | Reason::ProbeTimedOut | Reason::ProbeFailed) => Step::Probe,
        (Part::Probe, Reason::ContractVersion) => Step::Contract,
        (Part::Probe, Reason::ContractBroken | Reason::SlotMissing | Reason::BadName) => Step::Tables,
        (Part::Probe, _) => Step::Load,
        (Part::Start, Reason::Duplicate | Reason::ManifestLies | Reason::Disabled) => Step::Identity,
        (Part::Start, _) => Step::Devices,
    }
}
