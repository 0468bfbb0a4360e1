//! Today's plugins, and all frozen ones, on a host of each minor version: `tests/frozen/host.c`, compiled with the headers of that
//! version. It runs the plugin in a process of its own and says what worked.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use oarlock_tests::plugin_compiler;

use crate::{FrozenMinor, frozen_directory};

/// What the host prints about each kind of plugin.
const OF_DEVICE: &[&str] = &["memory", "kernel Add", "async", "done"];
const OF_KERNELS: &[&str] = &["kernel Mix", "done"];
const OF_LAYER: &[&str] = &["layer", "done"];

pub(crate) fn list_trials(minors: &[FrozenMinor]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in minors {
        let host = host.clone();
        let name = format!("plugins on a host of 1.{}", host.minor);
        let minors = minors.to_vec();
        trials.push(Trial::test(name, move || check_plugins_on(&host, &minors)));
    }
    trials
}

fn check_plugins_on(host: &FrozenMinor, minors: &[FrozenMinor]) -> Result<(), Failed> {
    let place = tempfile::tempdir()?;
    let program = place.path().join("host");
    run_command(
        Command::new("cc")
            .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(host.directory.join("include"))
            .arg("-o")
            .arg(&program)
            .arg(frozen_directory().join("host.c"))
            .arg("-ldl"),
    )?;
    let run = |file: &Path, expected: &[&str]| check_plugin(&program, file, expected);
    for (file, expected) in plugins_of_today(place.path())? {
        run(&file, expected)?;
    }
    for frozen in minors {
        for language in ["c", "rust"] {
            run(&frozen.plugin_file("device", language), OF_DEVICE)?;
            run(&frozen.plugin_file("kernels", language), OF_KERNELS)?;
            run(&frozen.plugin_file("layer", language), OF_LAYER)?;
        }
    }
    Ok(())
}

/// The templates and examples, compiled with today's headers, and the simulated device, written with today's SDK.
fn plugins_of_today(place: &Path) -> Result<Vec<(PathBuf, &'static [&'static str])>, Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut plugins = vec![(std::env::current_exe()?.with_file_name("liboarlock_plugin_sim.so"), OF_DEVICE)];
    let mut compile = |name: &str, sources: Vec<PathBuf>, expected| {
        let target = place.join(name);
        let is_cpp = sources.iter().any(|source| source.extension().is_some_and(|ending| ending == "cpp"));
        run_command(plugin_compiler(is_cpp, false).arg("-o").arg(&target).args(sources).arg("-lpthread"))?;
        plugins.push((target, expected));
        Ok::<(), Failed>(())
    };
    let templates = root.join("device-sdk/templates");
    compile("template_c.so", sources_in(&templates.join("c"), "c")?, OF_DEVICE)?;
    compile("template_cpp.so", sources_in(&templates.join("cpp/device"), "cpp")?, OF_DEVICE)?;
    compile("kernels.so", vec![root.join("tests/frozen/1.2/src/kernels.c")], OF_KERNELS)?;
    compile("layer.so", vec![root.join("tests/frozen/1.2/src/layer.c")], OF_LAYER)?;
    Ok(plugins)
}

fn sources_in(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, Failed> {
    let files = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    let files: Vec<PathBuf> = files.collect::<std::io::Result<_>>()?;
    Ok(files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == extension)).collect())
}

fn check_plugin(host: &Path, plugin: &Path, expected: &[&str]) -> Result<(), Failed> {
    let printed = run_command(Command::new(host).arg(plugin))?;
    let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with("plugin ")).collect();
    if lines == expected {
        return Ok(());
    }
    Err(format!("`{}`: expected {expected:?}, found {lines:?}", plugin.display()).into())
}

/// Runs a command that has to succeed; returns what it printed.
fn run_command(command: &mut Command) -> Result<String, Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
