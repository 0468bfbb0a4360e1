//! Asks a custom device which table it was built for, and has it fill one.
//!
//! Its entry gets a struct and a table, each with its size, and fills both if the sizes are those of the release that it was built
//! for. The macro that nearly all custom devices check sizes with refuses only if *both* are wrong. So the adapter first offers
//! each table with a struct of a size that no release has: then the size of the table decides alone. It offers tables of all
//! other sizes too, to name the one that an unknown release has. Refusing costs a custom device a comparison.
//!
//! A custom device that fills a table of an absurd size checks nothing, so nobody can tell what it filled: it is refused.

#![expect(unsafe_code, reason = "the entry is a C function that fills C structs")]

use core::ffi::{CStr, c_char, c_void};

use oarlock_sdk::{PluginError, Result};

use crate::foreign_functions::ForeignFunctions;
use crate::printed_output::with_prints_on_stderr;
use crate::table_layout::{LAYOUTS, TableLayout, WORD_BYTES};

/// The entry of a custom device.
type InitPlugin = unsafe extern "C" fn(*mut RuntimeParams);

/// Words of the memory behind the table that a custom device gets; larger than any table there is.
const TABLE_WORDS: usize = 2048;
/// The largest table that is offered, in words. The rest of the memory catches a custom device that writes past it.
const MOST_WORDS: usize = 1024;
/// A size that no release has, for the struct or the table.
const ABSURD_SIZE: usize = WORD_BYTES;
/// What memory contains that is not the custom device's to write.
const UNTOUCHED: usize = 0x6f61_726c_6f63_6b21;
/// The longest name of a device type, as the contract limits names.
const MAX_NAME: usize = 64;

/// The struct that leads to the table. The fields up to `sub_device_type` are the same in all releases.
#[repr(C)]
struct RuntimeParams {
    size: usize,
    interface: *mut usize,
    version: [usize; 3],
    device_type: *const c_char,
    sub_device_type: *const c_char,
    /// Lists of passes, and reserved.
    rest: [usize; 64],
}

/// What a custom device said about itself.
pub(crate) struct ForeignRuntime {
    pub(crate) device_type: String,
    pub(crate) subtype: String,
    /// The version of the interface.
    pub(crate) version: String,
    pub(crate) layout: &'static TableLayout,
    pub(crate) functions: ForeignFunctions,
}

/// A filled table, with the struct that came with it.
struct FilledTable {
    params: RuntimeParams,
    table: Box<[usize]>,
    /// The bytes up to the last word that was written, if that is beyond the size that was offered.
    overrun: Option<usize>,
}

/// Offers a table; `None` if the custom device refuses it.
///
/// # Safety
///
/// `entry` is the entry of a custom device.
unsafe fn offer_table(entry: InitPlugin, params_size: usize, table_size: usize) -> Option<FilledTable> {
    let words = table_size / WORD_BYTES;
    let mut table = vec![UNTOUCHED; TABLE_WORDS].into_boxed_slice();
    table[..words].fill(0);
    table[0] = table_size;
    let mut params = RuntimeParams {
        size: params_size,
        interface: table.as_mut_ptr(),
        version: [0; 3],
        device_type: core::ptr::null(),
        sub_device_type: core::ptr::null(),
        rest: [0; 64],
    };
    // SAFETY: the caller vouches for the entry; both structs are larger than any that a release has.
    unsafe { entry(&raw mut params) };
    let written = table.iter().rposition(|word| *word != UNTOUCHED).map_or(0, |last| (last + 1) * WORD_BYTES);
    let is_touched = table[0] != table_size || table[1..words].iter().any(|word| *word != 0);
    let is_refused =
        params.device_type.is_null() && params.version == [0; 3] && !is_touched && written <= table_size;
    let overrun = (written > table_size).then_some(written);
    (!is_refused).then_some(FilledTable { params, table, overrun })
}

/// Has the custom device with this entry fill a table.
///
/// # Safety
///
/// `entry` is the address of a function `InitPlugin` that stays loaded.
pub(crate) unsafe fn open_runtime(entry: *const c_void) -> Result<ForeignRuntime> {
    // SAFETY: the caller vouches for the function, whose type the interface defines.
    let entry = unsafe { core::mem::transmute::<*const c_void, InitPlugin>(entry) };
    // SAFETY: as above.
    let (layout, filled) = with_prints_on_stderr(|| unsafe { find_layout(entry) })?;
    if let Some(written) = filled.overrun {
        return Err(PluginError::precondition_not_met(format!(
            "expected a custom device that fills the {} bytes of its table, found one that writes {written}",
            layout.table_size()
        )));
    }
    let [major, minor, patch] = filled.params.version;
    let version = format!("{major}.{minor}.{patch}");
    if (major, minor) != (0, 1) {
        return Err(PluginError::precondition_not_met(format!(
            "expected a custom device with version 0.1 of the interface, found {version}"
        )));
    }
    // SAFETY: the custom device set the texts, or left them null.
    let (device_type, subtype) = unsafe {
        (
            read_name(filled.params.device_type, "device type")?,
            read_name(filled.params.sub_device_type, "variant of the device type")?,
        )
    };
    let device_type = device_type.ok_or_else(|| {
        PluginError::precondition_not_met("expected a custom device with a device type, found none")
    })?;
    // A custom device may keep the address of its table.
    let table = Box::leak(filled.table);
    // SAFETY: the custom device filled the table that has this layout.
    let functions = unsafe { ForeignFunctions::read_table(layout, table) }.map_err(|missing| {
        PluginError::precondition_not_met(format!(
            "expected a custom device with all functions that are required, found `{device_type}` without `{}`",
            missing.join("`, `")
        ))
    })?;
    Ok(ForeignRuntime { device_type, subtype: subtype.unwrap_or_default(), version, layout, functions })
}

/// # Safety
///
/// As for [`offer_table`].
unsafe fn find_layout(entry: InitPlugin) -> Result<(&'static TableLayout, FilledTable)> {
    // SAFETY: the caller vouches for the entry.
    let offer = |params_size, table_size| unsafe { offer_table(entry, params_size, table_size) };
    if offer(ABSURD_SIZE, ABSURD_SIZE).is_some() {
        return Err(unchecked_size());
    }
    for layout in LAYOUTS {
        if let Some(filled) = offer(ABSURD_SIZE, layout.table_size()) {
            return Ok((layout, filled));
        }
    }
    let mut sizes = (2..=MOST_WORDS).map(|words| words * WORD_BYTES);
    if let Some(size) = sizes.find(|size| offer(ABSURD_SIZE, *size).is_some()) {
        return Err(unknown_table(format!("one with a table of {size} bytes")));
    }
    // It does not use the macro, or an improved one: the size of the struct has to be right too.
    if LAYOUTS.iter().any(|layout| offer(layout.params_size, ABSURD_SIZE).is_some()) {
        return Err(unchecked_size());
    }
    for layout in LAYOUTS {
        if let Some(filled) = offer(layout.params_size, layout.table_size()) {
            return Ok((layout, filled));
        }
    }
    Err(unknown_table("one that fills none of them".to_owned()))
}

fn unchecked_size() -> PluginError {
    PluginError::precondition_not_met(format!(
        "expected a custom device that checks the size of its table, found one that fills a table of {ABSURD_SIZE} bytes, so \
         nobody can tell for which release it was built; ask its vendor"
    ))
}

fn unknown_table(found: String) -> PluginError {
    let known: Vec<String> = LAYOUTS
        .iter()
        .map(|layout| format!("{} bytes (PaddlePaddle {})", layout.table_size(), layout.releases))
        .collect();
    PluginError::precondition_not_met(format!(
        "expected a custom device built for a known table, of {}; found {found}; use a build for one of these releases, or \
         update Oarlock",
        known.join(", ")
    ))
}

/// Reads a name that follows the contract's rules for names.
///
/// # Safety
///
/// `text` is null or a text of C.
unsafe fn read_name(text: *const c_char, what: &str) -> Result<Option<String>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the text.
    let name = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_allowed) {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Err(PluginError::precondition_not_met(format!(
            "expected a {what} of 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`, found `{}`",
            shown.escape_debug()
        )));
    }
    Ok(Some(name.into_owned()))
}
