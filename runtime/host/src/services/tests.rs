//! Calls the services as a plugin does.

use super::*;

/// Records all messages.
#[derive(Default)]
struct RecordingLogSink(Mutex<Vec<String>>);

impl LogSink for RecordingLogSink {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        self.0.lock().unwrap().push(format!("{plugin} {} {message}", level.0));
    }
}

fn test_services(log: Arc<dyn LogSink>) -> Arc<PluginServices> {
    let options = [("speed".to_owned(), "fast".to_owned())].into();
    let options = [("acme".to_owned(), options)].into();
    PluginServices::new(
        &Arc::new(SharedServices::new("test 1".to_owned(), log, options, NonZeroUsize::new(2))),
        "libacme.so",
    )
}

fn service_context(services: &Arc<PluginServices>) -> *mut c_void {
    services.abi_host().context
}

#[test]
fn an_error_has_the_plugin_as_its_origin_and_is_gone_once_released() {
    let services = test_services(Arc::new(SilentLogSink));
    let info = abi::ErrorInfo { message: abi::Str::new("no"), ..abi::ErrorInfo::EMPTY };
    let mut read = abi::ErrorInfo::EMPTY;
    // SAFETY: the context is that of the services, and the structs are as large as they say.
    unsafe {
        let error = error_create(service_context(&services), &raw const info);
        assert_eq!(error_read(service_context(&services), error, &raw mut read), abi::Error::NONE);
        assert_eq!((read.message.text(), read.origin.text()), (Some("no"), Some("libacme.so")));
        assert_eq!(error_release(service_context(&services), error), abi::Error::NONE);
        assert_eq!(error_release(service_context(&services), abi::Error::NONE), abi::Error::NONE);
        let twice = errors::take_failure(error_release(service_context(&services), error));
        assert_eq!(twice.rule, "R-1");
    }
}

#[test]
fn an_error_without_a_proper_description_is_still_an_error() {
    let services = test_services(Arc::new(SilentLogSink));
    let short = abi::ErrorInfo { size: 8, ..abi::ErrorInfo::EMPTY };
    // SAFETY: a description that is too short is not read.
    let result = unsafe {
        [std::ptr::null(), &raw const short].map(|info| error_create(service_context(&services), info))
    };
    assert_eq!(result.map(|error| errors::take_failure(error).rule.clone()), ["S-1", "S-2"]);
}

#[test]
fn options_are_those_of_the_plugins_name() {
    let services = test_services(Arc::new(SilentLogSink));
    let mut value = abi::Str::EMPTY;
    let mut ask = |key| {
        // SAFETY: the context is that of the services, and they keep the options.
        unsafe {
            assert_eq!(
                host_option(service_context(&services), abi::Str::new(key), &raw mut value),
                abi::Error::NONE
            );
            value.text().unwrap().to_owned()
        }
    };
    assert_eq!(ask("speed"), "");
    services.set_name("acme");
    assert_eq!((ask("speed").as_str(), ask("size").as_str()), ("fast", ""));
}

#[test]
fn an_option_that_the_plugin_did_not_ask_for_is_named_with_those_that_it_did() {
    let services = test_services(Arc::new(SilentLogSink));
    services.set_name("acme");
    let told = services.unknown_options();
    assert_eq!(told, ["expected no option under `[plugin.acme]` in the configuration, found `speed`"]);
    let mut value = abi::Str::EMPTY;
    let mut ask = |key| {
        // SAFETY: the context is that of the services, and the place is valid.
        let error = unsafe { host_option(service_context(&services), abi::Str::new(key), &raw mut value) };
        assert_eq!(error, abi::Error::NONE);
    };
    ask("sped");
    ask("width");
    let told = services.unknown_options().concat();
    assert!(
        told.starts_with("expected `sped` or `width` under ") && told.ends_with("did you mean `sped`"),
        "{told}"
    );
    ask("speed");
    assert!(services.unknown_options().is_empty());
}

#[test]
fn messages_reach_the_log_even_if_they_are_no_text() {
    let heard = Arc::new(RecordingLogSink::default());
    let services = test_services(heard.clone());
    let bytes = b"a\xffb";
    // SAFETY: the context is that of the services, and the bytes live through the call.
    unsafe {
        host_log(service_context(&services), LogLevel::WARNING, abi::Str { data: bytes.as_ptr(), size: 3 });
        host_log(service_context(&services), LogLevel::INFO, abi::Str { data: std::ptr::null(), size: 3 });
    }
    assert_eq!(*heard.0.lock().unwrap(), ["libacme.so 2 a\u{fffd}b", "libacme.so 3 "]);
}

#[test]
fn null_pointers_and_unknown_names_are_errors_and_not_crashes() {
    let services = test_services(Arc::new(SilentLogSink));
    // SAFETY: null pointers are not followed.
    let errors = unsafe {
        [
            worker_count(service_context(&services), std::ptr::null_mut()),
            worker_count(std::ptr::null_mut(), std::ptr::null_mut()),
            parallel_for(service_context(&services), 1, 1, None, std::ptr::null_mut()),
            output_allocate(
                service_context(&services),
                std::ptr::null(),
                0,
                abi::Dtype::F32,
                std::ptr::null(),
                0,
            ),
            error_read(service_context(&services), abi::Error(7), std::ptr::null_mut()),
            host_experimental(service_context(&services), abi::Str::new("x_since_1_0"), std::ptr::null_mut()),
        ]
    };
    assert!(errors.iter().all(|error| error.is_some()));
    assert_eq!(errors::take_failure(errors[5]).code, Code::NOT_FOUND);
    errors[..5].iter().for_each(|error| _ = errors::take_failure(*error));
}

#[test]
fn an_op_is_run_by_the_runner_of_the_thread_and_by_nobody_elsewhere() {
    /// Remembers the names of ops.
    struct NamingRunner(Mutex<Vec<String>>);
    impl op_runner::OpRunner for NamingRunner {
        fn run_op(&self, request: &op_runner::OpRequest<'_>) -> Result<(), PluginFailure> {
            self.0.lock().unwrap().push(format!(
                "{}::{} {}",
                request.domain,
                request.op,
                request.inputs.len()
            ));
            Ok(())
        }
    }
    let services = test_services(Arc::new(SilentLogSink));
    let mut found = std::ptr::null_mut();
    // SAFETY: the context is that of the services, and the place is valid.
    let looked = unsafe {
        host_experimental(service_context(&services), abi::Str::new(op_runner::RUN_OP), &raw mut found)
    };
    assert_eq!(looked, abi::Error::NONE);
    // SAFETY: the host gives a function of this type under this name.
    let run = unsafe { std::mem::transmute::<*mut c_void, op_runner::RunOp>(found) };
    let none: *const *const abi::Tensor = std::ptr::null();
    let call = |inputs: *const *const abi::Tensor, count| {
        let (domain, op) = (abi::Str::new("acme"), abi::Str::new("Swish"));
        // SAFETY: the lists are as long as stated, or are found to be null.
        let error = unsafe {
            run(service_context(&services), domain, op, 0, inputs, count, std::ptr::null(), 0, none, 0)
        };
        errors::result_from_error(error).map_err(|failure| failure.code)
    };
    let runner = NamingRunner(Mutex::default());
    let operand = abi::Tensor::EMPTY;
    let inputs = [&raw const operand, &raw const operand];
    assert_eq!(call(inputs.as_ptr(), 2), Err(Code::PRECONDITION_NOT_MET));
    op_runner::with_op_runner(&runner, || {
        assert_eq!(call(inputs.as_ptr(), 2), Ok(()));
        assert_eq!(call(none, 1), Err(Code::INVALID_ARGUMENT));
        assert_eq!(call([std::ptr::null()].as_ptr(), 1), Err(Code::INVALID_ARGUMENT));
    });
    assert_eq!(call(inputs.as_ptr(), 2), Err(Code::PRECONDITION_NOT_MET));
    assert_eq!(*runner.0.lock().unwrap(), ["acme::Swish 2"]);
}
