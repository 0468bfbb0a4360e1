//! The walk of a plugin: file → judge → manifest or probe → load → negotiate → layers → devices. Whatever stops one on
//! the way leaves a reason in the report, and the next one goes on.

#![expect(unsafe_code, reason = "a plugin that is linked in is asked through its entry")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::host::HostOptions;
use crate::load::{Loaded, ask, open};
use crate::probe::cache::ProbeCache;
use crate::probe::{Probed, probe_all};
use crate::services::{Services, Shared};
use crate::{
    BuiltIn, ConfigError, HOST_CONTRACT, JudgeContext, Judged, Kind, LoadReport, LoadedPlugin, Manifest,
    Origin, Outcome, Plugin, PluginInfo, PluginReport, Reason, Refusal, choose_variants, judge, search,
};

/// A plugin that answered well and waits to be started, or one that never will.
struct Row {
    file: PathBuf,
    origin: Option<Origin>,
    judged: Option<Judged>,
    notes: Vec<String>,
    state: State,
}

enum State {
    Answered(Box<Loaded>),
    Started(Arc<Plugin>),
    Refused(Refusal),
}

pub(crate) fn start(options: &HostOptions) -> Result<(Vec<Arc<Plugin>>, LoadReport), ConfigError> {
    let mut context = JudgeContext::new(&options.config, &options.environment, HOST_CONTRACT)?;
    if oarlock_abi::SANITIZER != oarlock_abi::Sanitizer::NONE {
        context.sanitizers.extend(oarlock_abi::SANITIZER.name().map(str::to_owned));
    }
    let shared = Shared::new(
        options.program.clone(),
        options.log.clone(),
        options.config.options.clone(),
        options.threads,
    );
    let mut rows: Vec<Row> =
        options.built_in.iter().map(|built_in| ask_built_in(*built_in, &context, &shared)).collect();
    for (judged, probed) in find(options, &context, &mut rows) {
        let row = load(judged, probed, &context, &shared, &rows);
        rows.push(row);
    }
    let layers = start_layers(options, &mut rows);
    for row in &mut rows {
        row.start(&layers.plugins);
    }
    Ok(finish(rows, layers))
}

fn ask_built_in(built_in: BuiltIn, context: &JudgeContext, shared: &Arc<Shared>) -> Row {
    let file = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(built_in.name));
    let services = Services::new(shared, built_in.name);
    // SAFETY: the function is a part of the program and stays in it.
    let answer = unsafe { ask(&file, built_in.query, services) };
    let state =
        match answer.and_then(|loaded| allowed(loaded, |info| context.check_enabled(&file, &info.name))) {
            Ok(loaded) => State::Answered(Box::new(loaded)),
            Err(refusal) => State::Refused(refusal),
        };
    Row { file, origin: None, judged: None, notes: Vec::new(), state }
}

/// The files to load, with the probes of those without a manifest. Those that are out already become rows.
fn find(options: &HostOptions, context: &JudgeContext, rows: &mut Vec<Row>) -> Vec<(Judged, Option<Probed>)> {
    let found = search(&options.paths, options.wheel.as_deref(), &options.config, &options.environment);
    rows.extend(found.refusals.into_iter().map(|refusal| Row::refused(refusal, None)));
    let mut judged = Vec::new();
    for candidate in found.candidates {
        let origin = candidate.origin;
        match judge(candidate, context) {
            Ok(file) => judged.push(file),
            Err(refusal) => rows.push(Row::refused(refusal, Some(origin))),
        }
    }
    let (chosen, lost) = choose_variants(judged);
    rows.extend(lost.into_iter().map(|refusal| Row::refused(refusal, None)));
    let unknown: Vec<&Judged> = chosen.iter().filter(|judged| judged.manifest.is_none()).collect();
    let cache = ProbeCache::new(options.cache_home.as_deref(), options.environment.identity);
    let mut probed = probe_all(&unknown, |judged| {
        let path = &judged.candidate.path;
        match &options.probe {
            Some(command) => cache.probe(command, path, judged.digest, options.probe_timeout()),
            None => Probed { verdict: Err(cannot_probe(path)), notes: Vec::new() },
        }
    })
    .into_iter();
    let with_probe = |judged: Judged| {
        let probed = if judged.manifest.is_none() { probed.next() } else { None };
        (judged, probed)
    };
    chosen.into_iter().map(with_probe).collect()
}

fn cannot_probe(path: &Path) -> Refusal {
    let found = format!("none, and a program that cannot start itself to probe `{}`", path.display());
    Refusal::new(
        Reason::ProbeFailed,
        path,
        format!("a manifest at `{}`", Manifest::path_beside(path).display()),
        found,
        "write one with `oarlock plugin manifest --write`",
    )
}

/// Opens a file that is judged and, without a manifest, probed.
fn load(
    judged: Judged,
    probed: Option<Probed>,
    context: &JudgeContext,
    shared: &Arc<Shared>,
    earlier: &[Row],
) -> Row {
    let path = judged.candidate.path.clone();
    let mut notes = judged.notes.clone();
    let known = match probed {
        None => {
            judged.manifest.as_ref().map(|manifest| (manifest.name.clone(), manifest.device_type.clone()))
        }
        Some(Probed { verdict: Ok(info), notes: said }) => {
            notes.extend(said);
            Some((info.name, info.device_type))
        }
        Some(Probed { verdict: Err(refusal), notes: said }) => {
            notes.extend(said);
            let origin = Some(judged.candidate.origin);
            return Row { notes, judged: Some(judged), ..Row::refused(refusal, origin) };
        }
    };
    let services = Services::new(shared, &path.file_name().unwrap_or_default().to_string_lossy());
    let known = known.map_or(Ok(()), |(name, device_type)| {
        services.set_name(&name);
        context.check_enabled(&path, &name)?;
        check_unique(&path, &name, device_type.as_deref(), earlier)
    });
    // What was judged is opened, even if a link on the way has been turned since.
    let loaded = known.and_then(|()| open(&judged.real_path, services)).and_then(|loaded| {
        allowed(loaded, |info| match &judged.manifest {
            Some(manifest) => keeps_promises(&path, manifest, info),
            None => check_unique(&path, &info.name, info.device_type.as_deref(), earlier),
        })
    });
    let state = match loaded {
        Ok(loaded) => State::Answered(Box::new(loaded)),
        Err(refusal) => State::Refused(Refusal { file: path.clone(), ..refusal }),
    };
    Row { file: path, origin: Some(judged.candidate.origin), judged: Some(judged), notes, state }
}

/// A plugin that answered, if a last check of what it says lets it pass; its code stays in the process either way.
fn allowed(
    loaded: Loaded,
    check: impl FnOnce(&PluginInfo) -> Result<(), Refusal>,
) -> Result<Loaded, Refusal> {
    match check(&loaded.checked.info) {
        Ok(()) => Ok(loaded),
        Err(refusal) => {
            loaded.services.keep_for_ever();
            std::mem::forget(loaded.library);
            Err(refusal)
        }
    }
}

/// Refuses a second plugin with one name or device type.
fn check_unique(path: &Path, name: &str, device_type: Option<&str>, earlier: &[Row]) -> Result<(), Refusal> {
    for row in earlier {
        let State::Answered(loaded) = &row.state else { continue };
        let info = &loaded.checked.info;
        let what = if info.name == name {
            format!("plugin called `{name}`")
        } else if let Some(device) = device_type.filter(|_| info.device_type.as_deref() == device_type) {
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
        return Err(Refusal::new(Reason::Duplicate, path, expected, found, remedy));
    }
    Ok(())
}

/// Compares what the manifest says with what the plugin says.
fn keeps_promises(path: &Path, manifest: &Manifest, info: &PluginInfo) -> Result<(), Refusal> {
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let sorted = |profiles: &[String]| {
        let mut profiles = profiles.to_vec();
        profiles.sort();
        profiles.join(", ")
    };
    let unloadable = |can: bool| if can { "yes" } else { "no" }.to_owned();
    let kind = |kind: Kind| format!("{kind:?}").to_lowercase();
    let pairs = [
        ("name", manifest.name.clone(), info.name.clone()),
        ("version", manifest.version.clone(), info.version.clone()),
        ("kind", kind(manifest.kind), kind(info.kind)),
        ("device type", said(&manifest.device_type), said(&info.device_type)),
        ("contract", manifest.contract.to_string(), info.contract.to_string()),
        ("profiles", sorted(&manifest.profiles), sorted(&info.profiles)),
        // A plugin may be kept loaded although it could be unloaded.
        ("`unloadable`", unloadable(manifest.unloadable && !info.unloadable), unloadable(false)),
    ];
    match pairs.into_iter().find(|(_, promised, kept)| promised != kept) {
        None => Ok(()),
        Some((what, promised, kept)) => Err(Refusal::new(
            Reason::ManifestLies,
            path,
            format!("the {what} its manifest gives, `{promised}`"),
            format!("`{kept}`, which the plugin says itself"),
            "write the manifest again with `oarlock plugin manifest --write`",
        )),
    }
}

/// The layers in force, the outermost first, and those that were asked for and are not there.
struct Layers {
    plugins: Vec<Arc<Plugin>>,
    notes: Vec<String>,
}

fn start_layers(options: &HostOptions, rows: &mut [Row]) -> Layers {
    let mut layers = Layers { plugins: Vec::new(), notes: Vec::new() };
    for name in options.layers.iter().chain(&options.config.plugins.layers) {
        if layers.plugins.iter().any(|layer| layer.info().name == *name) {
            continue;
        }
        let named = |row: &&mut Row| {
            matches!(&row.state, State::Answered(loaded)
            if loaded.checked.info.name == *name && loaded.checked.tables.layer.is_some())
        };
        let row = rows.iter_mut().find(named);
        let started = row.and_then(|row| {
            row.start(&[]);
            match &row.state {
                State::Started(plugin) => Some(plugin.clone()),
                _ => None,
            }
        });
        match started {
            Some(plugin) => layers.plugins.push(plugin),
            None => layers.notes.push(format!(
                "expected a layer called `{name}`, found none that works; nothing is watched by it"
            )),
        }
    }
    layers
}

impl Row {
    fn refused(refusal: Refusal, origin: Option<Origin>) -> Self {
        let file = refusal.file.clone();
        Self { file, origin, judged: None, notes: Vec::new(), state: State::Refused(refusal) }
    }

    /// Starts a plugin that answered.
    fn start(&mut self, layers: &[Arc<Plugin>]) {
        let placeholder =
            || Refusal::new(Reason::PluginError, &self.file, "a plugin that starts", "none", "");
        match std::mem::replace(&mut self.state, State::Refused(placeholder())) {
            State::Answered(loaded) => {
                // A layer is not wrapped: it would watch itself.
                let layers = if loaded.checked.info.kind == Kind::Layer { &[] } else { layers };
                self.state = match Plugin::start(&self.file, *loaded, layers) {
                    Ok(plugin) => State::Started(Arc::new(plugin)),
                    Err(refusal) => State::Refused(refusal),
                };
            }
            settled => self.state = settled,
        }
    }
}

fn finish(rows: Vec<Row>, layers: Layers) -> (Vec<Arc<Plugin>>, LoadReport) {
    let (mut plugins, mut report) = (Vec::new(), LoadReport { plugins: Vec::new(), notes: layers.notes });
    for Row { file, origin, judged, mut notes, state } in rows {
        let outcome = match state {
            State::Refused(refusal) => Outcome::Refused(refusal),
            State::Answered(_) => continue,
            State::Started(plugin) => {
                notes.extend_from_slice(plugin.notes());
                let loaded = loaded_report(&plugin, judged);
                plugins.push(plugin);
                Outcome::Loaded(Box::new(loaded))
            }
        };
        report.plugins.push(PluginReport { file, origin, outcome, notes });
    }
    (plugins, report)
}

fn loaded_report(plugin: &Plugin, judged: Option<Judged>) -> LoadedPlugin {
    let info = plugin.info().clone();
    let device_type = info.device_type.as_deref().unwrap_or_default();
    let devices = plugin.device_ids().iter().map(|id| format!("{device_type}:{id}")).collect();
    LoadedPlugin {
        devices,
        layers: plugin.layer_names(),
        built_in: judged.is_none(),
        sha256: judged.as_ref().map(|judged| judged.digest),
        signed_by: judged.as_ref().and_then(|judged| judged.signed_by.clone()),
        conformance: judged.and_then(|judged| judged.manifest).and_then(|manifest| manifest.conformance),
        info,
    }
}
