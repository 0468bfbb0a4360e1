//! What is read from shared objects that real compilers made, and from ruins of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_host::{Binding, ENTRY, Elf, Reason, check_symbols, pinning_symbols};

/// The smallest plugin there can be.
const PLUGIN: &str = "int oarlock_plugin_query(void) { return 0; }";

/// A C++ plugin that hides what is its own and uses the standard library as anybody would.
const TIDY_CPP: &str = r#"
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>
struct Queue { virtual ~Queue() {} std::vector<std::string> names; };
static std::map<std::string, std::shared_ptr<Queue>> queues;
extern "C" __attribute__((visibility("default"))) int oarlock_plugin_query() {
    std::ostringstream text;
    text << 1 << std::to_string(2);
    queues[text.str()] = std::make_shared<Queue>();
    return static_cast<int>(queues.size());
}
"#;

fn build(directory: &Path, source: &str, command: &str) -> PathBuf {
    let mut words = command.split(' ');
    let compiler = words.next().unwrap();
    let extension = if compiler.ends_with("++") { "cpp" } else { "c" };
    let input = directory.join("plugin").with_extension(extension);
    let output = directory.join("libplugin.so");
    fs::write(&input, source).unwrap();
    let status = Command::new(compiler).args(words).arg("-o").arg(&output).arg(&input).status().unwrap();
    assert!(status.success(), "{command}");
    output
}

fn compile(source: &str, command: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::read(build(directory.path(), source, command)).unwrap()
}

fn read(bytes: &[u8]) -> Result<Elf, Reason> {
    Elf::read(Path::new("/p/libplugin.so"), bytes).map_err(|refusal| refusal.reason)
}

fn hygiene(elf: &Elf) -> Result<(), Reason> {
    check_symbols(Path::new("/p/libplugin.so"), elf).map_err(|refusal| refusal.reason)
}

#[test]
fn a_c_plugin_exports_its_entry_under_every_hash_style_and_without_section_headers() {
    for style in ["gnu", "sysv", "both"] {
        let bytes = compile(PLUGIN, &format!("cc -shared -fPIC -Wl,--no-as-needed,--hash-style={style}"));
        let elf = read(&bytes).unwrap();
        assert!(elf.exports(ENTRY), "{style}");
        assert_eq!(hygiene(&elf), Ok(()), "{style}");
        assert_eq!(elf.links.needed, ["libc.so.6"], "{style}");
        let mut stripped = bytes;
        stripped[0x28..0x30].fill(0); // e_shoff
        stripped[0x3c..0x40].fill(0); // e_shnum and e_shstrndx
        assert_eq!(read(&stripped), Ok(elf), "{style}");
    }
}

#[test]
fn links_are_read_as_the_linker_was_told() {
    let elf = read(&compile(
        PLUGIN,
        "cc -shared -fPIC -Wl,-soname,libx.so.1,--enable-new-dtags,-rpath,$ORIGIN/lib",
    ));
    let links = elf.unwrap().links;
    assert_eq!(links.soname.as_deref(), Some("libx.so.1"));
    assert_eq!((links.rpath, links.runpath.as_deref()), (None, Some("$ORIGIN/lib")));
    let elf = read(&compile(PLUGIN, "cc -shared -fPIC -Wl,--disable-new-dtags,-rpath,/a:/b"));
    assert_eq!(elf.unwrap().links.rpath.as_deref(), Some("/a:/b"));
}

#[test]
fn a_version_node_is_no_leak_and_a_helper_is() {
    let directory = tempfile::tempdir().unwrap();
    let map = directory.path().join("plugin.map");
    fs::write(&map, "NPU_1 { global: oarlock_plugin_query; local: *; };").unwrap();
    let source = format!("{PLUGIN} int helper(void) {{ return 1; }}");
    let scripted = compile(&source, &format!("cc -shared -fPIC -Wl,--version-script={}", map.display()));
    assert_eq!(hygiene(&read(&scripted).unwrap()), Ok(()));
    assert_eq!(hygiene(&read(&compile(&source, "cc -shared -fPIC")).unwrap()), Err(Reason::SymbolLeak));
}

#[test]
fn a_host_symbol_is_refused_unless_it_is_weak() {
    let calls = "void oarlock_log(void); int oarlock_plugin_query(void) { oarlock_log(); return 0; }";
    assert_eq!(hygiene(&read(&compile(calls, "cc -shared -fPIC")).unwrap()), Err(Reason::HostSymbolImported));
    let weak = "__attribute__((weak)) void oarlock_log(void); int oarlock_plugin_query(void) { return !oarlock_log; }";
    assert_eq!(hygiene(&read(&compile(weak, "cc -shared -fPIC")).unwrap()), Ok(()));
    assert_eq!(
        hygiene(&read(&compile("int other;", "cc -shared -fPIC")).unwrap()),
        Err(Reason::EntryMissing)
    );
}

#[test]
fn a_cpp_plugin_passes_with_hidden_visibility_and_leaks_without() {
    for level in ["-O0", "-O2"] {
        let hidden =
            read(&compile(TIDY_CPP, &format!("c++ -std=c++17 {level} -fvisibility=hidden -shared -fPIC")));
        assert_eq!(hygiene(&hidden.unwrap()), Ok(()), "{level}");
    }
    let leaky = read(&compile(TIDY_CPP, "c++ -std=c++17 -O0 -shared -fPIC"));
    assert_eq!(hygiene(&leaky.unwrap()), Err(Reason::SymbolLeak));
    let whole_library = "c++ -std=c++17 -fvisibility=hidden -static-libstdc++ -static-libgcc -shared -fPIC";
    assert_eq!(hygiene(&read(&compile(TIDY_CPP, whole_library)).unwrap()), Err(Reason::SymbolLeak));
    let excluded = read(&compile(TIDY_CPP, &format!("{whole_library} -Wl,--exclude-libs,ALL")));
    assert_eq!(hygiene(&excluded.unwrap()), Ok(()));
}

#[test]
fn a_symbol_that_pins_the_plugin_is_told_from_the_others() {
    let source = "template<class T> struct S { static int x; }; template<class T> int S<T>::x;\n\
                  extern \"C\" int oarlock_plugin_query() { return S<int>::x; }";
    let unique = read(&compile(source, "g++ -shared -fPIC -fgnu-unique")).unwrap();
    assert_eq!(pinning_symbols(&unique), ["_ZN1SIiE1xE"]);
    let weak = read(&compile(source, "g++ -shared -fPIC -fno-gnu-unique")).unwrap();
    assert_eq!(pinning_symbols(&weak), [""; 0]);
    assert!(weak.exports.iter().any(|export| export.binding == Binding::Weak));
}

#[test]
fn a_rust_plugin_exports_its_entry_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (source, output) = (directory.path().join("plugin.rs"), directory.path().join("libplugin.so"));
    let text = "#[unsafe(no_mangle)] pub extern \"C\" fn oarlock_plugin_query() -> i32 {\n\
                std::panic::catch_unwind(|| format!(\"{}\", std::process::id()).len()).unwrap_or(0) as i32 }";
    fs::write(&source, text).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "-o"])
        .arg(&output)
        .arg(&source)
        .current_dir(&directory)
        .status();
    assert!(status.unwrap().success());
    assert_eq!(hygiene(&read(&fs::read(output).unwrap()).unwrap()), Ok(()));
}

#[test]
fn every_kind_of_file_that_is_no_plugin_has_its_own_reason() {
    let bytes = compile(PLUGIN, "cc -shared -fPIC");
    let changed = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        read(&bytes).unwrap_err()
    };
    assert_eq!(read(b""), Err(Reason::Empty));
    assert_eq!(read(b"\x7fE"), Err(Reason::Truncated));
    assert_eq!(read(&bytes[..40]), Err(Reason::Truncated));
    assert_eq!(read(&bytes[..bytes.len() / 2]), Err(Reason::Truncated));
    assert_eq!(read(&bytes[..bytes.len() - 1]), Err(Reason::Truncated));
    assert_eq!(read(b"#!/bin/sh\nexit 0\n padding"), Err(Reason::NotASharedObject));
    assert_eq!(read(b"no"), Err(Reason::NotASharedObject));
    assert_eq!(changed(4, &[1]), Reason::WrongArchitecture); // 32-bit
    assert_eq!(changed(5, &[3 - bytes[5]]), Reason::WrongArchitecture); // byte order
    assert_eq!(changed(7, &[9]), Reason::WrongArchitecture); // FreeBSD
    assert_eq!(changed(18, &8_u16.to_ne_bytes()), Reason::WrongArchitecture); // MIPS
    let program = format!("{PLUGIN} int main(void) {{ return 0; }}");
    for command in ["cc -fPIE -pie", "cc -fno-PIE -no-pie", "cc -c"] {
        assert_eq!(read(&compile(&program, command)), Err(Reason::NotASharedObject), "{command}");
    }
}

#[test]
fn any_bytes_give_symbols_or_a_refusal() {
    let whole = compile(TIDY_CPP, "c++ -std=c++17 -O0 -shared -fPIC");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    // Small files come from the compiler too, and their tables lie where most changes hit.
    let small = compile(PLUGIN, "cc -shared -fPIC -nostdlib -s");
    for round in 0..6000 {
        let mut bytes = if round % 10 == 0 { whole.clone() } else { small.clone() };
        // Most changes go to the headers and to the tables at the start.
        let reach = if round % 3 == 0 { bytes.len() } else { 0x400.min(bytes.len()) };
        for _ in 0..=random(8) {
            let at = random(reach);
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1 << random(8)][random(6)];
        }
        if random(4) == 0 {
            bytes.truncate(random(bytes.len()));
        }
        if let Ok(elf) = read(&bytes) {
            let _ = hygiene(&elf);
        }
    }
    for length in 0..small.len() {
        assert!(read(&small[..length]).is_err(), "{length}");
    }
}
