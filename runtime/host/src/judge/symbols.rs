//! Symbol hygiene: a plugin exports one symbol and imports none from the host.
//!
//! A plugin is loaded with `RTLD_LOCAL`, yet an exported symbol can still be bound by a library that the plugin loads,
//! collide with another copy in the program, or become an unintended interface. So every exported symbol other than the entry
//! is a leak, including C++ inline functions, type information and vtables of the vendor's own classes. Two kinds are
//! permitted, because a vendor cannot avoid them:
//!
//! - symbols that the linker itself defines ([`MADE_BY_LINKER`]);
//! - weak and unique symbols in the namespaces of the C++ standard library. Its headers declare them with default visibility,
//!   so a plugin exports each `std::vector` that it uses even with `-fvisibility=hidden`. Strong ones are a leak: they mean that
//!   the whole standard library was linked statically and left visible.
//!
//! A Rust `cdylib` exports only its `no_mangle` items and needs no exception.

use std::path::Path;

use crate::judge::elf::{ExportedSymbol, SharedObject, SymbolBinding};
use crate::{Refusal, RefusalReason, sanitize_text};

/// The only symbol that a plugin exports.
pub const ENTRY_SYMBOL: &str = "oarlock_plugin_query";

/// Symbols that the linker, or the startup files of the C library, define in objects linked by older tools.
const MADE_BY_LINKER: [&str; 6] = ["_init", "_fini", "__bss_start", "_edata", "_end", "_etext"];

/// The entry points of plugins for other programs, each with a name for such plugins.
const FOREIGN_ENTRIES: [(&str, &str); 5] = [
    ("InitPlugin", "a custom device of PaddlePaddle"),
    ("GetPjrtApi", "a PJRT plugin"),
    ("CreateEpFactories", "an execution provider of onnxruntime"),
    ("create_plugin_engine", "a plugin of OpenVINO"),
    ("ggml_backend_init", "a backend of ggml"),
];

/// The number of symbols that a message names before it counts the rest.
const NAMED_IN_MESSAGE: usize = 4;

/// Refuses a plugin that lacks the entry, exports more than the entry, or imports from the host.
pub fn check_symbols(path: &Path, elf: &SharedObject) -> Result<(), Refusal> {
    if !elf.exports_symbol(ENTRY_SYMBOL) {
        return Err(missing_entry(path, elf));
    }
    let leaks: Vec<&str> =
        elf.exports.iter().filter(|export| is_leak(export)).map(|e| e.name.as_str()).collect();
    if !leaks.is_empty() {
        return Err(Refusal::new(
            RefusalReason::SymbolLeak,
            path,
            format!("no exported symbol but `{ENTRY_SYMBOL}`"),
            list_symbols(&leaks),
            "compile with `-fvisibility=hidden` and link with `-Wl,--exclude-libs,ALL`, or with a version script \
             that makes all else local",
        ));
    }
    let host: Vec<&str> =
        elf.imports.iter().map(String::as_str).filter(|n| n.starts_with("oarlock_")).collect();
    if !host.is_empty() {
        return Err(Refusal::new(
            RefusalReason::HostSymbolImported,
            path,
            "a plugin that calls host services through its table",
            format!("an import of {}", list_symbols(&host)),
            "call through the host table instead of linking to the host",
        ));
    }
    Ok(())
}

/// The refusal of a file without the entry. A plugin for another program has a different entry, and the refusal names it.
fn missing_entry(path: &Path, elf: &SharedObject) -> Refusal {
    let foreign = FOREIGN_ENTRIES.iter().find(|(symbol, _)| elf.exports_symbol(symbol));
    let (found, remedy) = match foreign {
        Some((symbol, kind)) => (
            format!("`{symbol}`, the entry of {kind}"),
            "this program has no adapter for such plugins; `Write a device in C` in the book shows how to write one for Oarlock",
        ),
        None => (
            "a shared object without it".to_owned(),
            "define it with default visibility and C linkage, or remove the file from the plugin directory",
        ),
    };
    let expected = format!("a plugin that exports `{ENTRY_SYMBOL}`");
    Refusal::new(RefusalReason::EntryMissing, path, expected, found, remedy)
}

/// The symbols that keep the dynamic linker from ever unloading the object.
pub fn pinning_symbols(elf: &SharedObject) -> Vec<&str> {
    let unique = elf.exports.iter().filter(|export| export.binding == SymbolBinding::Unique);
    unique.map(|export| export.name.as_str()).collect()
}

/// Names the first few of `symbols` and counts the others.
pub(crate) fn list_symbols(symbols: &[&str]) -> String {
    let named: Vec<String> =
        symbols.iter().take(NAMED_IN_MESSAGE).map(|name| format!("`{}`", shorten_symbol(name))).collect();
    let rest = symbols.len().saturating_sub(NAMED_IN_MESSAGE);
    if rest == 0 { named.join(", ") } else { format!("{} and {rest} more", named.join(", ")) }
}

/// A mangled name can have thousands of characters; the beginning suffices.
fn shorten_symbol(name: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    let start: String = name.chars().take(MAX_CHARACTERS).collect();
    let rest = if start.len() < name.len() { "…" } else { "" };
    sanitize_text(&start) + rest
}

fn is_leak(export: &ExportedSymbol) -> bool {
    let ExportedSymbol { name, binding } = export;
    let forced_by_headers = *binding != SymbolBinding::Strong && is_standard_library(name);
    name != ENTRY_SYMBOL && !MADE_BY_LINKER.contains(&name.as_str()) && !forced_by_headers
}

/// True if a mangled C++ name lies in `std`, `__gnu_cxx` or `__cxxabiv1`, or is the placement form of `new` or `delete`. The
/// grammar is that of the Itanium C++ ABI, which every Linux compiler follows.
fn is_standard_library(name: &str) -> bool {
    /// Mangled prefixes: type information, guards of static variables, names local to a function, nested names.
    const PREFIXES: [&str; 8] = ["TV", "TI", "TS", "TT", "GV", "GR", "Z", "N"];
    /// `St` is `std`; the others abbreviate its templates, such as `Ss` for `std::string`.
    const NAMESPACES: [&str; 9] = ["St", "Sa", "Sb", "Ss", "Si", "So", "Sd", "9__gnu_cxx", "10__cxxabiv1"];
    const PLACEMENT: [&str; 4] = ["nwmPv", "namPv", "dlPvS_", "daPvS_"];
    let Some(mut rest) = name.strip_prefix("_Z") else { return false };
    if PLACEMENT.contains(&rest) {
        return true;
    }
    while let Some(inner) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = inner;
    }
    let rest = rest.trim_start_matches(['r', 'V', 'K', 'R', 'O']);
    NAMESPACES.iter().any(|namespace| rest.starts_with(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_export(name: &str, binding: SymbolBinding) -> ExportedSymbol {
        ExportedSymbol { name: name.to_owned(), binding }
    }

    fn make_object(extra: Vec<ExportedSymbol>, imports: &[&str]) -> SharedObject {
        let mut exports = vec![make_export(ENTRY_SYMBOL, SymbolBinding::Strong)];
        exports.extend(extra);
        SharedObject {
            exports,
            imports: imports.iter().map(|name| (*name).to_owned()).collect(),
            ..SharedObject::default()
        }
    }

    fn refusal_reason(elf: &SharedObject) -> Option<RefusalReason> {
        check_symbols(Path::new("/p/libx.so"), elf).err().map(|refusal| refusal.reason)
    }

    #[test]
    fn only_the_entry_is_needed_and_linker_symbols_pass() {
        assert_eq!(
            refusal_reason(&make_object(vec![make_export("_edata", SymbolBinding::Strong)], &["malloc"])),
            None
        );
        assert_eq!(refusal_reason(&SharedObject::default()), Some(RefusalReason::EntryMissing));
    }

    #[test]
    fn a_plugin_for_another_program_is_named() {
        for (symbol, kind) in FOREIGN_ENTRIES {
            let exports = vec![make_export(symbol, SymbolBinding::Strong)];
            let object = SharedObject { exports, ..SharedObject::default() };
            let refusal = check_symbols(Path::new("/p/libx.so"), &object).expect_err(symbol);
            assert_eq!(refusal.reason, RefusalReason::EntryMissing);
            assert!(
                refusal.to_string().contains(&format!("found `{symbol}`, the entry of {kind}")),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_vendors_own_classes_leak_whatever_their_binding() {
        for name in ["_ZN3npu5QueueC1Ev", "_ZTVN3npu5QueueE", "_ZTI5Queue", "_ZZN3npu3oneEvE1x", "helper"] {
            for binding in [SymbolBinding::Strong, SymbolBinding::Weak, SymbolBinding::Unique] {
                assert_eq!(
                    refusal_reason(&make_object(vec![make_export(name, binding)], &[])),
                    Some(RefusalReason::SymbolLeak),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn standard_library_templates_pass_unless_they_are_strong() {
        let names = [
            "_ZNSt6vectorIiSaIiEE9push_backEOi",
            "_ZNKSt6vectorIiSaIiEE4sizeEv",
            "_ZTISt19_Sp_make_shared_tag",
            "_ZZNSt8__detail18__to_chars_10_implIjEEvPcjT_E8__digits",
            "_ZGVZNKSt8__detail11_AnyMatcherINSt7__cxx1112regex_traitsIcEELb0ELb0ELb0EEclEcE5__nul",
            "_ZN9__gnu_cxx11char_traitsIcE2eqERKcS3_",
            "_ZNSs6appendEPKc",
            "_ZnwmPv",
        ];
        for name in names {
            assert_eq!(
                refusal_reason(&make_object(vec![make_export(name, SymbolBinding::Weak)], &[])),
                None,
                "{name}"
            );
            assert_eq!(
                refusal_reason(&make_object(vec![make_export(name, SymbolBinding::Strong)], &[])),
                Some(RefusalReason::SymbolLeak),
                "{name}"
            );
        }
        assert_eq!(
            refusal_reason(&make_object(vec![make_export("_Znwm", SymbolBinding::Weak)], &[])),
            Some(RefusalReason::SymbolLeak)
        );
    }

    #[test]
    fn a_host_symbol_is_refused_and_the_message_counts_what_it_does_not_name() {
        assert_eq!(
            refusal_reason(&make_object(vec![], &["oarlock_log"])),
            Some(RefusalReason::HostSymbolImported)
        );
        let many = (0..9).map(|n| make_export(&format!("leak_{n}"), SymbolBinding::Strong)).collect();
        let refusal = check_symbols(Path::new("/p/libx.so"), &make_object(many, &[])).unwrap_err();
        assert_eq!(refusal.found, "`leak_0`, `leak_1`, `leak_2`, `leak_3` and 5 more");
    }
}
