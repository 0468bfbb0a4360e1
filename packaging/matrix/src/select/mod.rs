//! Selects what to install: a pure function from a machine and a matrix to requirements with reasons.

mod cuda;
mod demand;
mod machine;
mod machine_probe;

use oarlock_formats::error::Error;

use self::demand::{WheelDemand, first_match};
use crate::{MatrixAxis, MatrixRow, WheelMatrix};
pub use machine::{CUDA_DRIVERS, GpuVendor, MachineGpu, OperatingSystem, PythonInterpreter, TargetMachine};
pub use machine_probe::local_capabilities;
use serde::{Deserialize, Serialize};

/// The user's preferences, which override the best fit for the machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstallPreferences {
    /// A value of the axis `device`; a suffix, as in `cuda12`, fixes the accelerator version regardless of the driver.
    pub device: Option<String>,
    /// A value of the axis `blas`.
    pub blas: Option<String>,
    /// True if the files must not contain AVX code, even unused.
    #[serde(default)]
    pub without_avx: bool,
    /// True to use the vendor libraries on the machine.
    #[serde(default)]
    pub local_libraries: bool,
}

/// The recommended installation, with reasons.
#[derive(Debug, Eq, PartialEq, Serialize)]
pub struct InstallChoice {
    /// Requirements for pip.
    pub requirements: Vec<String>,
    /// Options for pip that name the index and pages.
    pub arguments: Vec<String>,
    /// The reasons, as sentences.
    pub reasons: Vec<String>,
}

impl InstallChoice {
    /// The pip command line.
    #[must_use]
    pub fn install_command(&self) -> String {
        let words =
            self.requirements.iter().map(|it| if it.contains('[') { format!("'{it}'") } else { it.clone() });
        let words: Vec<String> = words.chain(self.arguments.iter().cloned()).collect();
        format!("python -m pip install {}", words.join(" "))
    }
}

/// Selects what to install on a machine.
///
/// # Errors
///
/// When nothing in the matrix fits; the error states what would have to change.
pub fn select_install(
    matrix: &WheelMatrix,
    machine: &TargetMachine,
    wish: &InstallPreferences,
) -> Result<InstallChoice, Error> {
    let python = machine.python.ok_or_else(|| {
        Error::new("expected a Python to install for, found none; install CPython, or name one that is there")
    })?;
    let channel = matrix.channels.first();
    let mut wheels: Vec<&MatrixRow> =
        matrix.wheels.iter().filter(|it| Some(&it.channel) == channel && it.planned.is_none()).collect();
    let end = format!("_{}", machine.architecture);
    let is_of_machine = |wheel: &MatrixRow| wheel.name.platform.ends_with(&end);
    // Architectures may differ in their devices. Where there is no core, the platform is what is wrong.
    if wheels.iter().any(|it| it.is_core_alone() && is_of_machine(it)) {
        wheels.retain(|it| is_of_machine(it));
    }
    let (cores, whole): (Vec<&MatrixRow>, Vec<&MatrixRow>) =
        wheels.iter().filter(|it| it.is_standalone()).partition(|it| it.is_core_alone());
    let mut reasons = Vec::new();
    let (device, accelerator) = choose_device(matrix, &wheels, machine, wish, &mut reasons)?;
    let mut demands = vec![
        WheelDemand::for_platform(machine),
        WheelDemand::for_python(python),
        WheelDemand::for_isa(machine, wish),
    ];
    if cores.is_empty() {
        demands.push(WheelDemand::for_axis(MatrixAxis::Device, Some(device)));
        demands.push(WheelDemand::for_axis(MatrixAxis::Accelerator, accelerator));
        demands.extend(
            wish.blas.as_ref().map(|blas| WheelDemand::for_axis(MatrixAxis::Blas, Some(blas.clone()))),
        );
        let wheel = first_match(&whole, &demands)?;
        return Ok(choose_single_wheel(matrix, wheel, reasons));
    }
    let core = first_match(&cores, &demands)?;
    reasons.extend(wheel_note(core));
    let mut added = Vec::new();
    demands.pop();
    let beside: Vec<&MatrixRow> = wheels.iter().copied().filter(|it| !it.is_standalone()).collect();
    if device != "cpu" {
        demands.push(WheelDemand::for_axis(MatrixAxis::Device, Some(device)));
        demands.push(WheelDemand::for_axis(MatrixAxis::Accelerator, accelerator));
        added.push(first_match(&beside, &demands)?);
        demands.truncate(2);
    }
    if let Some(blas) = &wish.blas {
        demands.push(WheelDemand::for_axis(MatrixAxis::Blas, Some(blas.clone())));
        check_offered(matrix, &wheels, machine, MatrixAxis::Blas, blas)?;
        added.push(first_match(&beside, &demands)?);
        reasons.push(format!("{blas} computes matrix products, as requested"));
    }
    let brings_libraries = |wheel: &MatrixRow| !matrix.library_requirements(wheel).is_empty();
    let extra = |wheel: &&MatrixRow| {
        let is_local = wish.local_libraries && brings_libraries(wheel);
        format!("{}{}", wheel.extra_name(), if is_local { "-local" } else { "" })
    };
    let extras: Vec<String> = added.iter().map(extra).collect();
    let mut option = "--index-url";
    if !wish.local_libraries && added.iter().any(|wheel| brings_libraries(wheel)) {
        reasons.push(
            "the vendor's libraries come from PyPI; `--local-libraries` uses those of the machine".to_owned(),
        );
        // In addition to PyPI, the default index.
        option = "--extra-index-url";
    }
    let mut arguments = vec![option.to_owned(), format!("{}/simple/", matrix.host)];
    if !core.directory.is_empty() {
        // The index has the plugins; the core is on a separate page.
        reasons.push("the file has no AVX instructions, as requested".to_owned());
        arguments.extend(["--find-links".to_owned(), format!("{}{}/", matrix.host, core.directory)]);
    }
    Ok(InstallChoice { requirements: vec![core.requirement_with(&extras)], arguments, reasons })
}

/// The remark on a wheel, as a caution.
fn wheel_note(wheel: &MatrixRow) -> Option<String> {
    wheel.note.as_ref().map(|note| format!("the wheel for this Python is {note}"))
}

/// Fails if no wheel for the machine has a requested value.
fn check_offered(
    matrix: &WheelMatrix,
    wheels: &[&MatrixRow],
    machine: &TargetMachine,
    axis: MatrixAxis,
    value: &str,
) -> Result<(), Error> {
    let has = |it: &MatrixRow, wanted: &str| it.combination.get(&axis).is_some_and(|it| it == wanted);
    if wheels.iter().any(|it| has(it, value)) {
        return Ok(());
    }
    let mut rows = matrix.wheels.iter().filter(|it| has(it, value));
    if let Some(why) = rows.next().and_then(|first| first.planned.as_ref())
        && rows.all(|it| it.planned.is_some())
    {
        return Err(Error::new(format!(
            "expected a {axis} that there are wheels for, found `{value}`, which is planned: {why}"
        )));
    }
    let known = matrix.axes.get(&axis).into_iter().flatten().map(String::as_str);
    let mut known: Vec<&str> = known.filter(|known| wheels.iter().any(|it| has(it, known))).collect();
    if known.is_empty() {
        known.push("none");
    }
    let (known, here) = (known.join(", "), &machine.architecture);
    Err(Error::new(format!(
        "expected a {axis} that there are wheels for on {here} ({known}), found `{value}`"
    )))
}

/// Chooses a device and an accelerator version.
fn choose_device(
    matrix: &WheelMatrix,
    wheels: &[&MatrixRow],
    machine: &TargetMachine,
    wish: &InstallPreferences,
    reasons: &mut Vec<String>,
) -> Result<(String, Option<String>), Error> {
    let cpu = || ("cpu".to_owned(), None);
    let has = |device: &str| {
        wheels.iter().any(|it| it.combination.get(&MatrixAxis::Device).is_some_and(|it| it == device))
    };
    let made_by = |vendor: GpuVendor| machine.gpus.iter().any(|gpu| gpu.vendor == vendor);
    let by_number = wheels.iter().find_map(|it| {
        let (device, number) =
            (it.combination.get(&MatrixAxis::Device)?, it.combination.get(&MatrixAxis::Accelerator)?);
        (wish.device.as_ref()? == &format!("{device}{number}"))
            .then(|| (device.clone(), Some(number.clone())))
    });
    if let Some(device) = by_number {
        reasons.push(format!("{}{}, as requested", device.0, device.1.as_deref().unwrap_or_default()));
        let number = device.1.as_deref().unwrap_or_default();
        reasons.extend(cuda::cuda_warning(matrix, wheels, machine, number));
        return Ok(device);
    }
    let device = match &wish.device {
        Some(device) => {
            check_offered(matrix, wheels, machine, MatrixAxis::Device, device)?;
            reasons.push(format!("{device}, as requested"));
            device.as_str()
        }
        None if made_by(GpuVendor::Nvidia) && has("cuda") => {
            reasons.push("there is an NVIDIA GPU".to_owned());
            "cuda"
        }
        None if made_by(GpuVendor::Amd) && has("rocm") => {
            reasons.push("there is an AMD GPU".to_owned());
            "rocm"
        }
        None => {
            let why = if machine.gpus.is_empty() {
                "there is no GPU"
            } else if has("opencl") {
                "there is no wheel for these GPUs yet; `--device opencl` uses a GPU with an OpenCL driver"
            } else {
                "there is nothing to install for these GPUs yet"
            };
            reasons.push(why.to_owned());
            return Ok(cpu());
        }
    };
    if device != "cuda" {
        return Ok((device.to_owned(), None));
    }
    match cuda::choose_cuda(matrix, wheels, machine) {
        Ok((accelerator, why)) => {
            reasons.extend(why);
            Ok(("cuda".to_owned(), Some(accelerator)))
        }
        // A device that was not requested may be missing.
        Err(problem) if wish.device.is_none() => {
            reasons.push(format!("only the CPU is used: {problem}"));
            Ok(cpu())
        }
        Err(problem) => Err(problem),
    }
}

/// Recommends a wheel that contains everything.
fn choose_single_wheel(matrix: &WheelMatrix, wheel: &MatrixRow, mut reasons: Vec<String>) -> InstallChoice {
    reasons.extend(wheel_note(wheel));
    let page = matrix
        .pages
        .iter()
        .find(|page| page.wheels.iter().any(|place| matrix.wheels[*place].file_path() == wheel.file_path()));
    let Some(page) = page else {
        let address = format!("{}{}", matrix.host, wheel.file_path());
        return InstallChoice { requirements: vec![address], arguments: Vec::new(), reasons };
    };
    let mut arguments = vec!["--find-links".to_owned(), format!("{}{}", matrix.pages_host, page.path)];
    let same = matrix.wheels.iter().find(|it| it.name == wheel.name);
    if same.is_some_and(|first| first.file_path() != wheel.file_path()) {
        reasons.push("PyPI has another wheel of the same name, so nothing else is looked at".to_owned());
        arguments.extend(["--no-index", "--no-deps"].map(str::to_owned));
    }
    InstallChoice { requirements: vec![wheel.requirement()], arguments, reasons }
}
