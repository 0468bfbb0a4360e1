//! A host of as little as the suite needs: it loads plugins that are linked in, and knows errors and one option.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;
use std::time::Duration;

use oarlock_conformance::{ErrorText, Report, Subject, run};
use oarlock_plugin_sim as _;
use oarlock_sdk::abi;

/// How long one check may take in these tests. Those that pass take a moment.
const PATIENCE: Duration = Duration::from_secs(30);

unsafe extern "C" {
    /// The entry of the simulated device, which is linked in.
    fn oarlock_plugin_query(host: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error;
}

struct SmallHost {
    script: String,
    errors: Mutex<BTreeMap<u64, ErrorText>>,
}

unsafe extern "C" fn error_create(context: *mut c_void, info: *const abi::ErrorInfo) -> abi::Error {
    // SAFETY: the context is the host's own, and the plugin's struct and its text live through the call.
    let (host, code, message) =
        unsafe { (&*context.cast::<SmallHost>(), (*info).code, (*info).message.text()) };
    let breach = message.is_none().then(|| "expected UTF-8 text, found other bytes".to_owned());
    host.make(ErrorText { code, message: message.unwrap_or_default().to_owned(), breach })
}

unsafe extern "C" fn option(context: *mut c_void, _: abi::Str, value: *mut abi::Str) -> abi::Error {
    // SAFETY: the context is the host's own, and the value is the plugin's to have written.
    unsafe { *value = abi::Str::borrowed(&(*context.cast::<SmallHost>()).script) };
    abi::Error::NONE
}

static SERVICES: abi::HostTable =
    abi::HostTable { error_create: Some(error_create), option: Some(option), ..abi::HostTable::EMPTY };

impl SmallHost {
    fn make(&self, text: ErrorText) -> abi::Error {
        let mut errors = self.errors.lock().expect("no test panics here");
        let number = errors.last_key_value().map_or(1, |(last, _)| last + 1);
        errors.insert(number, text);
        abi::Error(number)
    }

    fn read(&self, error: abi::Error) -> ErrorText {
        let made = self.errors.lock().expect("no test panics here").remove(&error.0);
        let breach = Some(format!("expected the number of an error, found {}", error.0));
        made.unwrap_or(ErrorText { code: abi::Code::FATAL, message: String::new(), breach })
    }
}

/// A plugin that is linked in, started as a host starts one. It stays until the process ends.
pub(crate) struct Loaded {
    host: &'static SmallHost,
    plugin: abi::Plugin,
    devices: Vec<u32>,
}

impl Loaded {
    pub(crate) fn cpu() -> Self {
        Self::new(oarlock_plugin_cpu::QUERY, "")
    }

    pub(crate) fn sim(script: &str) -> Self {
        Self::new(oarlock_plugin_query, script)
    }

    fn new(query: abi::PluginQuery, script: &str) -> Self {
        let errors = Mutex::default();
        let host: &'static SmallHost = Box::leak(Box::new(SmallHost { script: script.to_owned(), errors }));
        let asking: &'static abi::Host = Box::leak(Box::new(abi::Host {
            contract_major: abi::CONTRACT_MAJOR,
            contract_minor: abi::CONTRACT_MINOR,
            sanitizer: abi::SANITIZER,
            context: (&raw const *host).cast_mut().cast(),
            services: &raw const SERVICES,
            ..abi::Host::EMPTY
        }));
        let mut plugin = abi::Plugin::EMPTY;
        // SAFETY: both structs are whole, and the host's lives for ever.
        let error = unsafe { query(&raw const *asking, &raw mut plugin) };
        let mut loaded = Self { host, plugin, devices: Vec::new() };
        loaded.expect_success(error);
        loaded.start();
        loaded
    }

    fn core(&self) -> &'static abi::CoreTable {
        // SAFETY: the plugin brings a device, and its tables stay.
        unsafe { &*self.plugin.core }
    }

    fn start(&mut self) {
        let (core, context) = (self.core(), self.plugin.context);
        let (mut ids, mut count) = ([0; 64], 0);
        // SAFETY: the context is the plugin's own, and there is room for 64 ids.
        unsafe {
            core.initialize.inspect(|initialize| self.expect_success(initialize(context)));
            let list = core.device_list.expect("a list of devices");
            self.expect_success(list(context, ids.as_mut_ptr(), 64, &raw mut count));
        }
        self.devices = ids[..count as usize].to_vec();
        for device in &self.devices {
            // SAFETY: the device is one of the list.
            core.device_init.inspect(|init| self.expect_success(unsafe { init(context, *device) }));
        }
    }

    #[track_caller]
    fn expect_success(&self, error: abi::Error) {
        assert!(!error.is_some(), "{:?}", self.host.read(error));
    }

    /// The plugin as the suite takes it.
    pub(crate) fn subject(&self) -> Subject {
        let host = self.host;
        // SAFETY: the texts, tables and kernels of the plugin stay, as it is never unloaded.
        unsafe {
            let text = |text: abi::Str| text.text().unwrap_or_default().to_owned();
            let records = self.plugin.kernels.as_ref().map_or(&[][..], |table| {
                std::slice::from_raw_parts(table.kernels, table.kernels_count as usize)
            });
            Subject {
                name: text(self.plugin.name),
                version: text(self.plugin.version),
                device_type: text(self.plugin.device_type),
                context: self.plugin.context,
                core: *self.core(),
                asynchronous: self.plugin.r#async.as_ref().copied(),
                kernels: records.iter().map(|record| **record).collect(),
                devices: self.devices.clone(),
                read_error: Box::new(move |error| host.read(error)),
            }
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

fn report(subject: Subject, patience: Duration) -> Report {
    // SAFETY: the plugin was started and stays, and one test alone uses it.
    unsafe { run(subject, patience, &mut |_| {}) }
}
