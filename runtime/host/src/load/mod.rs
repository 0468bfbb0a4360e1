//! Asks a plugin who it is: opens its file, calls the one function it exports and checks the answer.
//!
//! A plugin that is linked into the program goes the same way without the file.

#![expect(unsafe_code, reason = "this is where code of a plugin is called for the first time")]

pub(crate) mod described;
pub(crate) mod device_list;
pub(crate) mod drafts;
pub(crate) mod foreign;
pub(crate) mod kernel_checks;
pub(crate) mod layers;
pub(crate) mod negotiate;
pub(crate) mod validate;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use oarlock_abi as abi;

use crate::load::foreign::{Breach, take_over};
use crate::load::negotiate::{Behind, HOST_CONTRACT, negotiate};
use crate::load::validate::Checked;
use crate::services::Services;
use crate::services::errors::{self, Failure};
use crate::{Reason, Refusal, clean_text};

/// What a plugin answers into, and room behind it in which a plugin that writes too far is noticed.
#[repr(C)]
struct Answer {
    plugin: abi::Plugin,
    guard: [u64; 512],
}

/// The entries of the plugins that are in use in this process.
static IN_USE: Mutex<Vec<(usize, bool)>> = Mutex::new(Vec::new());

/// Marks a plugin as in use by one host. Another host of the process must leave it alone, unless the plugin offers
/// `several_hosts`: it would work for both with the services of whoever asked last, and end for both at once.
#[derive(Debug)]
pub(crate) struct InUse {
    entry: usize,
    is_shared: bool,
}

impl InUse {
    fn mark(path: &Path, query: abi::PluginQuery) -> Result<Self, Refusal> {
        let entry = query as usize;
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if in_use.iter().any(|(other, several_hosts)| *other == entry && !several_hosts) {
            return Err(Refusal::new(
                Reason::Duplicate,
                path,
                "a plugin that no other host of this process uses, or one that offers `several_hosts`",
                "one that is in use",
                "use one host for the whole process",
            ));
        }
        in_use.push((entry, false));
        Ok(Self { entry, is_shared: false })
    }

    fn share(&mut self) {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = in_use.iter_mut().find(|held| **held == self.held()) {
            own.1 = true;
            self.is_shared = true;
        }
    }

    fn held(&self) -> (usize, bool) {
        (self.entry, self.is_shared)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        // A plugin that refuses this host may be in use by another, whose mark stays.
        if let Some(index) = in_use.iter().position(|held| *held == self.held()) {
            in_use.swap_remove(index);
        }
    }
}

/// A plugin that answered well. Its code stays in the process even when this is dropped, unless it is closed.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) library: Option<Library>,
    pub(crate) checked: Checked,
    pub(crate) services: Arc<Services>,
    pub(crate) in_use: InUse,
}

/// Opens the file at `path` and asks the plugin in it. A refused plugin is never closed again: it may have started
/// threads or registered functions that outlive its answer.
pub(crate) fn open(path: &Path, services: Arc<Services>) -> Result<Loaded, Refusal> {
    // SAFETY: initialisers of the library run, which is what loading a plugin means; it was judged before.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let remedy = "install what it needs, or the build of this plugin for this system";
        Refusal::new(Reason::LoadFailed, path, "a plugin that can be loaded", linker_says(&error), remedy)
    })?;
    // SAFETY: the one symbol of the contract has this type.
    let query = unsafe { library.get::<abi::PluginQuery>(abi::ENTRY) }.map(|symbol| *symbol);
    let query = query.map_err(|_| {
        let expected = format!("a plugin that exports `{}`", abi::ENTRY);
        let remedy = "define it with default visibility and C linkage, or remove the file";
        Refusal::new(Reason::EntryMissing, path, expected, "a shared object without it", remedy)
    });
    // SAFETY: the function is the plugin's entry, and the library is kept.
    match query.and_then(|query| unsafe { ask(path, query, services) }) {
        Ok(loaded) => Ok(Loaded { library: Some(library), ..loaded }),
        Err(refusal) => {
            std::mem::forget(library);
            Err(refusal)
        }
    }
}

/// What the dynamic linker said, without the name of the library around it.
fn linker_says(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    format!("`{}`", clean_text(&cause.trim().replace(['\n', '`'], " ")))
}

/// Asks a plugin.
///
/// # Safety
///
/// `query` is the entry of a plugin that stays loaded.
pub(crate) unsafe fn ask(
    path: &Path,
    query: abi::PluginQuery,
    services: Arc<Services>,
) -> Result<Loaded, Refusal> {
    /// Whether a plugin can be shared is known only once it has answered, so hosts ask one after the other.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut in_use = InUse::mark(path, query)?;
    // SAFETY: the caller vouches for the entry.
    match unsafe { answer(path, query, &services) } {
        Ok(checked) => {
            if checked.info.several_hosts {
                in_use.share();
            }
            services.set_name(&checked.info.name);
            Ok(Loaded { library: None, checked, services, in_use })
        }
        Err(refusal) => {
            services.keep_for_ever();
            Err(refusal)
        }
    }
}

/// # Safety
///
/// As for [`ask`].
unsafe fn answer(path: &Path, query: abi::PluginQuery, services: &Arc<Services>) -> Result<Checked, Refusal> {
    let mut answer = Answer { plugin: abi::Plugin::EMPTY, guard: [0; 512] };
    // SAFETY: both structs are the host's own and as large as they say; what the host's points to lives as long as the
    // services do.
    let error = unsafe { query(services.host(), (&raw mut answer).cast()) };
    let failure = errors::outcome(error).err();
    let plugin = &answer.plugin;
    services.set_plugin_context(plugin.context);
    if answer.guard.iter().any(|word| *word != 0) {
        let expected = format!("at most {} bytes written to `plugin`", size_of::<abi::Plugin>());
        return Err(broken(path, &Breach::new("S-3", expected, "more")));
    }
    // A plugin that failed before it said its version has something else to say.
    if failure.is_none() || plugin.contract_major != 0 {
        check_version(path, plugin)?;
    }
    if let Some(failure) = failure {
        return Err(failed(path, &failure));
    }
    if plugin.size as usize > size_of::<abi::Plugin>() {
        let expected = format!("a `plugin` of at most the {} bytes the host gave", size_of::<abi::Plugin>());
        return Err(broken(path, &Breach::new("S-3", expected, format!("one of {} bytes", plugin.size))));
    }
    // SAFETY: the struct is the host's own, and the size it now has is one it really has.
    let plugin = unsafe { take_over(plugin) }.map_err(|breach| broken(path, &breach))?;
    if plugin.sanitizer != abi::SANITIZER {
        let name = |sanitizer: abi::Sanitizer| match (sanitizer, sanitizer.name()) {
            (abi::Sanitizer::NONE, _) => "one built without a sanitizer".to_owned(),
            (_, Some(name)) => format!("one built with `-fsanitize={name}`"),
            (other, None) => format!("one built with the unknown sanitizer {}", other.0),
        };
        let expected = format!("a plugin built as this program is, {}", name(abi::SANITIZER));
        let remedy = "install the build of this plugin for this program";
        return Err(Refusal::new(Reason::SanitizerMismatch, path, expected, name(plugin.sanitizer), remedy));
    }
    // SAFETY: the plugin vouches for what it handed out (rule S-6) and stays loaded.
    unsafe { validate::check(&plugin) }.map_err(|breach| broken(path, &breach))
}

fn check_version(path: &Path, plugin: &abi::Plugin) -> Result<(), Refusal> {
    let spoken = validate::contract_of(plugin);
    let Err(behind) = negotiate(HOST_CONTRACT, spoken) else { return Ok(()) };
    let package = match behind {
        Behind::Host => "oarlock".to_owned(),
        Behind::Plugin => package(path, plugin),
    };
    Err(Refusal::new(
        Reason::ContractVersion,
        path,
        format!("a plugin that speaks contract {HOST_CONTRACT} (rule V-1)"),
        format!("one that speaks {spoken}"),
        format!("update `{package}`"),
    ))
}

/// The package to update. A plugin of another major keeps it elsewhere, so there the file has to do.
fn package(path: &Path, plugin: &abi::Plugin) -> String {
    let file = || path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if plugin.contract_major != HOST_CONTRACT.major || plugin.size < abi::Plugin::SIZE_AT_FIRST {
        return file();
    }
    // SAFETY: the plugin is of the host's major version, whose first fields never move, and vouches for its texts.
    let (package, name) = unsafe { (validate::name(plugin.package, ""), validate::name(plugin.name, "")) };
    package.or(name).unwrap_or_else(|_| file())
}

/// The refusal of a plugin that breaks a rule.
pub(crate) fn broken(path: &Path, breach: &Breach) -> Refusal {
    let reason = match breach.rule {
        "P-1" => Reason::SlotMissing,
        "E-4" | "S-5" => Reason::BadName,
        _ => Reason::ContractBroken,
    };
    let Breach { rule, expected, found } = breach;
    let remedy = "update the plugin, or tell its vendor";
    Refusal::new(reason, path, format!("{expected} (rule {rule})"), found, remedy)
}

/// The refusal of a plugin that said itself that it does not work.
pub(crate) fn failed(path: &Path, failure: &Failure) -> Refusal {
    let remedy = "do what the plugin asks for, or ask its vendor";
    let its_error = format!("its error: {}", clean_text(&failure.to_string()));
    Refusal::new(Reason::PluginError, path, "a plugin that starts", its_error, remedy)
}
