//! Statically linked plugins, as subjects of the suite.

use std::time::Duration;

use oarlock_conformance::{
    ConformanceReport, ConformanceSubject, ErrorText, SubjectRole, SuiteSettings, run_suite,
};
use oarlock_sdk::abi;
use oarlock_small_host::HostedPlugin;
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, forced_isa};

/// Time limit of one check, which is far longer than a passing check takes.
const CHECK_PATIENCE: Duration = Duration::from_secs(30);

/// A statically linked plugin, started as a host starts one. It stays loaded until the process ends.
pub(crate) struct StartedPlugin {
    plugin: &'static HostedPlugin,
    devices: Vec<u32>,
    /// The only ops whose kernels are checked; empty means all.
    ops: &'static [&'static str],
}

/// A few ops of different kinds, for tests of other things than numbers.
const FEW_OPS: &[&str] = &["Add", "Cast", "MatMul", "ReduceSum", "Softmax", "Transpose"];

impl StartedPlugin {
    /// The CPU with the kernels of one op.
    pub(crate) fn load_cpu() -> Self {
        Self { ops: &["Add"], ..Self::load_cpu_with_kernels() }
    }

    /// The CPU with all its kernels.
    pub(crate) fn load_cpu_with_kernels() -> Self {
        Self::new(CPU_PLUGIN.query, &[])
    }

    /// The CPU limited to an ISA, if the processor has it, with a few kernels.
    pub(crate) fn load_cpu_with_isa(isa: &str) -> Self {
        Self { ops: FEW_OPS, ..Self::new(CPU_PLUGIN.query, &[("isa", isa)]) }
    }

    /// The simulated device with a single kernel, which suffices for checks of other things, and with little memory, since none
    /// of these devices is ever freed.
    pub(crate) fn load_sim(script: &str) -> Self {
        Self::load_sim_with_kernels(&format!("quota 32MiB; ops Add; {script}"))
    }

    /// The simulated device with a few of its kernels.
    pub(crate) fn load_sim_with_kernels(script: &str) -> Self {
        Self { ops: FEW_OPS, ..Self::new(SIM_PLUGIN.query, &[("script", script)]) }
    }

    fn new(query: abi::PluginQuery, options: &[(&str, &str)]) -> Self {
        let forced = forced_isa().filter(|_| options.iter().all(|(name, _)| *name != "isa"));
        let mut options = options.to_vec();
        options.extend(forced.as_deref().map(|isa| ("isa", isa)));
        let plugin = HostedPlugin::new(query, &options).expect("a plugin that loads");
        let plugin: &'static HostedPlugin = Box::leak(Box::new(plugin));
        Self { plugin, devices: plugin.start_devices().expect("devices that start"), ops: &[] }
    }

    /// The plugin as a subject for the suite.
    pub(crate) fn conformance_subject(&self) -> ConformanceSubject {
        let plugin = self.plugin;
        let message = plugin.abi_plugin();
        // SAFETY: the plugin's strings are valid forever, since it is never unloaded.
        let text = |text: abi::Str| unsafe { text.text() }.unwrap_or_default().to_owned();
        let mut kernels = plugin.kernel_records();
        kernels.retain(|kernel| self.ops.is_empty() || self.ops.contains(&text(kernel.op).as_str()));
        ConformanceSubject {
            role: SubjectRole::Device,
            name: text(message.name),
            version: text(message.version),
            device_type: text(message.device_type),
            context: message.context,
            core: plugin.core_table(),
            // SAFETY: as above; the same holds for the table.
            asynchronous: unsafe { message.r#async.as_ref() }.map(|table| (message.context, *table)),
            kernels,
            layer: None,
            mode_change: None,
            entry: None,
            devices: self.devices.clone(),
            read_error: Box::new(move |error| read_error_text(plugin, error)),
        }
    }

    pub(crate) fn run_checks(&self) -> ConformanceReport {
        run_patiently(self.conformance_subject(), CHECK_PATIENCE)
    }

    /// Runs the suite on the plugin after a change to its tables.
    pub(crate) fn run_checks_on_changed(
        &self,
        change: impl FnOnce(&mut ConformanceSubject),
    ) -> ConformanceReport {
        let mut subject = self.conformance_subject();
        change(&mut subject);
        run_patiently(subject, CHECK_PATIENCE)
    }

    pub(crate) fn run_checks_impatiently(&self) -> ConformanceReport {
        run_patiently(self.conformance_subject(), Duration::from_secs(2))
    }
}

fn read_error_text(plugin: &HostedPlugin, error: abi::Error) -> ErrorText {
    let Some(failure) = plugin.take_error(error) else {
        let breach = Some(format!("expected the number of an error, found {}", error.0));
        return ErrorText { code: abi::Code::FATAL, message: String::new(), breach };
    };
    let breach = failure.message.is_none().then(|| "expected UTF-8 text, found other bytes".to_owned());
    ErrorText { code: failure.code, message: failure.message.unwrap_or_default(), breach }
}

fn run_patiently(subject: ConformanceSubject, patience: Duration) -> ConformanceReport {
    let settings = SuiteSettings { patience, ..SuiteSettings::default() };
    // SAFETY: the plugin was started and stays loaded, and only one test uses it.
    unsafe { run_suite(subject, &settings, &mut |_| {}) }
}
