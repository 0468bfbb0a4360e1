//! Checks what a plugin answered to the query against the rules that the host is to notice, and copies it out.

#![expect(unsafe_code, reason = "what is checked lies behind pointers that a plugin gave")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::load::drafts::{KnownProfiles, brought_drafts, judge_drafts};
use crate::load::foreign::{Breach, Foreign, Slots, take_over};
use crate::load::kernel_checks::{KernelRecord, kernels};
use crate::{ContractRange, Kind, PluginInfo, SupportLevel, clean_text};

/// The longest name (rule E-4).
const LONGEST_NAME: u64 = 64;
/// The longest of the other texts of a plugin.
const LONGEST_TEXT: u64 = 1024;

/// Everything a plugin handed out, checked and copied.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) info: PluginInfo,
    pub(crate) context: *mut c_void,
    pub(crate) tables: Tables,
    pub(crate) kernels: Option<abi::KernelTable>,
    pub(crate) rows: Vec<KernelRecord>,
    /// What the user should know of drafts that are not used.
    pub(crate) notes: Vec<String>,
    pub(crate) unload: Option<unsafe extern "C" fn(*mut c_void) -> abi::Error>,
}

/// Copies of the tables, as large as this host knows them.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) core: Option<abi::CoreTable>,
    pub(crate) r#async: Option<abi::AsyncTable>,
    pub(crate) layer: Option<abi::LayerTable>,
}

impl Tables {
    /// The profiles that are there.
    fn profiles(&self) -> Vec<&'static str> {
        let all =
            [(self.core.is_some(), abi::CoreTable::NAME), (self.r#async.is_some(), abi::AsyncTable::NAME)];
        all.into_iter().filter(|(present, _)| *present).map(|(_, name)| name).collect()
    }
}

/// Checks the answer of a plugin whose version the host speaks.
///
/// # Safety
///
/// What `plugin` points to is what the contract says, as far as addresses and sizes go, and does not change.
pub(crate) unsafe fn check(plugin: &abi::Plugin) -> Result<Checked, Breach> {
    // SAFETY: the caller vouches for the addresses and sizes of the tables, and each is checked for null before it is read.
    let (tables, kernel_table) = unsafe { (tables(plugin)?, optional(plugin.kernels)?) };
    // SAFETY: the caller vouches that a text has the size it says; its length, null and UTF-8 are checked.
    let name = unsafe { name(plugin.name, "the plugin")? };
    let optional_name = |text: abi::Str, what: &str| {
        // SAFETY: the texts it is called with are the plugin's, for which the caller vouches.
        let name = (!text.is_empty()).then(|| unsafe { self::name(text, what) });
        name.transpose()
    };
    let device_type = optional_name(plugin.device_type, "the device type")?;
    let kind = kind(&name, &tables, kernel_table.is_some(), device_type.as_deref())?;
    let rows = match &kernel_table {
        // SAFETY: the table is the host's copy, and the caller vouches for the kernels it leads to.
        Some(table) => unsafe { kernels(table, device_type.as_deref())? },
        None => Vec::new(),
    };
    // SAFETY: the texts it is called with are the plugin's, for which the caller vouches.
    let plain = |text: abi::Str, what: &str| unsafe { self::text(text, what, LONGEST_TEXT) };
    let package = plain(plugin.package, "package")?;
    let package = if package.is_empty() { name.clone() } else { package };
    // SAFETY: the caller vouches for the list of drafts.
    let brought = unsafe { brought_drafts(plugin)? };
    let (drafts, notes) = judge_drafts(&brought, &KnownProfiles::OURS, &package);
    let unloadable = plugin.offers.contains(abi::PluginFlags::UNLOADABLE);
    if unloadable && plugin.unload.is_none() {
        return Err(Breach::new(
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
        support_level: SupportLevel::of(plugin.support_level),
        support_note: plain(plugin.support_note, "support note")?,
        contract: contract_of(plugin),
        profiles: tables.profiles().into_iter().map(str::to_owned).collect(),
        drafts,
        kernel_count: rows.len(),
        unloadable,
        several_hosts: plugin.offers.contains(abi::PluginFlags::SEVERAL_HOSTS),
        device_type,
        name,
    };
    let (context, unload) = (plugin.context, plugin.unload);
    Ok(Checked { info, context, tables, kernels: kernel_table, rows, notes, unload })
}

/// The versions of the contract a plugin speaks.
pub(crate) fn contract_of(plugin: &abi::Plugin) -> ContractRange {
    ContractRange {
        major: plugin.contract_major,
        min_minor: plugin.contract_minor_oldest,
        max_minor: plugin.contract_minor,
    }
}

/// What the plugin is for (rules E-5 and E-6).
fn kind(name: &str, tables: &Tables, kernels: bool, device_type: Option<&str>) -> Result<Kind, Breach> {
    let extra = tables.profiles().into_iter().find(|profile| *profile != abi::CoreTable::NAME);
    match (&tables.core, device_type, extra) {
        (Some(_), None, _) => Err(Breach::new(
            "E-5",
            format!("a device type of `{name}`, which brings the table `core`"),
            "none",
        )),
        (None, Some(device), _) => {
            Err(Breach::new("E-5", format!("the table `core` for the device type `{device}`"), "none"))
        }
        (None, None, Some(extra)) => {
            Err(Breach::new("E-6", format!("the table `core` beside the table `{extra}`"), "none"))
        }
        (Some(_), Some(_), _) => Ok(Kind::Device),
        (None, None, None) if tables.layer.is_some() => Ok(Kind::Layer),
        (None, None, None) if kernels => Ok(Kind::Kernels),
        (None, None, None) => Err(Breach::new("E-5", "a device, kernels or a layer", "none of them")),
    }
}

/// # Safety
///
/// As for [`check`].
unsafe fn tables(plugin: &abi::Plugin) -> Result<Tables, Breach> {
    // SAFETY: the caller vouches for the tables.
    unsafe {
        Ok(Tables { core: table(plugin.core)?, r#async: table(plugin.r#async)?, layer: table(plugin.layer)? })
    }
}

/// # Safety
///
/// As for [`take_over`].
unsafe fn optional<T: Foreign>(source: *const T) -> Result<Option<T>, Breach> {
    if source.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the struct.
    unsafe { take_over(source) }.map(Some)
}

/// A table with its slots checked (rules P-1 and P-2).
///
/// # Safety
///
/// As for [`take_over`].
pub(crate) unsafe fn table<T: Slots>(source: *const T) -> Result<Option<T>, Breach> {
    // SAFETY: the caller vouches for the table.
    let Some(table) = (unsafe { optional(source)? }) else { return Ok(None) };
    if let Some(slot) = table.empty_required() {
        return Err(Breach::new("P-1", format!("a function in `{slot}` of the table `{}`", T::NAME), "none"));
    }
    if let Some((one, other)) = table.broken_pair() {
        let expected = format!("`{one}` and `{other}` of the table `{}` to be filled together", T::NAME);
        return Err(Breach::new("P-2", expected, "only one of them"));
    }
    Ok(Some(table))
}

/// A name (rule E-4).
///
/// # Safety
///
/// The text is readable.
pub(crate) unsafe fn name(text: abi::Str, what: &str) -> Result<String, Breach> {
    let expected = format!("a name of {what} with 1 to {LONGEST_NAME} letters, digits, `-`, `_` and `.`");
    if text.size == 0 || text.size > LONGEST_NAME {
        return Err(Breach::new("E-4", expected, format!("{} bytes", text.size)));
    }
    // SAFETY: the caller vouches for the text.
    let Some(bytes) = (unsafe { text.bytes() }) else {
        return Err(Breach::new("S-5", expected, "a null pointer"));
    };
    match std::str::from_utf8(bytes) {
        Ok(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) => {
            Ok(name.to_owned())
        }
        Ok(name) => Err(Breach::new("E-4", expected, format!("`{}`", name.escape_debug()))),
        Err(_) => {
            Err(Breach::new("S-5", expected, format!("bytes that are not UTF-8, `{}`", bytes.escape_ascii())))
        }
    }
}

/// Any other text (rule S-5), fit to be shown.
///
/// # Safety
///
/// The text is readable.
pub(crate) unsafe fn text(text: abi::Str, what: &str, longest: u64) -> Result<String, Breach> {
    let expected = format!("a {what} of at most {longest} bytes of UTF-8");
    if text.size > longest {
        return Err(Breach::new("S-5", expected, format!("{} bytes", text.size)));
    }
    // SAFETY: the caller vouches for the text.
    match unsafe { text.text() } {
        Some(text) => Ok(clean_text(text)),
        None if text.data.is_null() => Err(Breach::new("S-5", expected, "a null pointer")),
        None => Err(Breach::new("S-5", expected, "bytes that are not UTF-8")),
    }
}
