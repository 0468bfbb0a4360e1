//! What to install on a machine: a pure function from a machine and a matrix to a requirement, with reasons.

mod here;
mod machine;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use machine::{DRIVERS, Gpu, Machine, Number, Python, System, Vendor};

use crate::error::Error;
use crate::matrix::{Axis, Matrix, Wheel};

/// What somebody would rather have than what is best for the machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// A value of the axis `device`; with one of `accelerator` behind it, as `cuda12`, whatever driver is here.
    pub device: Option<String>,
    /// A value of the axis `blas`.
    pub blas: Option<String>,
    /// Whether code with AVX may not even lie in the file.
    #[serde(default)]
    pub without_avx: bool,
}

/// What to install, and why.
#[derive(Debug, Eq, PartialEq, Serialize)]
pub struct Choice {
    /// What pip is to install.
    pub requirements: Vec<String>,
    /// Where it finds that.
    pub arguments: Vec<String>,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

impl Choice {
    /// The command that does it.
    #[must_use]
    pub fn command(&self) -> String {
        let words =
            self.requirements.iter().map(|it| if it.contains('[') { format!("'{it}'") } else { it.clone() });
        let words: Vec<String> = words.chain(self.arguments.iter().cloned()).collect();
        format!("python -m pip install {}", words.join(" "))
    }
}

/// What to install on a machine.
///
/// # Errors
///
/// When nothing of the matrix runs there; the error says what would have to be otherwise.
pub fn select(matrix: &Matrix, machine: &Machine, wish: &Wish) -> Result<Choice, Error> {
    let python = machine.python.ok_or_else(|| {
        Error::new("expected a Python to install for, found none; install CPython, or name one that is there")
    })?;
    let channel = matrix.channels.first();
    let wheels: Vec<&Wheel> =
        matrix.wheels.iter().filter(|it| Some(&it.channel) == channel && it.planned.is_none()).collect();
    let (cores, whole): (Vec<&Wheel>, Vec<&Wheel>) =
        wheels.iter().filter(|it| it.is_whole()).partition(|it| it.parts == ["core"]);
    let mut reasons = Vec::new();
    let (device, accelerator) = device(&wheels, machine, wish, &mut reasons)?;
    let mut demands = vec![
        Demand::new(
            "platform",
            describe(machine),
            |it| machine.runs(&it.name.platform),
            |it| it.name.platform.clone(),
        ),
        Demand::new(
            "Python",
            python.to_string(),
            move |it| python.loads(&it.name.python),
            |it| it.name.python.clone(),
        ),
        Demand::of_isa(machine, wish),
    ];
    if cores.is_empty() {
        demands.push(Demand::of(Axis::Device, Some(device)));
        demands.push(Demand::of(Axis::Accelerator, accelerator));
        demands.extend(wish.blas.as_ref().map(|blas| Demand::of(Axis::Blas, Some(blas.clone()))));
        let wheel = first(&whole, &demands)?;
        return Ok(of_one_file(matrix, wheel, reasons));
    }
    let core = first(&cores, &demands)?;
    let mut requirements = vec![core.requirement()];
    demands.pop();
    let beside: Vec<&Wheel> = wheels.iter().copied().filter(|it| !it.is_whole()).collect();
    if device != "cpu" {
        demands.push(Demand::of(Axis::Device, Some(device)));
        demands.push(Demand::of(Axis::Accelerator, accelerator));
        requirements.push(first(&beside, &demands)?.requirement());
        demands.truncate(2);
    }
    if let Some(blas) = &wish.blas {
        demands.push(Demand::of(Axis::Blas, Some(blas.clone())));
        requirements.push(first(&beside, &demands)?.requirement());
        reasons.push(format!("products of matrices are left to {blas}, as was asked for"));
    }
    let mut arguments = vec!["--index-url".to_owned(), format!("{}/simple/", matrix.host)];
    if !core.directory.is_empty() {
        // The index has the plugins; the core is on a page of its own.
        reasons.push("no instruction of AVX lies in the file, as was asked for".to_owned());
        arguments.extend(["--find-links".to_owned(), format!("{}{}/", matrix.host, core.directory)]);
    }
    Ok(Choice { requirements, arguments, reasons })
}

/// What stands for a value on an axis where there is none.
const NONE: &str = "none";

/// Something that a wheel has to be.
struct Demand<'a> {
    what: String,
    /// What the machine has, or somebody asked for.
    found: String,
    is_met: Box<dyn Fn(&Wheel) -> bool + 'a>,
    /// What a wheel has there.
    value: Box<dyn Fn(&Wheel) -> String + 'a>,
}

impl<'a> Demand<'a> {
    fn new(
        what: &str,
        found: String,
        is_met: impl Fn(&Wheel) -> bool + 'a,
        value: impl Fn(&Wheel) -> String + 'a,
    ) -> Self {
        Self { what: what.to_owned(), found, is_met: Box::new(is_met), value: Box::new(value) }
    }

    /// That a wheel has a value on an axis, or none.
    fn of(axis: Axis, wanted: Option<String>) -> Self {
        let has = move |wheel: &Wheel| wheel.combination.get(&axis).cloned();
        let name = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
        Self::new(axis.name(), name(wanted.clone()), move |it| has(it) == wanted, move |it| name(has(it)))
    }

    /// That its instructions are those that the processor has.
    fn of_isa(machine: &Machine, wish: &Wish) -> Self {
        let isa = |wheel: &Wheel| wheel.combination.get(&Axis::Isa).cloned().unwrap_or_default();
        let (avx, without) = (machine.avx, wish.without_avx);
        let found = if avx && !without { "with AVX" } else { "without AVX" };
        let is_met = move |wheel: &Wheel| match &*isa(wheel) {
            "avx" => avx && !without,
            "noavx" => !avx || without,
            _ => !without,
        };
        Self::new("processor", found.to_owned(), is_met, isa)
    }
}

/// The first wheel that meets all demands. Where none does, one demand is sought without which some would.
fn first<'w>(wheels: &[&'w Wheel], demands: &[Demand<'_>]) -> Result<&'w Wheel, Error> {
    let meets = |wheel: &Wheel, but: Option<usize>| {
        demands.iter().enumerate().all(|(place, demand)| Some(place) == but || (demand.is_met)(wheel))
    };
    if let Some(wheel) = wheels.iter().find(|wheel| meets(wheel, None)) {
        return Ok(wheel);
    }
    let would_do = demands.iter().enumerate().filter_map(|(place, demand)| {
        let others = wheels.iter().filter(|wheel| meets(wheel, Some(place)));
        let mut others: Vec<String> =
            others.map(|wheel| (demand.value)(wheel)).filter(|it| it != NONE).collect();
        let mut seen = BTreeSet::new();
        others.retain(|it| seen.insert(it.clone()));
        (!others.is_empty()).then(|| format!("{} {}", demand.what, others.join(", ")))
    });
    let would_do: Vec<String> = would_do.collect();
    let found: Vec<String> = demands.iter().map(|it| format!("{} {}", it.what, it.found)).collect();
    let instead = if would_do.is_empty() {
        String::new()
    } else {
        format!("; there would be one for {}", would_do.join(", or for "))
    };
    Err(Error::new(format!("expected a wheel for {}, found none{instead}", found.join(", "))))
}

/// The device to install for, and the version of what drives it.
fn device(
    wheels: &[&Wheel],
    machine: &Machine,
    wish: &Wish,
    reasons: &mut Vec<String>,
) -> Result<(String, Option<String>), Error> {
    let cpu = || ("cpu".to_owned(), None);
    let has = |device: &str| {
        wheels.iter().any(|it| it.combination.get(&Axis::Device).is_some_and(|it| it == device))
    };
    let made_by = |vendor: Vendor| machine.gpus.iter().any(|gpu| gpu.vendor == vendor);
    let by_number = wheels.iter().find_map(|it| {
        let (device, number) = (it.combination.get(&Axis::Device)?, it.combination.get(&Axis::Accelerator)?);
        (wish.device.as_ref()? == &format!("{device}{number}"))
            .then(|| (device.clone(), Some(number.clone())))
    });
    if let Some(device) = by_number {
        reasons.push(format!("{}{}, as was asked for", device.0, device.1.as_deref().unwrap_or_default()));
        return Ok(device);
    }
    let device = match &wish.device {
        Some(device) if !has(device) => {
            return Err(Error::new(format!("expected a device that there are wheels for, found `{device}`")));
        }
        Some(device) => {
            reasons.push(format!("{device}, as was asked for"));
            device.as_str()
        }
        None if made_by(Vendor::Nvidia) && has("cuda") => {
            reasons.push("there is a GPU of NVIDIA".to_owned());
            "cuda"
        }
        None if made_by(Vendor::Amd) && has("rocm") => {
            reasons.push("there is a GPU of AMD".to_owned());
            "rocm"
        }
        None => {
            let why = if machine.gpus.is_empty() {
                "there is no GPU"
            } else if has("opencl") {
                "for the GPUs there is no wheel of their own yet; `--device opencl` uses one that has a driver of OpenCL"
            } else {
                "for the GPUs there is nothing to install yet"
            };
            reasons.push(why.to_owned());
            return Ok(cpu());
        }
    };
    if device != "cuda" {
        return Ok((device.to_owned(), None));
    }
    match accelerator(wheels, machine) {
        Ok((accelerator, reason)) => {
            reasons.push(reason);
            Ok(("cuda".to_owned(), Some(accelerator)))
        }
        // What is not asked for is no reason to install nothing.
        Err(problem) if wish.device.is_none() => {
            reasons.push(format!("so the CPU alone is used: {problem}"));
            Ok(cpu())
        }
        Err(problem) => Err(problem),
    }
}

/// The CUDA to install for, and why.
fn accelerator(wheels: &[&Wheel], machine: &Machine) -> Result<(String, String), Error> {
    let brings_none = wheels
        .iter()
        .any(|it| it.combination.get(&Axis::Device).is_some_and(|it| it == "cuda") && it.parts.is_empty());
    let mut known: Vec<(Number, &String)> = wheels
        .iter()
        .filter_map(|wheel| wheel.combination.get(&Axis::Accelerator))
        .filter_map(|text| Some((text.parse().ok()?, text)))
        .collect();
    known.sort_unstable();
    known.dedup();
    let list = known.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(", ");
    // A GPU runs nothing that was compiled before it was made.
    let oldest =
        if machine.gpus.iter().filter_map(|gpu| gpu.capability).any(|it| it.major >= 8) { 11 } else { 0 };
    let fits = |number: &Number| number.major >= oldest;
    if brings_none {
        let installed = machine.cuda.ok_or_else(|| {
            Error::new(format!("expected CUDA, one of {list}, to be installed; found none"))
        })?;
        let found = known.iter().find(|(number, _)| *number == installed);
        let (number, text) = found.ok_or_else(|| {
            Error::new(format!("expected CUDA, one of {list}, to be installed; found {installed}"))
        })?;
        if !fits(number) {
            return Err(Error::new(format!(
                "expected CUDA 11 or newer, which the GPU needs; found {installed}"
            )));
        }
        return Ok(((*text).clone(), format!("CUDA {installed} is installed")));
    }
    let driver = machine.cuda_driver.ok_or_else(|| Error::new("expected a driver of NVIDIA, found none"))?;
    let newest = known.iter().rev().find(|(number, _)| *number <= driver && fits(number));
    newest.map_or_else(
        || {
            Err(Error::new(format!(
                "expected a driver for CUDA {list}, found one for {driver}; install a newer one"
            )))
        },
        |(_, text)| Ok(((*text).clone(), format!("the driver runs CUDA up to {driver}"))),
    )
}

/// The way to a wheel that holds everything.
fn of_one_file(matrix: &Matrix, wheel: &Wheel, mut reasons: Vec<String>) -> Choice {
    let page = matrix
        .pages
        .iter()
        .find(|page| page.wheels.iter().any(|place| matrix.wheels[*place].path() == wheel.path()));
    let Some(page) = page else {
        let address = format!("{}{}", matrix.host, wheel.path());
        return Choice { requirements: vec![address], arguments: Vec::new(), reasons };
    };
    let mut arguments = vec!["--find-links".to_owned(), format!("{}{}", matrix.pages_host, page.path)];
    let same = matrix.wheels.iter().find(|it| it.name == wheel.name);
    if same.is_some_and(|first| first.path() != wheel.path()) {
        reasons.push("PyPI has another wheel of the same name, so nothing else is looked at".to_owned());
        arguments.extend(["--no-index", "--no-deps"].map(str::to_owned));
    }
    Choice { requirements: vec![wheel.requirement()], arguments, reasons }
}

/// A machine in a few words.
fn describe(machine: &Machine) -> String {
    let system = match machine.system {
        System::Linux => "Linux with glibc",
        System::Musl => "Linux with musl",
        System::Macos => "macOS",
        System::Windows => "Windows",
    };
    let libc = machine.libc.map_or_else(String::new, |version| format!(" {version}"));
    format!("{system}{libc} on {}", machine.architecture)
}
