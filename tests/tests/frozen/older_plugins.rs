//! Plugins of each older minor version on today's host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use oarlock_conformance::SuiteSettings;
use oarlock_core::flags::Flags;
use oarlock_core::{Attributes, Op, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, HostOptions, PluginDevice, PluginOutcome, ProbeCommand};
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

use crate::{FrozenMinor, PROBE_COMMAND};

const LANGUAGES: [&str; 2] = ["c", "rust"];
/// The memory that frozen layers say a device has.
const LAYER_TOTAL: u64 = 4242;
/// Time limit of one check, which is far longer than a passing check takes.
const CHECK_PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn list_trials(minors: &[FrozenMinor]) -> Vec<Trial> {
    type Check = fn(&FrozenMinor, &str) -> Result<(), Failed>;
    let checks: [(&str, Check); 3] =
        [("device", check_device), ("kernels", check_kernels), ("layer", check_layer)];
    let mut trials = Vec::new();
    for frozen in minors {
        for (kind, check) in checks {
            for language in LANGUAGES {
                let frozen = frozen.clone();
                let name = format!("a plugin of 1.{} on this host: {kind} in {language}", frozen.minor);
                trials.push(Trial::test(name, move || check(&frozen, language)));
            }
        }
    }
    trials
}

/// The options of a host that finds only this plugin, without a manifest, so that it judges and probes it.
fn options_for(
    file: &Path,
    config: &str,
    built_in: &[BuiltInPlugin],
    cache: &Path,
) -> Result<HostOptions, Failed> {
    let mut options = host_options("tests 1.0", config, built_in);
    options.paths = vec![file.to_path_buf()];
    options.cache_home = Some(cache.to_path_buf());
    options.config.plugins.probe_timeout_ms = Some(CHECK_PATIENCE.as_millis() as u64);
    options.probe =
        Some(ProbeCommand { program: std::env::current_exe()?, arguments: vec![PROBE_COMMAND.into()] });
    Ok(options)
}

/// A runtime with a copy of the plugin that nobody else can write to, which is what a host demands.
struct OlderPlugin {
    runtime: Runtime,
    file: PathBuf,
    _place: tempfile::TempDir,
}

impl OlderPlugin {
    fn start(original: &Path, config: &str, built_in: &[BuiltInPlugin]) -> Result<Self, Failed> {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir()?;
        let file = place.path().join("libfrozen.so");
        std::fs::copy(original, &file)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
        let options = options_for(&file, config, built_in, place.path())?;
        let runtime = Runtime::start(options, Flags::from_environment(|_| None)?)?;
        Ok(Self { runtime, file, _place: place })
    }

    /// Fails if the host does not use the plugin, or uses it as one of another version than it is.
    fn check_loaded(&self, frozen: &FrozenMinor) -> Result<(), Failed> {
        let report = self.runtime.host().report();
        let mine = report
            .plugins
            .iter()
            .find(|plugin| plugin.file == self.file)
            .ok_or("the host did not find it")?;
        match &mine.outcome {
            PluginOutcome::Loaded(loaded)
                if loaded.info.contract.to_string().ends_with(&frozen.minor.to_string()) =>
            {
                Ok(())
            }
            PluginOutcome::Loaded(loaded) => {
                Err(format!("expected contract 1.{}, found {}", frozen.minor, loaded.info.contract).into())
            }
            PluginOutcome::Refused(refusal) => Err(refusal.to_string().into()),
        }
    }

    fn device(&self) -> Result<PluginDevice, Failed> {
        let devices = self.runtime.host().devices();
        let mine = |device: &PluginDevice| device.device_type() != "cpu";
        devices.into_iter().find(mine).ok_or_else(|| "expected a device, found none".into())
    }
}

fn check_device(frozen: &FrozenMinor, language: &str) -> Result<(), Failed> {
    let plugin = OlderPlugin::start(&frozen.plugin_file("device", language), "", &[CPU_PLUGIN])?;
    plugin.check_loaded(frozen)?;
    let device = plugin.device()?;
    device.describe_device()?;
    let stream = device.create_stream(0)?;
    let event = device.create_event()?;
    stream.record_event(&event)?;
    stream.wait_for(&event)?;
    let (told, heard) = std::sync::mpsc::channel();
    stream.add_callback(move |_| _ = told.send(()))?;
    stream.synchronize()?;
    heard.recv_timeout(CHECK_PATIENCE)?;
    let mut block = device.allocate(8)?;
    // A slot that is missing in an older table, or was left empty, has a default.
    block.fill_bytes(0, 7, 8)?;
    let mut bytes = [0; 8];
    block.read_bytes(0, &mut bytes)?;
    check_equal(&bytes, &[7; 8])?;

    let name = device.to_string();
    let on_device = plugin.runtime.device(&name)?;
    let tensor = |values: &[f32]| Tensor::from_slice(&on_device, &[3], values);
    let sum = Op::latest(&plugin.runtime, "Add")?
        .run(&plugin.runtime, &[&tensor(&[1.0, 2.5, -3.0])?, &tensor(&[0.5, 1e20, 3.0])?])?;
    check_equal(&sum.device().name(), &name.as_str())?;
    check_equal(&sum.to_vec::<f32>()?, &vec![1.5, 1e20, 0.0])?;

    let settings = SuiteSettings { patience: CHECK_PATIENCE, ..SuiteSettings::default() };
    let report = device.plugin().check_conformance(&[], &settings, &mut |_| {})?;
    if report.has_passed() { Ok(()) } else { Err(report.render_text().into()) }
}

fn check_kernels(frozen: &FrozenMinor, language: &str) -> Result<(), Failed> {
    let plugin = OlderPlugin::start(&frozen.plugin_file("kernels", language), "", &[CPU_PLUGIN])?;
    plugin.check_loaded(frozen)?;
    let cpu = plugin.runtime.device("cpu")?;
    let mix = Op::new(&plugin.runtime, "test.frozen", "Mix", 1, Attributes::new())?;
    // One element, a prime number of them, and none.
    for count in [1_u8, 7, 0] {
        let a: Vec<f32> = (0..count).map(f32::from).collect();
        let b: Vec<f32> = a.iter().map(|a| 0.25 - a).collect();
        let dims = [i64::from(count)];
        let [left, right] = [&a, &b].map(|values| Tensor::from_slice(&cpu, &dims, values));
        let mixed = mix.run(&plugin.runtime, &[&left?, &right?])?;
        check_equal(&mixed.to_vec::<f32>()?, &a.iter().map(|a| a + 0.25).collect::<Vec<f32>>())?;
    }
    Ok(())
}

fn check_layer(frozen: &FrozenMinor, language: &str) -> Result<(), Failed> {
    let config = format!("[plugins]\nlayers = ['frozen-layer-{language}']");
    let plugin = OlderPlugin::start(&frozen.plugin_file("layer", language), &config, &[CPU_PLUGIN])?;
    plugin.check_loaded(frozen)?;
    let cpu = plugin.runtime.device("cpu")?;
    let wrapped = plugin.runtime.host().device("cpu").ok_or("expected the CPU, found none")?;
    check_equal(&wrapped.memory_stats()?.total, &LAYER_TOTAL)?;
    let x = Tensor::from_slice(&cpu, &[2], &[1f32, -2.0])?;
    let negative = Op::latest(&plugin.runtime, "Neg")?.run(&plugin.runtime, &[&x])?;
    check_equal(&negative.to_vec::<f32>()?, &vec![-1.0, 2.0])
}

fn check_equal<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, found {found:?}").into()) }
}
