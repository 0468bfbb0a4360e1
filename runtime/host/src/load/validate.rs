//! Checks a plugin's answer against the rules that the host enforces, and copies it.

#![expect(unsafe_code, reason = "what is checked lies behind pointers that a plugin gave")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::foreign_struct::{ForeignStruct, RuleBreach, SlotTable, copy_struct};
use crate::load::checked_text::{checked_name, checked_text};
use crate::load::drafts::{KnownProfiles, copy_drafts, judge_drafts};
use crate::load::kernel_checks::{KernelRecord, check_kernels};
use crate::{ContractRange, PluginInfo, PluginKind, SupportLevel};

/// Limit on the other texts of a plugin.
const MAX_TEXT_LENGTH: u64 = 1024;

/// A plugin's answer, checked and copied.
#[derive(Clone, Debug)]
pub(crate) struct CheckedPlugin {
    /// The answer itself, at the size that this host knows. Its texts live as long as the plugin.
    pub(crate) answer: abi::Plugin,
    pub(crate) info: PluginInfo,
    pub(crate) context: *mut c_void,
    pub(crate) tables: PluginTables,
    pub(crate) kernels: Option<abi::KernelTable>,
    pub(crate) rows: Vec<KernelRecord>,
    /// Notes for the user about drafts that are not used.
    pub(crate) notes: Vec<String>,
    pub(crate) unload: Option<unsafe extern "C" fn(*mut c_void) -> abi::Error>,
}

/// Copies of the tables, at the size that this host knows.
#[derive(Clone, Debug)]
pub(crate) struct PluginTables {
    pub(crate) core: Option<abi::CoreTable>,
    pub(crate) r#async: Option<abi::AsyncTable>,
    pub(crate) layer: Option<abi::LayerTable>,
}

impl PluginTables {
    fn profile_names(&self) -> Vec<&'static str> {
        let all =
            [(self.core.is_some(), abi::CoreTable::NAME), (self.r#async.is_some(), abi::AsyncTable::NAME)];
        all.into_iter().filter(|(present, _)| *present).map(|(_, name)| name).collect()
    }
}

/// Checks the answer of a plugin with a compatible version.
///
/// # Safety
///
/// Addresses and sizes in everything that `plugin` points to are as the contract requires, and the memory does not change.
pub(crate) unsafe fn check_answer(plugin: &abi::Plugin) -> Result<CheckedPlugin, RuleBreach> {
    // SAFETY: the caller vouches for the addresses and sizes of the tables, and each is checked for null before it is read.
    let (tables, kernel_table) = unsafe { (copy_tables(plugin)?, copy_optional(plugin.kernels)?) };
    // SAFETY: the caller vouches for the size of the text; its length, null and UTF-8 are checked.
    let name = unsafe { checked_name(plugin.name, "the plugin")? };
    let optional_name = |text: abi::Str, what: &str| {
        // SAFETY: the texts it is called with are the plugin's, for which the caller vouches.
        let name = (!text.is_empty()).then(|| unsafe { checked_name(text, what) });
        name.transpose()
    };
    let device_type = optional_name(plugin.device_type, "the device type")?;
    let kind = plugin_kind(&name, &tables, kernel_table.is_some(), device_type.as_deref())?;
    let rows = match &kernel_table {
        // SAFETY: the table is the host's copy, and the caller vouches for the kernels it leads to.
        Some(table) => unsafe { check_kernels(table, device_type.as_deref())? },
        None => Vec::new(),
    };
    // SAFETY: the texts it is called with are the plugin's, for which the caller vouches.
    let plain = |text: abi::Str, what: &str| unsafe { checked_text(text, what, MAX_TEXT_LENGTH) };
    let package = plain(plugin.package, "package")?;
    let package = if package.is_empty() { name.clone() } else { package };
    // SAFETY: the caller vouches for the list of drafts.
    let provided = unsafe { copy_drafts(plugin)? };
    let (drafts, notes) = judge_drafts(&provided, &KnownProfiles::OF_HOST, &package);
    let unloadable = plugin.offers.contains(abi::PluginFlags::UNLOADABLE);
    if unloadable && plugin.unload.is_none() {
        return Err(RuleBreach::new(
            "P-1",
            "a function in `unload` of a plugin that offers `unloadable`",
            "none",
        ));
    }
    let info = PluginInfo {
        version: plain(plugin.version, "version")?,
        vendor: plain(plugin.vendor, "vendor")?,
        package,
        kind,
        device_subtype: optional_name(plugin.device_subtype, "the device subtype")?,
        visible_devices_variable: optional_name(
            plugin.visible_devices_variable,
            "the variable of visible devices",
        )?,
        support_level: SupportLevel::from_abi(plugin.support_level),
        support_note: plain(plugin.support_note, "support note")?,
        contract: contract_range(plugin),
        profiles: tables.profile_names().into_iter().map(str::to_owned).collect(),
        drafts,
        kernel_count: rows.len(),
        unloadable,
        several_hosts: plugin.offers.contains(abi::PluginFlags::SEVERAL_HOSTS),
        device_type,
        name,
    };
    let (context, unload) = (plugin.context, plugin.unload);
    Ok(CheckedPlugin { answer: *plugin, info, context, tables, kernels: kernel_table, rows, notes, unload })
}

/// The versions of the contract that a plugin understands.
pub(crate) fn contract_range(plugin: &abi::Plugin) -> ContractRange {
    ContractRange {
        major: plugin.contract_major,
        min_minor: plugin.contract_minor_oldest,
        max_minor: plugin.contract_minor,
    }
}

/// Derives the role of the plugin from its tables (rules E-5 and E-6).
fn plugin_kind(
    name: &str,
    tables: &PluginTables,
    kernels: bool,
    device_type: Option<&str>,
) -> Result<PluginKind, RuleBreach> {
    let extra = tables.profile_names().into_iter().find(|profile| *profile != abi::CoreTable::NAME);
    match (&tables.core, device_type, extra) {
        (Some(_), None, _) => Err(RuleBreach::new(
            "E-5",
            format!("a device type of `{name}`, which provides the table `core`"),
            "none",
        )),
        (None, Some(device), _) => {
            Err(RuleBreach::new("E-5", format!("the table `core` for the device type `{device}`"), "none"))
        }
        (None, None, Some(extra)) => {
            Err(RuleBreach::new("E-6", format!("the table `core` beside the table `{extra}`"), "none"))
        }
        (Some(_), Some(_), _) => Ok(PluginKind::Device),
        (None, None, None) if tables.layer.is_some() => Ok(PluginKind::Layer),
        (None, None, None) if kernels => Ok(PluginKind::Kernels),
        (None, None, None) => Err(RuleBreach::new("E-5", "a device, kernels or a layer", "none of them")),
    }
}

/// # Safety
///
/// As for [`check_answer`].
unsafe fn copy_tables(plugin: &abi::Plugin) -> Result<PluginTables, RuleBreach> {
    // SAFETY: the caller vouches for the tables.
    unsafe {
        Ok(PluginTables {
            core: checked_table(plugin.core)?,
            r#async: checked_table(plugin.r#async)?,
            layer: checked_table(plugin.layer)?,
        })
    }
}

/// # Safety
///
/// As for [`copy_struct`].
unsafe fn copy_optional<T: ForeignStruct>(source: *const T) -> Result<Option<T>, RuleBreach> {
    if source.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the struct.
    unsafe { copy_struct(source) }.map(Some)
}

/// Copies a table and checks its slots (rules P-1 and P-2).
///
/// # Safety
///
/// As for [`copy_struct`].
pub(crate) unsafe fn checked_table<T: SlotTable>(source: *const T) -> Result<Option<T>, RuleBreach> {
    // SAFETY: the caller vouches for the table.
    let Some(table) = (unsafe { copy_optional(source)? }) else { return Ok(None) };
    if let Some(slot) = table.missing_required_slot() {
        return Err(RuleBreach::new(
            "P-1",
            format!("a function in `{slot}` of the table `{}`", T::NAME),
            "none",
        ));
    }
    if let Some((one, other)) = table.unpaired_slots() {
        let expected = format!("`{one}` and `{other}` of the table `{}` to be filled together", T::NAME);
        return Err(RuleBreach::new("P-2", expected, "only one of them"));
    }
    Ok(Some(table))
}
