//! The path of a plugin: file → judge → manifest or probe → load → negotiate → layers → devices. If a plugin fails on
//! the way, the report records the reason, and the host continues with the next plugin.

#![expect(unsafe_code, reason = "a plugin that is linked in is asked through its entry")]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::isolation::parent::open_isolated;
use crate::isolation::policy::{is_to_be_isolated, unmet_requests};
use crate::judge::elf::OpenLibrary;
use crate::load::manifest_promises::check_manifest_promises;
use crate::load::{PluginEntryPoint, QueriedPlugin, open_plugin, query_plugin};
use crate::options::HostOptions;
use crate::probe::{ProbeResult, probe_all};
use crate::services::{PluginServices, SharedServices};
use crate::{
    BuiltInPlugin, ConfigError, HOST_CONTRACT, HostEnvironment, JudgeContext, JudgedPlugin, LoadReport,
    LoadedPlugin, LoadedPluginReport, PluginCandidate, PluginInfo, PluginKind, PluginManifest, PluginOrigin,
    PluginOutcome, PluginReport, Refusal, RefusalReason, group_variants, judge_candidate,
    search::search_only, search_plugins, superseded_refusal,
};

/// A plugin that answered and waits to be started, or one that was refused.
struct PluginEntry {
    file: PathBuf,
    origin: Option<PluginOrigin>,
    judged: Option<JudgedPlugin>,
    notes: Vec<String>,
    /// The other variants of the plugin, the best first, in case this one does not work.
    others: VecDeque<JudgedPlugin>,
    state: EntryState,
}

struct PluginLoader<'a> {
    options: &'a HostOptions,
    context: &'a JudgeContext,
    shared: &'a Arc<SharedServices>,
}

enum EntryState {
    Answered(Box<QueriedPlugin>),
    Started(Arc<LoadedPlugin>),
    Refused(Refusal),
}

pub(crate) fn start_plugins(
    options: &HostOptions,
) -> Result<(Vec<Arc<LoadedPlugin>>, LoadReport), ConfigError> {
    let mut context = JudgeContext::new(&options.config, &options.environment, HOST_CONTRACT)?;
    if oarlock_abi::SANITIZER != oarlock_abi::Sanitizer::NONE {
        context.sanitizers.extend(oarlock_abi::SANITIZER.name().map(str::to_owned));
    }
    context.adapters.clone_from(&options.adapters);
    let program = options.program.clone();
    let shared =
        SharedServices::new(program, options.log.clone(), options.config.options.clone(), options.threads);
    let (phases, start_timeout) = (options.phases.clone(), options.start_timeout());
    let shared = Arc::new(SharedServices { phases, start_timeout, ..shared });
    let loader = PluginLoader { options, context: &context, shared: &shared };
    let mut rows = Vec::new();
    for file in &options.bundled {
        let row = loader.query_bundled(file, &rows);
        rows.push(row);
    }
    for built_in in &options.built_in {
        let row = loader.query_built_in(*built_in, &rows);
        rows.push(row);
    }
    for (mut variants, probed) in find_plugins(options, &context, &mut rows) {
        let Some(best) = variants.pop_front() else { continue };
        let row = loader.load_judged(best, probed, &rows);
        let mut at = rows.len();
        rows.push(PluginEntry { others: variants, ..row });
        while loader.load_next_variant(&mut rows, at) {
            at += 1;
        }
    }
    let layers = loader.start_layers(&mut rows);
    let mut at = 0;
    while at < rows.len() {
        at = loader.start_entry(&mut rows, at, &layers.plugins) + 1;
    }
    let (plugins, mut report) = finish_report(rows, layers);
    report.notes.extend(unmet_requests(options, &report));
    Ok((plugins, report))
}

/// The files to load, as groups of variants with the best one first, and the probe results of those without a manifest. Files
/// that are already refused become rows.
fn find_plugins(
    options: &HostOptions,
    context: &JudgeContext,
    rows: &mut Vec<PluginEntry>,
) -> Vec<(VecDeque<JudgedPlugin>, Option<ProbeResult>)> {
    let HostOptions { paths, wheels, config, environment, .. } = options;
    let found = if options.is_for_one {
        search_only(paths, environment)
    } else {
        search_plugins(paths, wheels, config, environment)
    };
    rows.extend(found.refusals.into_iter().map(|refusal| PluginEntry::refused(refusal, None)));
    let mut judged = Vec::new();
    // If a requested file is part of the program, the plugin is already there.
    let bundled: Vec<PathBuf> = options.bundled.iter().filter_map(|file| file.canonicalize().ok()).collect();
    let is_new = |candidate: &PluginCandidate| {
        !candidate.path.canonicalize().is_ok_and(|real| bundled.contains(&real))
    };
    for candidate in found.candidates.into_iter().filter(is_new) {
        let origin = candidate.origin;
        let unwanted = options.selection.check_selected(&candidate.path, None, false);
        let wanted = unwanted.and_then(|()| options.check_failed_start(&candidate.path));
        match wanted.and_then(|()| judge_candidate(candidate, context)) {
            Ok(file) => judged.push(file),
            Err(refusal) => rows.push(PluginEntry::refused(refusal, Some(origin))),
        }
    }
    let groups = group_variants(judged);
    let unknown: Vec<&JudgedPlugin> =
        groups.iter().flatten().filter(|file| file.manifest.is_none()).collect();
    let probe = |judged: &&JudgedPlugin| {
        let probed = options
            .probe
            .as_ref()
            .map(|command| options.probe_judged(judged, command, &context.libraries, false));
        probed.unwrap_or_else(|| ProbeResult {
            verdict: Err(cannot_probe(&judged.candidate.path)),
            notes: Vec::new(),
        })
    };
    let mut probed = probe_all(&unknown, probe).into_iter();
    let with_probe = |group: VecDeque<JudgedPlugin>| {
        let probed = if group.iter().any(|file| file.manifest.is_none()) { probed.next() } else { None };
        (group, probed)
    };
    groups.into_iter().map(with_probe).collect()
}

fn cannot_probe(path: &Path) -> Refusal {
    let found = format!("none, and a program that cannot start itself to probe `{}`", path.display());
    Refusal::new(
        RefusalReason::ProbeFailed,
        path,
        format!("a manifest at `{}`", PluginManifest::path_beside(path).display()),
        found,
        "write one with `oarlock plugin manifest --write`",
    )
}

impl PluginLoader<'_> {
    fn query_built_in(&self, built_in: BuiltInPlugin, earlier: &[PluginEntry]) -> PluginEntry {
        let file = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(built_in.name));
        let services = PluginServices::new(self.shared, built_in.name);
        // SAFETY: the function is part of the program and stays in it.
        let answer = unsafe { query_plugin(&file, PluginEntryPoint::Own(built_in.query), services) };
        self.program_entry(file, answer, earlier)
    }

    fn query_bundled(&self, file: &Path, earlier: &[PluginEntry]) -> PluginEntry {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let services = PluginServices::new(self.shared, &name);
        let answer = self
            .context
            .check_enabled(file, &name)
            .and_then(|()| self.options.check_failed_start(file))
            // These files are not judged, but opening a truncated one would crash the process.
            .and_then(|()| OpenLibrary::open_file(file))
            .and_then(|_| open_plugin(file, services, &[]));
        self.program_entry(file.to_owned(), answer, earlier)
    }

    /// The entry of a plugin that is part of the program, which is not judged.
    fn program_entry(
        &self,
        file: PathBuf,
        answer: Result<QueriedPlugin, Refusal>,
        earlier: &[PluginEntry],
    ) -> PluginEntry {
        let check = |info: &PluginInfo| {
            self.context.check_enabled(&file, &info.name)?;
            self.options.selection.check_selected(&file, Some(&info.name), true)?;
            check_unique(&file, None, &info.name, info.device_type.as_deref(), earlier)
        };
        let state = match answer.and_then(|loaded| check_answered(loaded, check)) {
            Ok(loaded) => EntryState::Answered(Box::new(loaded)),
            Err(refusal) => EntryState::Refused(refusal),
        };
        PluginEntry { file, origin: None, judged: None, notes: Vec::new(), others: VecDeque::new(), state }
    }

    /// Opens a file that was judged and, without a manifest, probed.
    fn load_judged(
        &self,
        judged: JudgedPlugin,
        probed: Option<ProbeResult>,
        rows: &[PluginEntry],
    ) -> PluginEntry {
        let (path, origin) = (judged.candidate.path.clone(), judged.candidate.origin);
        let mut notes = judged.notes.clone();
        let known = match probed.or_else(|| self.probe_known(&judged)) {
            None => judged
                .manifest
                .as_ref()
                .map(|manifest| (manifest.name.clone(), manifest.device_type.clone(), manifest.kind)),
            Some(ProbeResult { verdict: Ok(info), notes: said }) => {
                notes.extend(said);
                Some((info.name, info.device_type, info.kind))
            }
            Some(ProbeResult { verdict: Err(refusal), notes: said }) => {
                notes.extend(said);
                let refusal = Refusal { file: path, ..refusal };
                let origin = Some(judged.candidate.origin);
                return PluginEntry { notes, judged: Some(judged), ..PluginEntry::refused(refusal, origin) };
            }
        };
        let services =
            PluginServices::new(self.shared, &path.file_name().unwrap_or_default().to_string_lossy());
        if let Some(limit) = judged.manifest.as_ref().and_then(|manifest| manifest.start_timeout_ms) {
            let limit = Duration::from_millis(limit).max(self.options.start_timeout());
            services.allow_start_time(limit);
        }
        let checked = known.as_ref().map_or(Ok(()), |(name, device_type, _)| {
            services.set_name(name);
            self.context.check_enabled(&path, name)?;
            self.options.selection.check_selected(&path, Some(name), false)?;
            check_unique(&path, Some(origin), name, device_type.as_deref(), rows)
        });
        // The judged file is opened, even if a link on the way has changed since.
        let real_path = &judged.real_path;
        let open = |()| match &known {
            Some((name, _, kind)) if is_to_be_isolated(self.options, &judged, name) => {
                open_isolated(real_path, name, *kind, self.options, services)
            }
            _ => open_plugin(real_path, services, &self.context.adapters),
        };
        let loaded = checked.and_then(open).and_then(|loaded| {
            check_answered(loaded, |info| match &judged.manifest {
                Some(manifest) => check_manifest_promises(&path, manifest, info),
                None => check_unique(&path, Some(origin), &info.name, info.device_type.as_deref(), rows),
            })
        });
        let state = match loaded {
            Ok(loaded) => EntryState::Answered(Box::new(loaded)),
            Err(refusal) => EntryState::Refused(Refusal { file: path.clone(), ..refusal }),
        };
        let origin = Some(judged.candidate.origin);
        PluginEntry { file: path, origin, judged: Some(judged), notes, others: VecDeque::new(), state }
    }

    /// The probe of a plugin with a manifest, if it has to be probed and crashes or hangs.
    fn probe_known(&self, judged: &JudgedPlugin) -> Option<ProbeResult> {
        let command = self.options.probe.as_ref().filter(|_| self.options.probes_known)?;
        judged.manifest.as_ref()?;
        let probed = self.options.probe_judged(judged, command, &self.context.libraries, false);
        let reason = probed.verdict.as_ref().err()?.reason;
        matches!(reason, RefusalReason::ProbeCrashed | RefusalReason::ProbeTimedOut).then_some(probed)
    }

    /// If the plugin in a row is refused, loads its next variant into a new row after it; false if there is nothing to do.
    fn load_next_variant(&self, rows: &mut Vec<PluginEntry>, at: usize) -> bool {
        if !matches!(rows[at].state, EntryState::Refused(_)) {
            return false;
        }
        let mut others = std::mem::take(&mut rows[at].others);
        let Some(next) = others.pop_front() else { return false };
        let mut row = self.load_judged(next, None, rows);
        row.notes.push(format!("it is tried in place of `{}`, which is refused", rows[at].file.display()));
        rows.insert(at + 1, PluginEntry { others, ..row });
        true
    }

    /// Starts the plugin in a row and, as long as it is refused, its next variant; returns the row of the last one.
    fn start_entry(&self, rows: &mut Vec<PluginEntry>, mut at: usize, layers: &[Arc<LoadedPlugin>]) -> usize {
        loop {
            rows[at].start_queried(layers, &self.options.environment);
            if !self.load_next_variant(rows, at) {
                return at;
            }
            at += 1;
        }
    }

    fn start_layers(&self, rows: &mut Vec<PluginEntry>) -> ActiveLayers {
        let mut layers = ActiveLayers { plugins: self.options.around.clone(), notes: Vec::new() };
        for name in self.options.layer_names() {
            if layers.plugins.iter().any(|layer| layer.info().name == name) {
                continue;
            }
            let named = |row: &PluginEntry| {
                matches!(&row.state, EntryState::Answered(loaded)
                if loaded.checked.info.name == name && loaded.checked.tables.layer.is_some())
            };
            let started = rows.iter().position(named).and_then(|at| {
                let at = self.start_entry(rows, at, &[]);
                match &rows[at].state {
                    EntryState::Started(plugin) => Some(plugin.clone()),
                    _ => None,
                }
            });
            match started {
                Some(plugin) => {
                    plugin.mark_used_as_layer();
                    layers.plugins.push(plugin);
                }
                None => layers.notes.push(format!(
                    "expected a layer called `{name}`, found none that works; nothing is watched by it"
                )),
            }
        }
        layers
    }
}

/// Runs a last check on a plugin that answered. Its code stays mapped either way.
fn check_answered(
    loaded: QueriedPlugin,
    check: impl FnOnce(&PluginInfo) -> Result<(), Refusal>,
) -> Result<QueriedPlugin, Refusal> {
    match check(&loaded.checked.info) {
        Ok(()) => Ok(loaded),
        Err(refusal) => {
            loaded.services.leak_services();
            std::mem::forget(loaded.library);
            Err(refusal)
        }
    }
}

/// Refuses a second plugin with the same name or device type.
fn check_unique(
    path: &Path,
    origin: Option<PluginOrigin>,
    name: &str,
    device_type: Option<&str>,
    earlier: &[PluginEntry],
) -> Result<(), Refusal> {
    for row in earlier {
        let Some(info) = row.plugin_info() else { continue };
        // A plugin that is installed for all programs is no mistake where this one provides its own. A requested one is.
        if info.name == name && row.origin.is_none() && origin >= Some(PluginOrigin::Wheel) {
            let expected = format!("one plugin called `{name}`");
            let found = "a program that provides it itself";
            return Err(Refusal::new(
                RefusalReason::PartOfProgram,
                path,
                expected,
                found,
                "nothing needs to be done",
            ));
        }
        let what = if info.name == name {
            format!("plugin called `{name}`")
        } else if let Some(device) = device_type
            .filter(|own| info.device_type.as_deref().is_some_and(|other| other.eq_ignore_ascii_case(own)))
        {
            format!("plugin for the device type `{device}`")
        } else {
            continue;
        };
        let first = match row.origin {
            Some(origin) => format!("`{}`, which {origin} asked for first", row.file.display()),
            None => format!("`{}`, which is built into the program", info.name),
        };
        let (expected, found) = (format!("one {what}"), format!("a second one beside {first}"));
        let remedy = "remove one of them, or disable one by its file name";
        return Err(Refusal::new(RefusalReason::Duplicate, path, expected, found, remedy));
    }
    Ok(())
}

/// The active layers, the outermost first, and notes on requested layers that are missing.
struct ActiveLayers {
    plugins: Vec<Arc<LoadedPlugin>>,
    notes: Vec<String>,
}

impl PluginEntry {
    fn refused(refusal: Refusal, origin: Option<PluginOrigin>) -> Self {
        let file = refusal.file.clone();
        let state = EntryState::Refused(refusal);
        Self { file, origin, judged: None, notes: Vec::new(), others: VecDeque::new(), state }
    }

    /// The description of a plugin that is not refused.
    fn plugin_info(&self) -> Option<&PluginInfo> {
        match &self.state {
            EntryState::Answered(loaded) => Some(&loaded.checked.info),
            EntryState::Started(plugin) => Some(plugin.info()),
            EntryState::Refused(_) => None,
        }
    }

    /// Starts the plugin of a row that answered; other rows stay as they are.
    fn start_queried(&mut self, layers: &[Arc<LoadedPlugin>], environment: &HostEnvironment) {
        let placeholder =
            || Refusal::new(RefusalReason::PluginError, &self.file, "a plugin that starts", "none", "");
        match std::mem::replace(&mut self.state, EntryState::Refused(placeholder())) {
            EntryState::Answered(loaded) => {
                // Layers are not wrapped: a layer would observe itself.
                let layers = if loaded.checked.info.kind == PluginKind::Layer { &[] } else { layers };
                self.state = match LoadedPlugin::start_plugin(&self.file, *loaded, layers, environment) {
                    Ok(plugin) => EntryState::Started(Arc::new(plugin)),
                    Err(refusal) => EntryState::Refused(refusal),
                };
            }
            settled => self.state = settled,
        }
    }
}

fn finish_report(rows: Vec<PluginEntry>, layers: ActiveLayers) -> (Vec<Arc<LoadedPlugin>>, LoadReport) {
    let (mut plugins, mut report) = (Vec::new(), LoadReport { plugins: Vec::new(), notes: layers.notes });
    for PluginEntry { file, origin, judged, mut notes, others, state } in rows {
        if let Some(winner) = &judged {
            let lost = others.iter().map(|loser| PluginReport {
                file: loser.candidate.path.clone(),
                origin: Some(loser.candidate.origin),
                outcome: PluginOutcome::Refused(superseded_refusal(loser, winner)),
                notes: loser.notes.clone(),
            });
            report.plugins.extend(lost);
        }
        let outcome = match state {
            EntryState::Refused(refusal) => PluginOutcome::Refused(refusal),
            EntryState::Answered(_) => continue,
            EntryState::Started(plugin) => {
                notes.extend_from_slice(plugin.notes());
                plugin
                    .warn_of_unknown_options(layers.plugins.iter().any(|layer| Arc::ptr_eq(layer, &plugin)));
                let loaded = loaded_report(&plugin, judged);
                plugins.push(plugin);
                PluginOutcome::Loaded(Box::new(loaded))
            }
        };
        report.plugins.push(PluginReport { file, origin, outcome, notes });
    }
    (plugins, report)
}

fn loaded_report(plugin: &LoadedPlugin, judged: Option<JudgedPlugin>) -> LoadedPluginReport {
    let info = plugin.info().clone();
    let device_type = info.device_type.as_deref().unwrap_or_default();
    let devices = plugin.device_ids().iter().map(|id| format!("{device_type}:{id}")).collect();
    LoadedPluginReport {
        devices,
        process: plugin.process_id(),
        layers: plugin.layer_names(),
        built_in: judged.is_none(),
        sha256: judged.as_ref().map(|judged| judged.digest),
        signed_by: judged.as_ref().and_then(|judged| judged.signed_by.clone()),
        conformance: judged.and_then(|judged| judged.manifest).and_then(|manifest| manifest.conformance),
        info,
    }
}
