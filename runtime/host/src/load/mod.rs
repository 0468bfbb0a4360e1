//! Loads a plugin: opens its file, calls its one exported function and checks the answer.
//!
//! A plugin that is linked into the program takes the same path without the file.

#![expect(unsafe_code, reason = "this is where code of a plugin is called for the first time")]

pub(crate) mod checked_text;
pub(crate) mod device_list;
pub(crate) mod drafts;
pub(crate) mod kernel_checks;
pub(crate) mod manifest_promises;
pub(crate) mod plugin_description;
pub(crate) mod validate;

use std::ffi::c_void;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use oarlock_abi as abi;
use oarlock_conformance::{FloatMode, FloatModeGuard};
use oarlock_isolation::IsolatedPlugin;

use crate::foreign_struct::{RuleBreach, copy_struct};
use crate::load::validate::CheckedPlugin;
use crate::negotiate::{HOST_CONTRACT, OutdatedSide, negotiate_minor};
use crate::services::PluginServices;
use crate::services::errors::{self, PluginFailure};
use crate::{PluginAdapter, PluginPhase, Refusal, RefusalReason, sanitize_text};

/// The answer of a plugin, followed by a guard zone that detects writes past its end.
#[repr(C)]
struct QueryAnswer {
    plugin: abi::Plugin,
    guard: [u64; 512],
}

/// The entry points of the plugins that this process uses, and true for those that hosts may share.
static PLUGINS_IN_USE: Mutex<Vec<(usize, bool)>> = Mutex::new(Vec::new());

/// Marks a plugin as used by one host. Other hosts of the process must not use it, unless it offers `several_hosts`: it would use
/// the services of the last host for both, and shut down for both.
#[derive(Debug)]
pub(crate) struct InUse {
    entry: usize,
    is_shared: bool,
}

/// The function that answers for a plugin.
#[derive(Clone, Copy)]
pub(crate) enum PluginEntryPoint {
    /// The plugin's own.
    Own(abi::PluginQuery),
    /// An adapter's, for a plugin with the entry of another program.
    Adapted(PluginAdapter, *const c_void),
}

impl PluginEntryPoint {
    /// The address that tells plugins apart.
    fn address(self) -> usize {
        match self {
            Self::Own(query) => query as usize,
            Self::Adapted(_, entry) => entry.addr(),
        }
    }

    fn own(self) -> Option<abi::PluginQuery> {
        match self {
            Self::Own(query) => Some(query),
            Self::Adapted(..) => None,
        }
    }

    /// # Safety
    ///
    /// As for [`query_plugin`]; the structs are as the contract describes them.
    unsafe fn call(self, host: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
        // SAFETY: the caller vouches for the entry and the structs.
        unsafe {
            match self {
                Self::Own(query) => query(host, plugin),
                Self::Adapted(adapter, entry) => (adapter.query)(entry, host, plugin),
            }
        }
    }
}

impl InUse {
    fn mark_in_use(path: &Path, entry: usize) -> Result<Self, Refusal> {
        let mut in_use = PLUGINS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if in_use.iter().any(|(other, several_hosts)| *other == entry && !several_hosts) {
            return Err(Refusal::new(
                RefusalReason::Duplicate,
                path,
                "a plugin that no other host of this process uses, or one that offers `several_hosts`",
                "one that is in use",
                "use one host for the whole process",
            ));
        }
        in_use.push((entry, false));
        Ok(Self { entry, is_shared: false })
    }

    fn allow_sharing(&mut self) {
        let mut in_use = PLUGINS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = in_use.iter_mut().find(|held| **held == self.entry_key()) {
            own.1 = true;
            self.is_shared = true;
        }
    }

    fn entry_key(&self) -> (usize, bool) {
        (self.entry, self.is_shared)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut in_use = PLUGINS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        // A plugin that refuses this host may be in use by another, whose mark stays.
        if let Some(index) = in_use.iter().position(|held| *held == self.entry_key()) {
            in_use.swap_remove(index);
        }
    }
}

/// A plugin that answered correctly. Its code stays mapped even after this is dropped, unless the library is closed.
#[derive(Debug)]
pub(crate) struct QueriedPlugin {
    pub(crate) library: Option<Library>,
    pub(crate) checked: CheckedPlugin,
    /// The process that it runs in, if that is not this one. Its tables are proxies then. It uses the services until it is dropped.
    pub(crate) isolated: Option<IsolatedPlugin>,
    pub(crate) services: Arc<PluginServices>,
    pub(crate) in_use: InUse,
    /// The plugin's entry point, if it has one of ours in this process.
    pub(crate) query: Option<abi::PluginQuery>,
    /// The mode of floats before and after, if loading and querying changed it.
    pub(crate) mode_change: Option<(FloatMode, FloatMode)>,
}

/// Opens the file at `path` and queries the plugin in it. A refused plugin is never closed again: it may have started threads
/// or registered functions that outlive its answer.
pub(crate) fn open_plugin(
    path: &Path,
    services: Arc<PluginServices>,
    adapters: &[PluginAdapter],
) -> Result<QueriedPlugin, Refusal> {
    // Initializers that change how floats are flushed or rounded would change what every other kernel computes.
    let mode = FloatModeGuard::new();
    let loading = services.begin_phase(path, PluginPhase::Load, &[]);
    // SAFETY: loading runs the initializers of the library, which the host has judged before.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let remedy = "install what it needs, or the build of this plugin for this system";
        Refusal::new(
            RefusalReason::LoadFailed,
            path,
            "a plugin that can be loaded",
            linker_message(&error),
            remedy,
        )
    })?;
    drop(loading);
    // SAFETY: the contract's entry point has this type.
    let own =
        unsafe { library.get::<abi::PluginQuery>(abi::ENTRY) }.map(|symbol| PluginEntryPoint::Own(*symbol));
    let query = own.or_else(|error| adapted_entry(&library, adapters).ok_or(error)).map_err(|_| {
        let expected = format!("a plugin that exports `{}`", abi::ENTRY);
        let remedy = "define it with default visibility and C linkage, or remove the file";
        Refusal::new(RefusalReason::EntryMissing, path, expected, "a shared object without it", remedy)
    });
    // SAFETY: the function is the plugin's entry, and the library is kept.
    match query.and_then(|query| unsafe { query_plugin(path, query, services) }) {
        Ok(mut loaded) => {
            let mode_change = mode.change();
            if mode_change.is_some() {
                loaded.checked.notes.push(
                    "it changes how floats are rounded or flushed while it is loaded, which the host undoes; \
                     ask its vendor to link it without `-ffast-math`"
                        .to_owned(),
                );
            }
            Ok(QueriedPlugin { library: Some(library), mode_change, ..loaded })
        }
        Err(refusal) => {
            std::mem::forget(library);
            Err(refusal)
        }
    }
}

/// The entry of a plugin for another program that an adapter knows.
fn adapted_entry(library: &Library, adapters: &[PluginAdapter]) -> Option<PluginEntryPoint> {
    adapters.iter().find_map(|adapter| {
        // SAFETY: only the address is read, whatever is there.
        let symbol = unsafe { library.get::<*const c_void>(adapter.entry) };
        symbol.ok().map(|symbol| PluginEntryPoint::Adapted(*adapter, symbol.as_raw_ptr().cast_const()))
    })
}

/// The dynamic linker's message, without the text that `libloading` adds.
fn linker_message(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    format!("`{}`", sanitize_text(&cause.trim().replace(['\n', '`'], " ")))
}

/// Queries a plugin.
///
/// # Safety
///
/// `query` is the entry point of a plugin that stays loaded.
pub(crate) unsafe fn query_plugin(
    path: &Path,
    query: PluginEntryPoint,
    services: Arc<PluginServices>,
) -> Result<QueriedPlugin, Refusal> {
    /// Only the answer reveals whether a plugin can be shared, so hosts query one after another.
    static QUERY_LOCK: Mutex<()> = Mutex::new(());
    let _asking = QUERY_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let mut in_use = InUse::mark_in_use(path, query.address())?;
    let querying = services.begin_phase(path, PluginPhase::Query, &[]);
    // SAFETY: the caller vouches for the entry.
    let answer = unsafe { call_query(path, query, &services) };
    drop(querying);
    match answer {
        Ok(checked) => {
            // A plugin for another program has its state in variables of the process, whatever its adapter offers.
            if checked.info.several_hosts && matches!(query, PluginEntryPoint::Own(_)) {
                in_use.allow_sharing();
            }
            services.set_name(&checked.info.name);
            Ok(QueriedPlugin {
                library: None,
                checked,
                services,
                in_use,
                isolated: None,
                query: query.own(),
                mode_change: None,
            })
        }
        Err(refusal) => {
            services.leak_services();
            Err(refusal)
        }
    }
}

/// Accepts the proxies of a plugin in another process, whose answer is checked like any other.
pub(crate) fn accept_isolated(
    path: &Path,
    services: Arc<PluginServices>,
    // The last argument is dropped first: it uses the services until then.
    isolated: IsolatedPlugin,
) -> Result<QueriedPlugin, Refusal> {
    let answer = isolated.answer();
    check_version(path, answer)?;
    // The context is unique as long as the process is in use, so it stands for the entry that others have.
    let in_use = InUse::mark_in_use(path, answer.context as usize)?;
    // SAFETY: the tables are the host's own, and what the process said is in memory of the host.
    let checked =
        unsafe { validate::check_answer(answer) }.map_err(|breach| breach_refusal(path, &breach))?;
    services.set_name(&checked.info.name);
    Ok(QueriedPlugin {
        library: None,
        checked,
        services,
        in_use,
        isolated: Some(isolated),
        query: None,
        mode_change: None,
    })
}

/// # Safety
///
/// As for [`query_plugin`].
unsafe fn call_query(
    path: &Path,
    query: PluginEntryPoint,
    services: &Arc<PluginServices>,
) -> Result<CheckedPlugin, Refusal> {
    let mut answer = QueryAnswer { plugin: abi::Plugin::EMPTY, guard: [0; 512] };
    // SAFETY: both structs are the host's own and as large as their size fields state; everything that the host's struct points
    // to lives as long as the services.
    let error = unsafe { query.call(services.abi_host(), (&raw mut answer).cast()) };
    let failure = errors::result_from_error(error).err();
    let plugin = &answer.plugin;
    services.set_plugin_context(plugin.context);
    if answer.guard.iter().any(|word| *word != 0) {
        let expected = format!("at most {} bytes written to `plugin`", size_of::<abi::Plugin>());
        return Err(breach_refusal(path, &RuleBreach::new("S-3", expected, "more")));
    }
    // A plugin that failed before it stated its version reports another problem.
    if failure.is_none() || plugin.contract_major != 0 {
        check_version(path, plugin)?;
    }
    if let Some(failure) = failure {
        return Err(failure_refusal(path, &failure));
    }
    if plugin.size as usize > size_of::<abi::Plugin>() {
        let expected = format!("a `plugin` of at most the {} bytes the host gave", size_of::<abi::Plugin>());
        return Err(breach_refusal(
            path,
            &RuleBreach::new("S-3", expected, format!("one of {} bytes", plugin.size)),
        ));
    }
    // SAFETY: the struct is the host's own, and the size it now has is one it really has.
    let plugin = unsafe { copy_struct(plugin) }.map_err(|breach| breach_refusal(path, &breach))?;
    if plugin.sanitizer != abi::SANITIZER {
        let name = |sanitizer: abi::Sanitizer| match (sanitizer, sanitizer.name()) {
            (abi::Sanitizer::NONE, _) => "one built without a sanitizer".to_owned(),
            (_, Some(name)) => format!("one built with `-fsanitize={name}`"),
            (other, None) => format!("one built with the unknown sanitizer {}", other.0),
        };
        let expected = format!("a plugin built as this program is, {}", name(abi::SANITIZER));
        let remedy = "install the build of this plugin for this program";
        return Err(Refusal::new(
            RefusalReason::SanitizerMismatch,
            path,
            expected,
            name(plugin.sanitizer),
            remedy,
        ));
    }
    // SAFETY: the plugin vouches for its structs (rule S-6) and stays loaded.
    unsafe { validate::check_answer(&plugin) }.map_err(|breach| breach_refusal(path, &breach))
}

fn check_version(path: &Path, plugin: &abi::Plugin) -> Result<(), Refusal> {
    let spoken = validate::contract_range(plugin);
    let Err(behind) = negotiate_minor(HOST_CONTRACT, spoken) else { return Ok(()) };
    let package = match behind {
        OutdatedSide::Host => "oarlock".to_owned(),
        OutdatedSide::Plugin => package_to_update(path, plugin),
    };
    Err(Refusal::new(
        RefusalReason::ContractVersion,
        path,
        format!("a plugin that speaks contract {HOST_CONTRACT} (rule V-1)"),
        format!("one that speaks {spoken}"),
        format!("update `{package}`"),
    ))
}

/// The package to update. In the struct of another major version it is elsewhere, so the file name is used instead.
fn package_to_update(path: &Path, plugin: &abi::Plugin) -> String {
    let file = || path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if plugin.contract_major != HOST_CONTRACT.major || plugin.size < abi::Plugin::SIZE_AT_FIRST {
        return file();
    }
    // SAFETY: the plugin is of the host's major version, whose first fields never move, and vouches for its texts.
    let (package, name) = unsafe {
        (checked_text::checked_name(plugin.package, ""), checked_text::checked_name(plugin.name, ""))
    };
    package.or(name).unwrap_or_else(|_| file())
}

pub(crate) fn breach_refusal(path: &Path, breach: &RuleBreach) -> Refusal {
    let reason = match breach.rule {
        "P-1" => RefusalReason::SlotMissing,
        "E-4" | "S-5" => RefusalReason::BadName,
        _ => RefusalReason::ContractBroken,
    };
    let RuleBreach { rule, expected, found } = breach;
    let remedy = "update the plugin, or tell its vendor";
    Refusal::new(reason, path, format!("{expected} (rule {rule})"), found, remedy)
}

/// The refusal of a plugin that itself reported an error.
pub(crate) fn failure_refusal(path: &Path, failure: &PluginFailure) -> Refusal {
    let remedy = "do what the plugin asks for, or ask its vendor";
    let its_error = format!("its error: {}", sanitize_text(&failure.to_string()));
    Refusal::new(RefusalReason::PluginError, path, "a plugin that starts", its_error, remedy)
}
