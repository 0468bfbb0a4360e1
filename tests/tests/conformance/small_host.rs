//! Plugins that are linked in, as the suite takes them.

use std::time::Duration;

use oarlock_conformance::{ErrorText, Report, Subject, run};
use oarlock_sdk::abi;
use oarlock_small_host::Loaded as Plugin;
use oarlock_tests::bare_host::{CPU, SIM, forced_isa};

/// How long one check may take in these tests. Those that pass take a moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// A plugin that is linked in, started as a host starts one. It stays until the process ends.
pub(crate) struct Loaded {
    plugin: &'static Plugin,
    devices: Vec<u32>,
}

impl Loaded {
    pub(crate) fn cpu() -> Self {
        Self::new(CPU.query, &[])
    }

    /// The CPU held to some instructions, where it has them.
    pub(crate) fn cpu_held_to(isa: &str) -> Self {
        Self::new(CPU.query, &[("isa", isa)])
    }

    /// The simulated device with one kernel, which is enough for checks that are about something else, and with little
    /// memory, as all that these tests start stay.
    pub(crate) fn sim(script: &str) -> Self {
        Self::sim_with_kernels(&format!("quota 32MiB; ops Add; {script}"))
    }

    /// The simulated device with all its kernels.
    pub(crate) fn sim_with_kernels(script: &str) -> Self {
        Self::new(SIM.query, &[("script", script)])
    }

    fn new(query: abi::PluginQuery, options: &[(&str, &str)]) -> Self {
        let forced = forced_isa().filter(|_| options.iter().all(|(name, _)| *name != "isa"));
        let mut options = options.to_vec();
        options.extend(forced.as_deref().map(|isa| ("isa", isa)));
        let plugin = Plugin::new(query, &options).expect("a plugin that loads");
        let plugin: &'static Plugin = Box::leak(Box::new(plugin));
        Self { plugin, devices: plugin.start().expect("devices that start") }
    }

    /// The plugin as the suite takes it.
    pub(crate) fn subject(&self) -> Subject {
        let plugin = self.plugin;
        let said = plugin.plugin();
        // SAFETY: the texts of the plugin stay, as it is never unloaded.
        let text = |text: abi::Str| unsafe { text.text() }.unwrap_or_default().to_owned();
        Subject {
            name: text(said.name),
            version: text(said.version),
            device_type: text(said.device_type),
            context: said.context,
            core: plugin.core(),
            // SAFETY: as above, the table too.
            asynchronous: unsafe { said.r#async.as_ref() }.copied(),
            kernels: plugin.kernels(),
            devices: self.devices.clone(),
            read_error: Box::new(move |error| read(plugin, error)),
        }
    }

    pub(crate) fn report(&self) -> Report {
        report(self.subject(), PATIENCE)
    }

    /// The report after something about the plugin was changed.
    pub(crate) fn report_with(&self, change: impl FnOnce(&mut Subject)) -> Report {
        let mut subject = self.subject();
        change(&mut subject);
        report(subject, PATIENCE)
    }

    pub(crate) fn impatient_report(&self) -> Report {
        report(self.subject(), Duration::from_secs(2))
    }
}

fn read(plugin: &Plugin, error: abi::Error) -> ErrorText {
    let Some(failure) = plugin.take(error) else {
        let breach = Some(format!("expected the number of an error, found {}", error.0));
        return ErrorText { code: abi::Code::FATAL, message: String::new(), breach };
    };
    let breach = failure.message.is_none().then(|| "expected UTF-8 text, found other bytes".to_owned());
    ErrorText { code: failure.code, message: failure.message.unwrap_or_default(), breach }
}

fn report(subject: Subject, patience: Duration) -> Report {
    // SAFETY: the plugin was started and stays, and one test alone uses it.
    unsafe { run(subject, patience, &mut |_| {}) }
}
