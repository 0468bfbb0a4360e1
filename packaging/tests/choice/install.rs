//! `scripts/install.sh` makes the same choices as `select`, in every available shell.

use std::path::Path;
use std::process::{Command, Output};

use oarlock_matrix::major_minor::MajorMinor;
use oarlock_matrix::select::{
    GpuVendor, InstallPreferences, MachineGpu, OperatingSystem, PythonInterpreter, TargetMachine,
};

use super::ChoiceCase;

const INSTALL_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/install.sh");

/// The available shells; at least one of them always exists.
fn available_shells() -> Vec<Vec<&'static str>> {
    let known = [vec!["sh"], vec!["dash"], vec!["bash", "--posix"], vec!["busybox", "sh"]];
    let is_here = |words: &Vec<&str>| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["-c", ":"]).output().is_ok_and(|output| output.status.success())
    };
    known.into_iter().filter(is_here).collect()
}

/// The script, run by a shell.
pub(super) fn script_command(shell: &[&str]) -> Command {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(INSTALL_SCRIPT);
    command
}

/// Script arguments that describe a machine.
fn machine_arguments(machine: &TargetMachine) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let system = match machine.system {
        OperatingSystem::Linux => "linux",
        OperatingSystem::Musl => "musl",
        OperatingSystem::Macos => "macos",
        OperatingSystem::Windows => "windows",
    };
    let mut words = vec![
        format!("system={system}"),
        format!("architecture={}", machine.architecture),
        format!("avx={}", yes(machine.avx)),
    ];
    words.extend(machine.libc.map(|libc| format!("libc={libc}")));
    if let Some(python) = machine.python {
        words.push(format!("python={}", python.version));
        words.push(format!("cpython={}", yes(python.cpython)));
        words.push(format!("free_threaded={}", yes(python.free_threaded)));
        words.push(format!("bits={}", if python.bits_32 { 32 } else { 64 }));
    }
    for gpu in &machine.gpus {
        let vendor = match gpu.vendor {
            GpuVendor::Nvidia => "nvidia",
            GpuVendor::Amd => "amd",
            GpuVendor::Intel => "intel",
        };
        let capability = gpu.capability.map_or_else(String::new, |it| format!(":{it}"));
        words.push(format!("gpu={vendor}{capability}"));
    }
    words.extend(machine.cuda_driver.map(|cuda| format!("cuda={cuda}")));
    words.join(" ")
}

/// Runs the script for a case in a shell.
fn run_script(shell: &[&str], case: &ChoiceCase) -> Output {
    let mut command = script_command(shell);
    command.arg("--dry-run").env("OARLOCK_INSTALL_MACHINE", machine_arguments(&case.machine));
    command.args(case.wish.device.iter().flat_map(|device| ["--device", device]));
    command.args(case.wish.blas.iter().map(|blas| format!("--blas={blas}")));
    command.args(case.wish.without_avx.then_some("--without-avx"));
    command.args(case.wish.local_libraries.then_some("--local-libraries"));
    command.output().expect("a shell that starts")
}

/// Asserts that the script makes the same choice as the function, with the same reasons.
fn assert_same_choice(shell: &[&str], case: &ChoiceCase) {
    let output = run_script(shell, case);
    let (stdout, stderr) = (utf8_text(&output.stdout), utf8_text(&output.stderr));
    let context = format!("{} in {shell:?}: {:?}\n{stdout}{stderr}", case.name, case.machine);
    match case.select_install() {
        Ok(choice) => {
            assert!(output.status.success(), "{context}");
            assert_eq!(stdout.lines().next(), Some(&*choice.install_command()), "{context}");
            let reasons: Vec<&str> = stderr.lines().map(str::trim_start).collect();
            assert_eq!(reasons, choice.reasons, "{context}");
        }
        Err(_) => {
            assert!(matches!(output.status.code(), Some(3 | 4)), "{context}");
            let message = stderr.lines().last().unwrap_or_default();
            assert!(message.starts_with("error: expected "), "{context}");
            assert!(message.contains(", found ") && stdout.is_empty(), "{context}");
        }
    }
}

#[test]
fn the_script_chooses_what_the_function_chooses_and_says_the_same_reasons() {
    let cases: Vec<ChoiceCase> =
        ChoiceCase::all_cases().into_iter().filter(|case| case.matrix == "own").collect();
    assert!(cases.len() >= 30, "{}", cases.len());
    for case in &cases {
        available_shells().iter().for_each(|shell| assert_same_choice(shell, case));
    }
}

#[test]
fn they_choose_alike_on_machines_that_nobody_thought_of() {
    // A linear congruential generator with a fixed seed; its upper bits are the random ones.
    let mut state = 6_u64;
    let mut one_of = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let number = |text: &str| text.parse().expect("a number");
    for place in 0..150 {
        let gpus = (0..one_of(4)).map(|_| MachineGpu {
            vendor: [
                GpuVendor::Nvidia,
                GpuVendor::Nvidia,
                GpuVendor::Nvidia,
                GpuVendor::Amd,
                GpuVendor::Intel,
            ][one_of(5)],
            capability: None,
        });
        let mut gpus: Vec<MachineGpu> = gpus.collect();
        for gpu in gpus.iter_mut().filter(|gpu| gpu.vendor == GpuVendor::Nvidia) {
            let known = ["3.7", "5.0", "7.0", "7.5", "8.6", "9.0", "12.1", "12.2", ""][one_of(9)];
            gpu.capability = known.parse().ok();
        }
        let driver = ["", "", "11.4", "12.0", "12.9", "13.0", "14.1"][one_of(7)];
        let free_threaded = one_of(5) == 0;
        let minor = if free_threaded { 14 } else { [10, 11, 12, 14, 15][one_of(5)] };
        let machine = TargetMachine {
            system: OperatingSystem::Linux,
            architecture: ["x86_64", "x86_64", "aarch64", "riscv64"][one_of(4)].to_owned(),
            libc: Some(number(["2.28", "2.36", "2.39"][one_of(3)])),
            python: Some(PythonInterpreter {
                version: MajorMinor { major: 3, minor },
                free_threaded,
                cpython: one_of(12) != 0,
                bits_32: one_of(15) == 0,
            }),
            avx: one_of(3) != 0,
            gpus,
            cuda_driver: driver.parse().ok(),
            cuda: None,
        };
        let word =
            |words: &[&str], place: usize| Some(words[place]).filter(|it| !it.is_empty()).map(str::to_owned);
        let wish = InstallPreferences {
            device: word(&["", "", "cpu", "cuda", "cuda12", "cuda13", "opencl", "rocm", "tpu"], one_of(9)),
            blas: word(&["", "", "", "mkl", "openblas", "onednn"], one_of(6)),
            without_avx: one_of(5) == 0,
            local_libraries: one_of(4) == 0,
        };
        let case = ChoiceCase {
            name: format!("machine {place}, {wish:?}"),
            matrix: "own".to_owned(),
            machine,
            wish,
            gives: String::new(),
            says: None,
        };
        assert_same_choice(&["sh"], &case);
    }
}

#[test]
fn a_machine_without_a_python_that_fits_is_told_so_by_a_number_of_its_own() {
    let machine = |python: &str| format!("system=linux architecture=x86_64 libc=2.36 avx=yes {python}");
    let on_arm = || machine("python=3.11").replace("x86_64", "aarch64");
    for (described, options, code, words) in [
        (machine(""), &["--dry-run"][..], 3, "found none; install CPython 3.11 or newer"),
        (machine("python=3.10"), &[], 3, "found CPython 3.10 as `python`; install one beside it"),
        (machine("python=3.11 bits=32"), &[], 3, "expected a Python of 64 bits, found one of 32"),
        (machine("python=3.11 cpython=no"), &[], 3, "found another Python than CPython"),
        (machine("python=3.14 free_threaded=yes"), &["--without-avx"], 4, "leave `--without-avx` out"),
        (machine("python=3.11").replace("2.36", "2.17"), &[], 4, "found Linux with glibc 2.17 on x86_64"),
        (machine("python=3.11").replace("x86_64", "riscv64"), &[], 4, "there are no wheels for riscv64 yet"),
        (
            machine("python=3.11 bits=32").replace("x86_64", "armv7l"),
            &[],
            4,
            "on armv7l; Oarlock needs a 64-bit",
        ),
        (
            machine("").replace("x86_64", "i686"),
            &[],
            4,
            "on i686; Oarlock needs a 64-bit system; install one",
        ),
        (on_arm(), &["--device", "cuda"], 4, "wheels for on aarch64 (cpu), found `cuda`"),
        (on_arm(), &["--blas", "mkl"], 4, "wheels for on aarch64 (none), found `mkl`"),
        (machine("python=3.11").replace("linux", "musl"), &[], 4, "use a distribution with glibc"),
        (machine("python=3.11"), &["--device", "tpu"], 4, "(cpu, cuda, opencl), found `tpu`"),
        (machine("python=3.11"), &["--device", "rocm"], 4, "found `rocm`, which is planned: the plugin"),
        (machine("python=3.11"), &["--blas", "onednn"], 4, "found `onednn`, which is planned: the plugin"),
        (machine("python=3.11"), &["--blas", "blis"], 4, "(openblas, mkl), found `blis`"),
        (machine("python=3.11"), &["--devise"], 2, "expected an option, found `--devise`"),
        (machine("python=3.11"), &["--device"], 2, "expected a value after `--device`"),
    ] {
        let mut command = script_command(&["sh"]);
        // A described machine has no distribution either.
        let output =
            command.args(options).env("OARLOCK_INSTALL_MACHINE", described).output().expect("a shell");
        let stderr = utf8_text(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(words), "{code}, {words}: {output:?}");
    }
}

#[test]
fn the_help_teaches_every_option() {
    let output = script_command(&["sh"]).arg("--help").output().expect("a shell");
    assert!(output.status.success());
    let help = utf8_text(&output.stdout);
    let source = std::fs::read_to_string(INSTALL_SCRIPT).expect("the script");
    let (_, options) = source.split_once("\nread_options() {").expect("options are read");
    let (options, _) = options.split_once("\n}").expect("the function ends");
    let named = options.split_whitespace().map(|word| word.trim_end_matches(')'));
    let mut named: Vec<&str> =
        named.filter(|word| word.starts_with("--") && word.len() > 2 && !word.contains('*')).collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.len(), 9, "{named:?}");
    assert!(named.iter().all(|option| help.contains(option)), "{help}");
}

#[test]
fn a_script_that_was_not_read_to_its_end_does_nothing() {
    let source = std::fs::read_to_string(INSTALL_SCRIPT).expect("the script");
    let half = Path::new(env!("CARGO_TARGET_TMPDIR")).join("half-of-install.sh");
    std::fs::write(&half, &source[..source.len() - "main \"$@\"\n".len()]).expect("a file");
    let output = Command::new("sh").arg(&half).output().expect("a shell");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

pub(super) fn utf8_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
