//! Custom devices that work, and what they do.

use libtest_mimic::{Failed, Trial};
use oarlock_conformance::SuiteSettings;
use oarlock_core::flags::Flags;
use oarlock_core::{Op, Runtime, Tensor};
use oarlock_host::{HostEnvironment, PluginOrigin, PluginOutcome, ProcessIdentity};
use oarlock_sdk::abi;

use crate::test_device::{DEVICE_TYPE, DeviceDirectory, bare_options, open_device, round_trip};

/// The sizes of the struct and of the table, and whether versions take a device, in each release.
const RELEASES: [(&str, &[&str]); 5] = [
    ("2.4 to 2.6", &["PARAMS_SIZE=88", "TABLE_SIZE=912"]),
    ("3.0", &["PARAMS_SIZE=96", "TABLE_SIZE=920"]),
    ("3.1", &["PARAMS_SIZE=96", "TABLE_SIZE=976", "VERSIONS_TAKE_DEVICE"]),
    ("3.2", &["PARAMS_SIZE=96", "TABLE_SIZE=1032", "VERSIONS_TAKE_DEVICE"]),
    ("3.3", &["PARAMS_SIZE=96", "TABLE_SIZE=1128", "VERSIONS_TAKE_DEVICE"]),
];

pub(crate) fn list_trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = RELEASES
        .iter()
        .flat_map(|(release, macros)| {
            let strict = macros.iter().copied().chain(["CHECKS_BOTH"]).collect::<Vec<_>>();
            [
                Trial::test(format!("built for {release}"), move || use_devices(release, macros)),
                Trial::test(format!("built for {release}, with a check of both sizes"), move || {
                    use_devices(release, &strict)
                }),
            ]
        })
        .collect();
    trials.extend([
        Trial::test("the suite passes", || pass_suite(&[])),
        Trial::test("the suite passes with the required functions alone", || {
            pass_suite(&["REQUIRED_FUNCTIONS_ONLY"])
        }),
        Trial::test("the suite passes with a current device of each thread", || {
            pass_suite(&["CURRENT_OF_THREAD"])
        }),
        Trial::test("a callback that comes twice counts once", || pass_suite(&["CALLS_BACK_TWICE"])),
        Trial::test("threads do not mix devices up", || use_from_threads(&[])),
        Trial::test("threads do not mix devices up that each thread has", || {
            use_from_threads(&["CURRENT_OF_THREAD"])
        }),
        Trial::test("the CPU computes if that is allowed", compute_on_cpu),
        Trial::test("`CUSTOM_DEVICE_ROOT` is searched", search_root),
        Trial::test("the file in `OARLOCK_PADDLE_TEST_DEVICE`", use_given_file)
            .with_ignored_flag(std::env::var_os("OARLOCK_PADDLE_TEST_DEVICE").is_none()),
    ]);
    trials
}

fn use_devices(release: &str, macros: &[&str]) -> Result<(), Failed> {
    let place = DeviceDirectory::with_device(macros)?;
    let host = place.start_host()?;
    for id in [0, 1] {
        let device = open_device(&host, id)?;
        round_trip(&device, 7)?;
        let abi::Version { major, minor, .. } = device.compute_capability()?;
        if (major, minor) != (8, 6) {
            return Err(format!("expected the capability 8.6, found {major}.{minor}").into());
        }
    }
    let plugin = host.plugin("paddle-test_npu").ok_or("no plugin with the name of the device type")?;
    let note = plugin.info().support_note.clone();
    if note.contains(&format!("built for PaddlePaddle {release},")) { Ok(()) } else { Err(note.into()) }
}

fn pass_suite(macros: &[&str]) -> Result<(), Failed> {
    let place = DeviceDirectory::with_device(macros)?;
    let host = place.start_host()?;
    let plugin = open_device(&host, 0)?.plugin().clone();
    let report = plugin.check_conformance(&[], &SuiteSettings::default(), &mut |_| {})?;
    if report.has_passed() { Ok(()) } else { Err(report.render_text().into()) }
}

fn use_from_threads(macros: &[&str]) -> Result<(), Failed> {
    let place = DeviceDirectory::with_device(macros)?;
    let host = place.start_host()?;
    let devices = [open_device(&host, 0)?, open_device(&host, 1)?];
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u8)
            .map(|number| {
                let devices = &devices;
                scope.spawn(move || {
                    (0..100).try_for_each(|round| round_trip(&devices[(round + number as usize) % 2], number))
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panics")?)
    })
}

/// An array on the device plus itself, with and without permission for the CPU to do it.
fn compute_on_cpu() -> Result<(), Failed> {
    for fallback in ["cpu", "models"] {
        let place = DeviceDirectory::with_device(&[])?;
        let mut flags = Flags::from_environment(|_| None)?;
        flags.set("kernel_fallback", fallback)?;
        let runtime = Runtime::start(place.host_options()?, flags)?;
        let device = runtime.device(&format!("{DEVICE_TYPE}:1"))?;
        let term = Tensor::from_slice(&device, &[3], &[1.0_f32, 2.0, 4.0])?;
        match Op::latest(&runtime, "Add")?.run(&runtime, &[&term, &term]) {
            Ok(sum) if fallback == "cpu" => {
                let (place, values) = (sum.device().name(), sum.to_vec::<f32>()?);
                if place != device.name() || values != [2.0, 4.0, 8.0] {
                    return Err(format!("{values:?} on `{place}`").into());
                }
                if runtime.fallback_counts().is_empty() {
                    return Err("nobody counts the call".into());
                }
            }
            Err(error) if fallback == "models" => {
                let text = error.to_string();
                if !text.contains("expected a kernel for this device, found kernels for `cpu` only") {
                    return Err(text.into());
                }
            }
            other => return Err(format!("with `{fallback}`: {other:?}").into()),
        }
    }
    Ok(())
}

fn search_root() -> Result<(), Failed> {
    let place = DeviceDirectory::with_device(&[])?;
    let root = place.path().as_os_str().to_owned();
    let lookup = |name: &str| (name == "CUSTOM_DEVICE_ROOT").then(|| root.clone());
    let options = bare_options(HostEnvironment::new(lookup, false, ProcessIdentity::of_process()))?;
    let host = oarlock_host::Host::start(&options)?;
    open_device(&host, 1)?;
    let reported = host.report().plugins.iter().find(|report| report.file.starts_with(place.path()));
    let reported = reported.ok_or("the file is not reported")?;
    if reported.origin != Some(PluginOrigin::CustomDeviceRoot) {
        return Err(format!("it comes from {:?}", reported.origin).into());
    }
    let elevated = bare_options(HostEnvironment::new(lookup, true, ProcessIdentity::of_process()))?;
    match oarlock_host::Host::start(&elevated)?.device(DEVICE_TYPE) {
        None => Ok(()),
        Some(_) => Err("a program with elevated privileges searches it too".into()),
    }
}

/// A file of another vendor: each device has to pass the suite.
fn use_given_file() -> Result<(), Failed> {
    let file = std::env::var_os("OARLOCK_PADDLE_TEST_DEVICE").ok_or("the variable is not set")?;
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut options = bare_options(environment)?;
    options.paths = vec![file.clone().into()];
    let host = oarlock_host::Host::start(&options)?;
    let reported = host.report().plugins.iter().find(|report| report.file.as_os_str() == file);
    match reported.map(|report| &report.outcome) {
        Some(PluginOutcome::Loaded(loaded)) => {
            let plugin = host.plugin(&loaded.info.name).ok_or("it is not in use")?;
            let report = plugin.check_conformance(&[], &SuiteSettings::default(), &mut |_| {})?;
            if report.has_passed() { Ok(()) } else { Err(report.render_text().into()) }
        }
        other => Err(format!("{other:#?}").into()),
    }
}
