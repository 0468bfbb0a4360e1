//! Code that vendors compile: the headers, the templates and the test plugins, under the strictest settings.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const STRICT_WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];
/// Further warnings that many C++ projects enable.
const STRICT_CPP_WARNINGS: [&str; 2] = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"];
const PUBLIC_HEADERS: [&str; 5] = [
    "oarlock/contract.h",
    "oarlock/contract_draft.h",
    "oarlock/contract_layout.h",
    "oarlock/plugin.h",
    "oarlock/op.h",
];
const C_TEMPLATE_FLAGS: &str = "-std=c11 -O2 -fPIC -shared -Idevice-sdk/include";
const CPP_TEMPLATE_FLAGS: &str =
    "-std=c++17 -O2 -fPIC -fvisibility=hidden -shared -pthread -Idevice-sdk/include";

/// A compiler and a language to compile a header with.
const HEADER_COMPILERS: [[&str; 3]; 4] =
    [["gcc", "c", "c11"], ["clang", "c", "c11"], ["gcc", "c++", "c++17"], ["clang", "c++", "c++17"]];

fn repository_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository")
}

/// Output path for one test.
fn output_path(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("headers");
    fs::create_dir_all(&directory).expect("the directory for temporary files can be written");
    directory.join(name)
}

/// Runs a command in the repository with `input` and returns its output.
fn run_command(command: &mut Command, input: &str) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .current_dir(repository_root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "expected `{program}` to be installed, found: {error}; run `scripts/test`, which installs it"
            )
        });
    child
        .stdin
        .take()
        .expect("stdin is a pipe")
        .write_all(input.as_bytes())
        .expect("the command reads its input");
    let done = child.wait_with_output().expect("the command ends");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && errors.is_empty(),
        "{command:?} with the input\n{input}\nsaid:\n{errors}"
    );
    String::from_utf8(done.stdout).expect("the command prints text")
}

/// Compiles a source that includes `headers` in this order, with every compiler.
fn check_headers_compile(headers: &[&str]) {
    let source: String = headers.iter().map(|header| format!("#include \"{header}\"\n")).collect();
    for [compiler, language, standard] in HEADER_COMPILERS {
        let mut command = Command::new(compiler);
        command.args(["-x", language, &format!("-std={standard}")]).args(STRICT_WARNINGS);
        if language == "c++" {
            command.args(STRICT_CPP_WARNINGS);
        }
        run_command(command.args(["-O2", "-Idevice-sdk/include", "-c", "-o", "/dev/null", "-"]), &source);
    }
}

/// Runs the one-line command from the documentation, with `more` and the warnings, and lists the symbols of the result.
fn build_plugin(compiler: &str, flags: &str, more: &str, name: &str, sources: &str) -> Vec<String> {
    let file = output_path(name);
    let line = format!("{compiler} {flags} {more} -o '{}' {sources}", file.display());
    run_command(Command::new("sh").args(["-c", &line]), "");
    let symbols =
        run_command(Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(file), "");
    symbols.lines().map(str::to_owned).collect()
}

#[test]
fn every_header_compiles_alone() {
    for header in PUBLIC_HEADERS {
        check_headers_compile(&[header]);
    }
}

#[test]
fn every_header_may_be_included_twice() {
    for header in PUBLIC_HEADERS {
        check_headers_compile(&[header, header]);
    }
}

#[test]
fn the_headers_compile_in_any_order() {
    for first in PUBLIC_HEADERS {
        for second in PUBLIC_HEADERS.into_iter().filter(|second| *second != first) {
            check_headers_compile(&[first, second]);
        }
    }
}

#[test]
fn a_failure_before_a_host_has_asked_is_an_error_and_no_crash() {
    let source = "#include \"oarlock/plugin.h\"\n\
        static oarlock_error describe(oarlock_plugin *plugin) { (void)plugin; return 0; }\n\
        OARLOCK_PLUGIN(describe);\n\
        int main(void) {\n\
            oarlock_log(OARLOCK_LOG_LEVEL_ERROR, \"nobody hears this\");\n\
            return OARLOCK_FAIL(OARLOCK_CODE_FATAL, \"too early\") == 0; }\n";
    let program = output_path("too_early");
    let mut compiler = Command::new("cc");
    run_command(
        compiler.args(["-std=c11", "-Idevice-sdk/include", "-x", "c", "-", "-o"]).arg(&program),
        source,
    );
    run_command(&mut Command::new(&program), "");
}

#[test]
fn a_comparison_of_pointers_does_not_compile() {
    for [compiler, language, standard] in HEADER_COMPILERS {
        let compiles = |pointer: &str| {
            let source = format!(
                "#include \"oarlock/plugin.h\"\n\
                 oarlock_error check({pointer} left, {pointer} right);\n\
                 oarlock_error check({pointer} left, {pointer} right) {{\n\
                     OARLOCK_ENFORCE_NE(left, right, OARLOCK_CODE_FATAL, \"the same\"); return 0; }}\n"
            );
            let mut command = Command::new(compiler);
            command.args(["-x", language, &format!("-std={standard}"), "-Idevice-sdk/include"]);
            command.args(["-c", "-o", "/dev/null", "-"]).current_dir(repository_root());
            let started = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
            let mut child = started.expect("the compiler is installed");
            let mut input = child.stdin.take().expect("stdin is a pipe");
            input.write_all(source.as_bytes()).expect("the compiler reads its input");
            drop(input);
            child.wait().expect("the compiler ends").success()
        };
        assert!(compiles("int") && !compiles("char *"), "{compiler} {language}");
    }
}

#[test]
fn the_c_template_builds_with_the_one_line_and_exports_the_entry_alone() {
    let sources = "device-sdk/templates/c/*.c";
    assert_eq!(
        build_plugin("cc", C_TEMPLATE_FLAGS, "", "libcustom_cpu.so", sources),
        ["oarlock_plugin_query"]
    );
}

#[test]
fn the_c_template_builds_without_a_warning() {
    for compiler in ["gcc", "clang"] {
        let name = format!("libcustom_cpu_{compiler}.so");
        let symbols = build_plugin(
            compiler,
            C_TEMPLATE_FLAGS,
            &STRICT_WARNINGS.join(" "),
            &name,
            "device-sdk/templates/c/*.c",
        );
        assert_eq!(symbols, ["oarlock_plugin_query"]);
    }
}

/// The sources of a new plugin, below `device-sdk/templates`, and where their headers are.
fn template_sources(language: &str, kind: &str) -> String {
    let place = format!("device-sdk/templates/{language}");
    match kind {
        "graph" => format!(
            "-I{place}/device -I{place}/graph {place}/graph/*.{language} {place}/device/[!p]*.{language}"
        ),
        kind => format!("{place}/{kind}/*.{language}"),
    }
}

#[test]
fn every_template_builds_without_a_warning_and_exports_nothing_else_of_its_own() {
    let cpp_warnings = [&STRICT_WARNINGS[..], &STRICT_CPP_WARNINGS].concat().join(" ");
    for (compiler, language, flags, warnings) in [
        ("gcc", "c", C_TEMPLATE_FLAGS, STRICT_WARNINGS.join(" ")),
        ("clang", "c", C_TEMPLATE_FLAGS, STRICT_WARNINGS.join(" ")),
        ("g++", "cpp", CPP_TEMPLATE_FLAGS, cpp_warnings.clone()),
        ("clang++", "cpp", CPP_TEMPLATE_FLAGS, cpp_warnings),
    ] {
        for kind in ["device", "kernels", "layer", "graph"] {
            let name = format!("libsample_npu_{kind}_{compiler}.so");
            let sources = format!("{} -pthread -lm", template_sources(language, kind));
            let symbols = build_plugin(compiler, flags, &warnings, &name, &sources);
            // The headers of the standard library export their templates regardless of the flags.
            let is_standard = |symbol: &String| {
                ["_ZNS", "_ZTISt", "_ZTSSt", "_ZTVSt", "_ZZNSt"].iter().any(|start| symbol.starts_with(start))
            };
            let own: Vec<_> = symbols.iter().filter(|symbol| !is_standard(symbol)).collect();
            assert_eq!(own, ["oarlock_plugin_query"], "{compiler} {kind}");
        }
    }
}

#[test]
fn an_exception_and_an_error_that_is_thrown_become_errors() {
    let source = "#include <stdexcept>\n\
        #include \"oarlock/plugin.h\"\n\
        static_assert(oarlock::str(\"Add\").size == 3 && oarlock::str(\"Add\").data[2] == 'd');\n\
        static oarlock_code made;\n\
        static oarlock_error create(void *, const oarlock_error_info *info) { made = info->code; return 7; }\n\
        static void refuse(uint32_t id) { if (id > 1) OARLOCK_THROW(OARLOCK_CODE_NOT_FOUND, \"expected 1, not %u\", id);\n\
            if (id > 0) throw std::runtime_error(\"other\"); }\n\
        static oarlock_error describe(oarlock_plugin *) { return 0; }\n\
        OARLOCK_PLUGIN(describe);\n\
        int main() {\n\
            oarlock_host_table table{};\n\
            table.error_create = create;\n\
            oarlock_linked_host.services = &table;\n\
            const auto slot = oarlock::slot<refuse>;\n\
            if (slot(nullptr, 0) != 0 || slot(nullptr, 2) != 7 || made != OARLOCK_CODE_NOT_FOUND) return 1;\n\
            return slot(nullptr, 1) == 7 && made == OARLOCK_CODE_FATAL ? 0 : 1; }\n";
    for compiler in ["g++", "clang++"] {
        let program = output_path(&format!("thrown_{compiler}"));
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-Idevice-sdk/include", "-x", "c++", "-", "-o"]).arg(&program);
        run_command(&mut command, source);
        run_command(&mut Command::new(&program), "");
    }
}

#[test]
fn the_plugins_of_the_tests_are_wrong_in_no_way_that_a_compiler_sees() {
    let directory = repository_root().join("tests/plugins");
    for entry in fs::read_dir(directory).expect("the plugins are there") {
        let path = entry.expect("the directory can be read").path();
        let readers = match path.extension().and_then(|extension| extension.to_str()) {
            Some("c") => [("gcc", C_TEMPLATE_FLAGS), ("clang", C_TEMPLATE_FLAGS)],
            Some("cpp") => [("g++", CPP_TEMPLATE_FLAGS), ("clang++", CPP_TEMPLATE_FLAGS)],
            _ => continue,
        };
        for (compiler, flags) in readers {
            let source = format!("'{}'", path.display());
            build_plugin(compiler, flags, &STRICT_WARNINGS.join(" "), "plugin.so", &source);
        }
    }
}

#[test]
fn the_readme_of_the_plugins_lists_every_plugin() {
    let directory = repository_root().join("tests/plugins");
    let readme = fs::read_to_string(directory.join("README.md")).expect("the README is there");
    for entry in fs::read_dir(directory).expect("the plugins are there") {
        let name = entry.expect("the directory can be read").file_name().to_string_lossy().into_owned();
        if name.ends_with(".c") || name.ends_with(".cpp") {
            assert!(
                readme.contains(&format!("| `{name}` |")),
                "tests/plugins/README.md does not list `{name}`"
            );
        }
    }
}
