//! Overhead of the contract and the host: `scripts/bench` runs this and explains the numbers.
//!
//! The variants of a call take turns within one run, so that disturbances of the machine affect all of them; only the
//! differences to the direct call matter. Programs are started as a user would start them.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use oarlock_host::{
    BuiltInPlugin, Host, HostConfig, HostEnvironment, HostOptions, PluginDevice, ProbeCommand,
    ProcessIdentity,
};

/// Calls per sample, so that the time to read the clock is negligible.
const CALLS_PER_SAMPLE: u32 = 1000;
/// Samples of each variant.
const SAMPLE_COUNT: usize = 2000;
/// Number of times the command is started.
const START_COUNT: usize = 40;
/// Number of plugins in the full directory, and how many of them are usable.
const PLUGIN_COUNTS: (usize, usize) = (64, 4);

fn main() {
    let place = tempfile::tempdir().unwrap();
    println!("{SAMPLE_COUNT} samples of {CALLS_PER_SAMPLE} calls each, in turns; nanoseconds a call\n");
    measure_call_costs(place.path());
    if let Some(command) = std::env::var_os("OARLOCK_COMMAND").map(PathBuf::from) {
        println!("\n{START_COUNT} starts of the command; milliseconds, and the most memory any start held\n");
        measure_start_costs(&command, place.path());
    }
}

/// The direct call, as in a program linked to its device.
#[inline(never)]
extern "C" fn direct_call(_context: *mut std::ffi::c_void, device: u32) -> u64 {
    u64::from(black_box(device) != 0)
}

fn measure_call_costs(scratch: &Path) {
    let (plain, traced) = (start_host(scratch, "plain", false), start_host(scratch, "traced", true));
    let device = |host: &Host, name: &str| host.device(name).unwrap();
    let (c, rust, trace) = (device(&plain, "Good"), device(&plain, "cpu"), device(&traced, "Good"));
    let run_direct = || {
        black_box(direct_call(black_box(std::ptr::null_mut()), black_box(0)));
    };
    let through = |device: &PluginDevice| {
        let device = black_box(device.clone());
        move || device.synchronize().unwrap()
    };
    let ways: [(&str, &dyn Fn() -> f64); 4] = [
        ("direct call", &|| sample_call(run_direct)),
        ("table, plugin in C", &|| sample_call(through(&c))),
        ("table, plugin in Rust", &|| sample_call(through(&rust))),
        ("table, plugin in C, traced", &|| sample_call(through(&trace))),
    ];
    let mut samples = vec![Vec::with_capacity(SAMPLE_COUNT); ways.len()];
    for _ in 0..SAMPLE_COUNT {
        for (way, samples) in ways.iter().zip(&mut samples) {
            samples.push(way.1());
        }
    }
    let base = sample_quantile(&mut samples[0], 0.5);
    println!("| way | p50 | p99 | p50 over direct | p50 to direct |\n|---|---|---|---|---|");
    for ((name, _), samples) in ways.iter().zip(&mut samples) {
        let (half, most) = (sample_quantile(samples, 0.5), sample_quantile(samples, 0.99));
        println!("| {name} | {half:.2} | {most:.2} | {:+.2} | {:.2} |", half - base, half / base);
    }
}

fn sample_call(call: impl Fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS_PER_SAMPLE {
        call();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS_PER_SAMPLE)
}

/// A host with a separate copy of the C plugin, since a plugin serves one host.
fn start_host(scratch: &Path, name: &str, traced: bool) -> Host {
    let directory = scratch.join(name);
    std::fs::create_dir(&directory).unwrap();
    compile_plugin("good.c", &directory.join("good.so"));
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let file = scratch.join("trace.json").display().to_string();
    let config = format!("[plugin.trace]\nfile = \"{file}\"\n");
    let config = HostConfig::parse_file(Path::new("bench.toml"), config.as_bytes()).unwrap();
    let mut options = HostOptions::new("bench 1.0", config, environment);
    options.paths = vec![directory];
    options.cache_home = Some(scratch.join("cache"));
    let program = std::env::var_os("OARLOCK_COMMAND").expect("`scripts/bench` says where the command is");
    options.probe = Some(ProbeCommand { program: program.into(), arguments: vec!["__probe".into()] });
    options.built_in = vec![
        BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
        BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY },
    ];
    options.layers = if traced { vec!["trace".to_owned()] } else { Vec::new() };
    Host::start(&options).unwrap()
}

fn measure_start_costs(command: &Path, scratch: &Path) {
    let full = scratch.join("full");
    std::fs::create_dir(&full).unwrap();
    let names = ["wrong_major.c", "symbol_leak.c", "missing_required_slot.c", "no_entry.c", "name_empty.c"];
    for index in 0..PLUGIN_COUNTS.0 {
        let file = full.join(format!("plugin{index:02}.so"));
        if index < PLUGIN_COUNTS.1 {
            compile_numbered_plugin("good.c", &file, index);
        } else {
            compile_numbered_plugin(names[index % names.len()], &file, index);
        }
    }
    let empty = scratch.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let cases = [
        ("oarlock devices, the CPU alone", vec!["devices"], None),
        ("oarlock devices, 64 plugins of which 4 can be used, warm", vec!["devices"], Some(&full)),
        ("/bin/true", vec![], None),
    ];
    let run = |(name, arguments, directory): &(&str, Vec<&str>, Option<&PathBuf>)| {
        let program = if name.starts_with('/') { Path::new(name) } else { command };
        let mut start = Command::new(program);
        start.args(arguments).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        start.env_clear().env("HOME", &empty);
        if let Some(directory) = directory {
            start.env("OARLOCK_PLUGIN_PATH", directory);
        }
        run_once(&mut start)
    };
    // The first start fills the probe cache.
    cases.iter().for_each(|case| _ = run(case));
    let mut samples = vec![(Vec::with_capacity(START_COUNT), 0u64); cases.len()];
    for _ in 0..START_COUNT {
        for (case, (times, memory)) in cases.iter().zip(&mut samples) {
            let (milliseconds, kibibytes) = run(case);
            times.push(milliseconds);
            *memory = kibibytes.max(*memory);
        }
    }
    println!("| command | p50 | p99 | memory |\n|---|---|---|---|");
    for ((name, ..), (times, memory)) in cases.iter().zip(&mut samples) {
        let (half, most) = (sample_quantile(times, 0.5), sample_quantile(times, 0.99));
        println!("| {name} | {half:.1} | {most:.1} | {:.1} MiB |", *memory as f64 / 1024.0);
    }
}

/// Runs a command to its end; returns milliseconds and peak memory in KiB.
fn run_once(command: &mut Command) -> (f64, u64) {
    let start = Instant::now();
    let memory = wait_for_child(command.spawn().unwrap());
    (start.elapsed().as_secs_f64() * 1000.0, memory)
}

/// Waits for a process and returns its resource use, which `Child::wait` does not.
#[expect(unsafe_code, reason = "the standard library does not report the resource use of a child")]
fn wait_for_child(child: std::process::Child) -> u64 {
    let mut status = 0;
    // SAFETY: the struct holds plain numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the process is a child of this one that nothing else waits for, and both locations may be written.
    unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage) };
    assert_eq!(status, 0, "the command ends well");
    usage.ru_maxrss.unsigned_abs()
}

fn sample_quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part) as usize]
}

fn compile_plugin(source: &str, target: &Path) {
    compile_numbered_plugin(source, target, 0);
}

/// Compiles a test plugin; the number changes its bytes, so that each one is probed.
fn compile_numbered_plugin(source: &str, target: &Path, number: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("plugins").join(source)).unwrap();
    let text = format!("{text}\n__attribute__((used)) static const int number = {number};\n");
    let copy = target.with_extension("c");
    std::fs::write(&copy, text).unwrap();
    let status = Command::new("cc")
        .args(["-std=c11", "-O2", "-fPIC", "-shared", "-I"])
        .arg(root.join("../device-sdk/include"))
        .arg("-I")
        .arg(root.join("plugins"))
        .arg("-o")
        .arg(target)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::remove_file(copy).unwrap();
}
