//! The C API as users get it: installed, found by pkg-config or CMake, compiled under the strictest settings, and run.

mod model;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use oarlock_capi::codegen;
use oarlock_sdk::abi;
use oarlock_tests::plugin_compiler;
use tempfile::TempDir;

const WARNING_FLAGS: [&str; 6] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Werror"];
const C_COMPILERS: [&str; 2] = ["gcc", "clang"];
const CPP_COMPILERS: [&str; 2] = ["g++", "clang++"];

fn repository_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository")
}

/// The library, which cargo builds next to this test.
fn library_path() -> PathBuf {
    std::env::current_exe().expect("this test is a file").with_file_name("liboarlock_capi.so")
}

/// Installs the library, once for all tests.
fn install_prefix() -> &'static Path {
    static INSTALL_PREFIX: OnceLock<PathBuf> = OnceLock::new();
    INSTALL_PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
        run_command(
            Command::new(repository_root().join("scripts/install-capi"))
                .arg("--library")
                .arg(library_path())
                .arg(&prefix),
        );
        prefix
    })
}

/// Runs a command in the repository and returns its output.
fn run_command(command: &mut Command) -> String {
    let done = command.current_dir(repository_root()).output();
    let done = done.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let (message, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && errors.is_empty(), "{command:?} said:\n{message}{errors}");
    message.into_owned()
}

/// Output of pkg-config for the installed library, split by a shell, since paths may contain spaces.
fn pkg_config_flags(what: &str) -> Vec<String> {
    let mut command = Command::new("sh");
    command.args(["-c", r#"eval "set -- $(pkg-config $0 oarlock)"; printf '%s\n' "$@""#, what]);
    command.env("PKG_CONFIG_PATH", install_prefix().join("lib/pkgconfig"));
    run_command(&mut command).lines().map(str::to_owned).collect()
}

/// Compiles one source against the installed library, with the sanitizer that the library expects of the program.
fn compile_source(compiler: &str, standard: &str, source: &Path, program: &Path) {
    let sanitizer = abi::SANITIZER.name().filter(|_| abi::SANITIZER != abi::Sanitizer::NONE);
    let mut command = Command::new(match (compiler, sanitizer) {
        ("cc", Some(_)) => "clang",
        ("c++", Some(_)) => "clang++",
        _ => compiler,
    });
    command
        .arg(format!("-std={standard}"))
        .args(WARNING_FLAGS)
        .args(["-O1", "-pthread"])
        .args(pkg_config_flags("--cflags"));
    command.arg(source).arg("-o").arg(program).args(pkg_config_flags("--libs"));
    if let Some(name) = sanitizer {
        // The compiler's own sanitizer runtime may lack symbols that Rust's has.
        let libraries = run_command(Command::new("rustc").args(["--print", "target-libdir"]));
        let code = format!("librustc-nightly_rt.{}san.a", &name[..1]);
        command.args([&format!("-fsanitize={name}"), "-fno-sanitize-link-runtime", "-rdynamic"]);
        command.arg("-Wl,--whole-archive").arg(Path::new(libraries.trim()).join(code));
        command.args(["-Wl,--no-whole-archive", "-lm", "-ldl", "-lrt", "-lstdc++"]);
    }
    run_command(command.arg(format!("-Wl,-rpath,{}", install_prefix().join("lib").display())));
}

/// A directory with the models that the programs run.
fn models_directory() -> TempDir {
    let place = TempDir::new().expect("a directory for temporary files");
    fs::write(place.path().join("sums.onnx"), model::sums_model()).expect("it can be written");
    fs::write(place.path().join("pair.onnx"), model::pair_model()).expect("it can be written");
    place
}

/// Compiles a source text without linking it.
fn check_compiles(compiler: &str, standard: &str, text: &str) {
    let place = TempDir::new().expect("a directory for temporary files");
    let source = place.path().join(if standard.starts_with("c++") { "it.cpp" } else { "it.c" });
    fs::write(&source, text).expect("it can be written");
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(WARNING_FLAGS).arg("-Iruntime/capi/include");
    if standard.starts_with("c++") {
        command.args(["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]);
    }
    run_command(command.args(["-c", "-o", "/dev/null"]).arg(source));
}

#[test]
fn the_headers_compile_alone_and_twice_without_a_warning() {
    let twice = |header: &str| format!("#include <{header}>\n#include <{header}>\nint it;\n");
    for compiler in C_COMPILERS {
        check_compiles(compiler, "c11", &twice("oarlock.h"));
    }
    for compiler in CPP_COMPILERS {
        check_compiles(compiler, "c++17", &twice("oarlock.h"));
        check_compiles(compiler, "c++17", &twice("oarlock.hpp"));
    }
}

#[test]
fn compilers_of_c_lay_structs_out_as_the_library_does() {
    for compiler in C_COMPILERS {
        check_compiles(compiler, "c11", &codegen::render_layout_check());
    }
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let listed = run_command(
        Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(library_path()),
    );
    let mut exported: Vec<&str> = listed.lines().collect();
    let functions = codegen::list_functions();
    let mut declared: Vec<&str> = functions.iter().map(|function| function.name).collect();
    exported.sort_unstable();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}

#[test]
fn the_library_has_the_name_that_changes_with_the_abi_alone_and_stays_loaded() {
    let message = run_command(Command::new("readelf").args(["-d", "-W"]).arg(library_path()));
    assert!(message.contains("Library soname: [liboarlock.so.1]"), "{message}");
    assert!(message.contains("NODELETE"), "{message}");
}

#[test]
fn the_example_in_c_runs_a_model() {
    let place = models_directory();
    let program = place.path().join("run_c");
    compile_source("cc", "c11", &repository_root().join("runtime/capi/examples/run.c"), &program);
    let message = run_command(Command::new(program).arg(place.path().join("sums.onnx")).arg("cpu"));
    let version = env!("CARGO_PKG_VERSION");
    let expected =
        format!("Oarlock {version} on cpu:0\nsum: f32[batch, 3] = 1 3 5\ntwice: f32[batch, 3] = 2 6 10\n");
    assert_eq!(message, expected);
}

#[test]
fn the_example_in_cpp_runs_a_model() {
    let place = models_directory();
    let program = place.path().join("run_cpp");
    compile_source("c++", "c++17", &repository_root().join("runtime/capi/examples/run.cpp"), &program);
    let message = run_command(Command::new(program).arg(place.path().join("sums.onnx")));
    assert_eq!(message, "1 2 3 1 2 3 \n");
}

#[test]
fn the_examples_say_what_is_wrong_with_a_file() {
    let place = models_directory();
    for (compiler, standard, source) in [("cc", "c11", "run.c"), ("c++", "c++17", "run.cpp")] {
        let program = place.path().join("run");
        compile_source(
            compiler,
            standard,
            &repository_root().join("runtime/capi/examples").join(source),
            &program,
        );
        let done = Command::new(&program).arg("/nowhere.onnx").output().expect("it can be started");
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && message.contains("`/nowhere.onnx`"), "{source}: {message}");
    }
}

#[test]
fn misuse_is_an_error_and_threads_share_a_session() {
    let place = models_directory();
    for source in ["misuse.c", "values.c"] {
        let program = place.path().join(source).with_extension("");
        compile_source("cc", "c11", &repository_root().join("tests/tests/capi").join(source), &program);
        let mut command = Command::new(program);
        run_command(command.arg(place.path().join("sums.onnx")).arg(place.path().join("pair.onnx")));
    }
}

/// Compiles a program and runs it on the simulated device with a script.
fn run_simulated(source: &str, script: &str) {
    let place = models_directory();
    let (plugin, config) = (place.path().join("sim.so"), place.path().join("config.toml"));
    fs::copy(library_path().with_file_name("liboarlock_plugin_sim.so"), &plugin)
        .expect("it is built beside this");
    let manifest = "name = 'oarlock-sim'\nversion = '0.1.0'\nkind = 'device'\ndevice_type = 'sim'\n\
        profiles = ['core', 'async']\n";
    let abi::Versions { major, oldest_minor, newest_minor } = abi::Versions::OURS;
    let contract = format!("contract = '{major}.{oldest_minor}..{major}.{newest_minor}'\n");
    let architecture = format!("architecture = '{}-linux'\n", std::env::consts::ARCH);
    let manifest = format!("{manifest}{contract}{architecture}");
    fs::write(plugin.with_extension("oarlock.toml"), manifest).expect("it can be written");
    fs::write(&config, format!("[plugin.oarlock-sim]\nscript = '{script}'\n")).expect("it can be written");
    let program = place.path().join("program");
    compile_source("cc", "c11", &repository_root().join("tests/tests/capi").join(source), &program);
    run_command(Command::new(program).arg(plugin).arg(config).arg(place.path().join("sums.onnx")));
}

#[test]
fn an_op_of_a_plugin_is_called() {
    let place = models_directory();
    let (plugin, program) = (place.path().join("ops.so"), place.path().join("program"));
    let mut compiler = plugin_compiler(false, abi::SANITIZER == abi::Sanitizer::ADDRESS);
    run_command(compiler.arg("-o").arg(&plugin).arg(repository_root().join("tests/plugins/declared_ops.c")));
    let contract = oarlock_host::HOST_CONTRACT;
    let manifest = format!(
        "name = 'declared-c'\nversion = '0'\nkind = 'kernels'\ncontract = '{contract}'\narchitecture = '{}-linux'\n",
        std::env::consts::ARCH
    );
    fs::write(plugin.with_extension("oarlock.toml"), manifest).expect("it can be written");
    compile_source("cc", "c11", &repository_root().join("tests/tests/capi/custom_op.c"), &program);
    run_command(Command::new(program).arg(plugin));
}

#[test]
fn an_ineffective_variable_is_reported_once_per_process() {
    let place = models_directory();
    let program = place.path().join("ignored_variables");
    compile_source("cc", "c11", &repository_root().join("tests/tests/capi/ignored_variables.c"), &program);
    run_command(Command::new(program).env("FLAGS_selected_gpus", "0"));
}

#[test]
fn a_device_of_a_plugin_runs_a_model() {
    run_simulated("devices.c", "ids 3,9");
}

#[test]
fn what_the_cpu_runs_for_a_device_is_heard_once_or_is_an_error() {
    run_simulated("fallback.c", "devices 1; ops Relu");
}

#[test]
fn cmake_finds_the_installed_library() {
    if Command::new("cmake").arg("--version").output().is_err() {
        // pkg-config finds the same files, and CMake is not on every machine.
        return;
    }
    let place = models_directory();
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(example C CXX)\n\
        find_package(Oarlock 0.1 REQUIRED)\nset(CMAKE_CXX_STANDARD 17)\n\
        add_executable(run_c ${EXAMPLES}/run.c)\ntarget_link_libraries(run_c Oarlock::oarlock)\n\
        add_executable(run_cpp ${EXAMPLES}/run.cpp)\ntarget_link_libraries(run_cpp Oarlock::oarlock)\n";
    fs::write(place.path().join("CMakeLists.txt"), lists).expect("it can be written");
    let built = place.path().join("built");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(place.path()).arg("-B").arg(&built);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", install_prefix().display()));
    run_command(
        configure.arg(format!("-DEXAMPLES={}", repository_root().join("runtime/capi/examples").display())),
    );
    run_command(Command::new("cmake").arg("--build").arg(&built));
    let message = run_command(Command::new(built.join("run_c")).arg(place.path().join("sums.onnx")));
    assert!(message.contains("sum: f32[batch, 3] = 1 3 5"), "{message}");
    let message = run_command(Command::new(built.join("run_cpp")).arg(place.path().join("sums.onnx")));
    assert_eq!(message, "1 2 3 1 2 3 \n");
}
