//! Loads, plans and runs a model, and checks what must hold for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use oarlock_core::flags::Flags;
use oarlock_core::{Device, Error, ErrorKind, Result, Runtime};
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::{Model, ModelOperand, PrecisionMode, RuntimeValue, Session, SessionOptions, import};
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

use crate::door::ChoiceSource;
use crate::graphs;

/// Limits of a run.
const RUN_LIMITS: [(&str, &str); 3] =
    [("device_memory_limit", "64MiB"), ("run_steps_limit", "5000"), ("random_seed", "7")];

/// A runtime with limited runs.
pub(crate) fn start_runtime(flags: &[(&str, &str)]) -> Runtime {
    let options = host_options("hostile models", "", &[CPU_PLUGIN]);
    let mut all = Flags::from_environment(|_| None).expect("the defaults of the flags");
    RUN_LIMITS.iter().chain(flags).for_each(|(name, value)| all.set(name, value).expect("a flag"));
    Runtime::start(options, all).expect("a runtime")
}

/// Bytes of choices for the inputs of one run.
const CHOICE_BYTES: usize = 32;

/// Builds a model's inputs for one run from bytes that are its choices.
type MakeFeeds = Box<dyn Fn(&Runtime, &Session, &[u8]) -> Result<Vec<RuntimeValue>>>;

/// A model to try, with the choices for its inputs.
pub(crate) struct ModelTrial {
    model: Result<Model>,
    about: String,
    options: SessionOptions,
    /// Choices for two runs, whose inputs may differ.
    choices: [[u8; CHOICE_BYTES]; 2],
    inputs: MakeFeeds,
}

impl ModelTrial {
    /// A graph that no exporter would write.
    pub(crate) fn random_graph(source: &mut ChoiceSource<'_>) -> Self {
        let model = graphs::random_model(source);
        let inputs = |runtime: &Runtime, session: &Session, choices: &[u8]| {
            let (device, mut source) = (runtime.device("cpu")?, ChoiceSource::new(choices));
            let feed = |slot: &ModelOperand| graphs::make_feed(&device, &slot.declared, &mut source);
            Ok(session.inputs().iter().map(feed).collect())
        };
        Self::new(Ok(model), source, Box::new(inputs))
    }

    /// A model from a file, with its usual inputs and now and then others.
    pub(crate) fn from_file(
        model: Result<Model>,
        source: &mut ChoiceSource<'_>,
        usual: impl Fn(&Device) -> Result<Vec<RuntimeValue>> + 'static,
    ) -> Self {
        let inputs = move |runtime: &Runtime, session: &Session, choices: &[u8]| {
            let (device, mut source) = (runtime.device("cpu")?, ChoiceSource::new(choices));
            let mut usual = usual(&device)?.into_iter();
            let input = |slot: &ModelOperand| match usual.next() {
                Some(usual) if !source.once_in(4) => usual,
                _ => graphs::make_feed(&device, &slot.declared, &mut source),
            };
            Ok(session.inputs().iter().map(input).collect())
        };
        Self::new(model, source, Box::new(inputs))
    }

    fn new(model: Result<Model>, source: &mut ChoiceSource<'_>, inputs: MakeFeeds) -> Self {
        let about = model.as_ref().map_or_else(Error::to_string, |model| model.graph.to_string());
        let options = SessionOptions {
            is_plain: source.once_in(8),
            precision: if source.once_in(4) { PrecisionMode::Bf16 } else { PrecisionMode::F32 },
            ..SessionOptions::default()
        };
        let choices = [(); 2].map(|()| [(); CHOICE_BYTES].map(|()| source.choose_below(256) as u8));
        Self { model, about, options, choices, inputs }
    }

    /// Returns whether the model worked, or an error that describes a fault of the runtime.
    pub(crate) fn run_trial(&self, runtime: &Arc<Runtime>) -> std::result::Result<bool, String> {
        let before = allocated_bytes(runtime);
        let done = catch_unwind(AssertUnwindSafe(|| self.run_session(runtime)));
        let complaint = match done {
            Ok(Ok(())) => return self.check_leftovers(runtime, before).map(|()| true),
            Ok(Err(error)) if is_informative(&error) => {
                return self.check_leftovers(runtime, before).map(|()| false);
            }
            Ok(Err(error)) => format!("the error is a bad one ({}): {error}", error.kind()),
            Err(_) => "it panicked".to_owned(),
        };
        Err(format!("{complaint}\n{}", self.about))
    }

    fn check_leftovers(&self, runtime: &Runtime, before: u64) -> std::result::Result<(), String> {
        let after = allocated_bytes(runtime);
        let complaint = || format!("{before} bytes were held before, and {after} are after\n{}", self.about);
        if before == after { Ok(()) } else { Err(complaint()) }
    }

    /// Runs twice with the same inputs, since only the first run makes a plan, and then with others. A failed run must not harm
    /// the next.
    fn run_session(&self, runtime: &Arc<Runtime>) -> Result<()> {
        let model = self.model.as_ref().map_err(Clone::clone)?;
        let session = Session::new(runtime.clone(), model, &self.options)?;
        check_export(&session)?;
        let run = |choices: &[u8], times| {
            let inputs = (self.inputs)(runtime, &session, choices)?;
            (0..times).try_for_each(|_| session.run(&inputs)?.iter().try_for_each(read_datum))
        };
        let [first, second] = &self.choices;
        let done = [run(first, 2), run(second, 1)];
        // An uninformative error is a failure wherever it occurs.
        let bad = done.iter().find(|done| done.as_ref().is_err_and(|error| !is_informative(error)));
        bad.unwrap_or(&done[0]).clone()
    }
}

/// If the model can be exported, the exported file must be a valid model.
fn check_export(session: &Session) -> Result<()> {
    let files = session.to_onnx(&OnnxExportOptions::default());
    let read = files.map(|files| import::onnx::decode_onnx(files.model.into(), None));
    match read {
        Ok(Err(error)) => Err(Error::new(ErrorKind::Fatal, format!("no model was written: {error}"))),
        Ok(Ok(_)) => Ok(()),
        Err(error) if is_informative(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn allocated_bytes(runtime: &Runtime) -> u64 {
    let device = runtime.device("cpu").expect("the CPU");
    device.memory_pool().expect("its pool").statistics().allocated
}

fn read_datum(datum: &RuntimeValue) -> Result<()> {
    match datum {
        RuntimeValue::Tensor(tensor) => tensor.wait(),
        RuntimeValue::Sequence(elements) => elements.iter().try_for_each(read_datum),
        RuntimeValue::Nothing => Ok(()),
    }
}

/// An error must state what was expected, and must not be about the runtime itself.
fn is_informative(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("expected") && !text.contains("panicked") && error.kind() != ErrorKind::Fatal
}
