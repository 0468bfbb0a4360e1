//! A model is loaded, planned and run, and what must hold of it is looked at.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use oarlock_core::flags::Flags;
use oarlock_core::{Device, Error, ErrorKind, Result, Runtime};
use oarlock_engine::export::onnx::About;
use oarlock_engine::{Datum, Model, Precision, Session, SessionOptions, Slot, import};
use oarlock_tests::bare_host::{CPU, host_options};

use crate::door::Source;
use crate::graphs;

/// What a run may take.
const LIMITS: [(&str, &str); 3] =
    [("device_memory_limit", "64MiB"), ("run_steps_limit", "5000"), ("random_seed", "7")];

/// A runtime whose runs are limited.
pub(crate) fn start(flags: &[(&str, &str)]) -> Runtime {
    let options = host_options("hostile models", "", &[CPU]);
    let mut all = Flags::from_environment(|_| None).expect("the defaults of the flags");
    LIMITS.iter().chain(flags).for_each(|(name, value)| all.set(name, value).expect("a flag"));
    Runtime::start(options, all).expect("a runtime")
}

/// How many bytes there are to choose the inputs of one run by.
const CHOICES: usize = 32;

/// What makes the inputs of a model for a run, of bytes that are its choices.
type Feeds = Box<dyn Fn(&Runtime, &Session, &[u8]) -> Result<Vec<Datum>>>;

/// A model to be tried, with the choices of what it is given.
pub(crate) struct Trial {
    model: Result<Model>,
    about: String,
    options: SessionOptions,
    /// Of two runs, whose inputs may differ.
    choices: [[u8; CHOICES]; 2],
    inputs: Feeds,
}

impl Trial {
    /// A graph that nobody would make.
    pub(crate) fn made_up(source: &mut Source<'_>) -> Self {
        let model = graphs::model(source);
        let inputs = |runtime: &Runtime, session: &Session, choices: &[u8]| {
            let (device, mut source) = (runtime.device("cpu")?, Source::new(choices));
            let feed = |slot: &Slot| graphs::feed(&device, &slot.declared, &mut source);
            Ok(session.inputs().iter().map(feed).collect())
        };
        Self::new(Ok(model), source, Box::new(inputs))
    }

    /// The model of a file, and what it is given: what is usual, and now and then something else.
    pub(crate) fn of_file(
        model: Result<Model>,
        source: &mut Source<'_>,
        usual: impl Fn(&Device) -> Result<Vec<Datum>> + 'static,
    ) -> Self {
        let inputs = move |runtime: &Runtime, session: &Session, choices: &[u8]| {
            let (device, mut source) = (runtime.device("cpu")?, Source::new(choices));
            let mut usual = usual(&device)?.into_iter();
            let input = |slot: &Slot| match usual.next() {
                Some(usual) if !source.once_in(4) => usual,
                _ => graphs::feed(&device, &slot.declared, &mut source),
            };
            Ok(session.inputs().iter().map(input).collect())
        };
        Self::new(model, source, Box::new(inputs))
    }

    fn new(model: Result<Model>, source: &mut Source<'_>, inputs: Feeds) -> Self {
        let about = model.as_ref().map_or_else(Error::to_string, |model| model.graph.to_string());
        let options = SessionOptions {
            is_plain: source.once_in(8),
            precision: if source.once_in(4) { Precision::Bf16 } else { Precision::F32 },
            ..SessionOptions::default()
        };
        let choices = [(); 2].map(|()| [(); CHOICES].map(|()| source.below(256) as u8));
        Self { model, about, options, choices, inputs }
    }

    /// Says whether it worked, or in what way the runtime did wrong.
    pub(crate) fn run(&self, runtime: &Arc<Runtime>) -> std::result::Result<bool, String> {
        let before = allocated(runtime);
        let done = catch_unwind(AssertUnwindSafe(|| self.work(runtime)));
        let complaint = match done {
            Ok(Ok(())) => return self.left(runtime, before).map(|()| true),
            Ok(Err(error)) if is_good(&error) => return self.left(runtime, before).map(|()| false),
            Ok(Err(error)) => format!("the error is a bad one ({}): {error}", error.kind()),
            Err(_) => "it panicked".to_owned(),
        };
        Err(format!("{complaint}\n{}", self.about))
    }

    fn left(&self, runtime: &Runtime, before: u64) -> std::result::Result<(), String> {
        let after = allocated(runtime);
        let complaint = || format!("{before} bytes were held before, and {after} are after\n{}", self.about);
        if before == after { Ok(()) } else { Err(complaint()) }
    }

    /// Runs it with what it is given twice, since only the first run makes a plan, and then with something else. A run that
    /// fails must not harm the next.
    fn work(&self, runtime: &Arc<Runtime>) -> Result<()> {
        let model = self.model.as_ref().map_err(Clone::clone)?;
        let session = Session::new(runtime.clone(), model, &self.options)?;
        is_written(&session)?;
        let run = |choices: &[u8], times| {
            let inputs = (self.inputs)(runtime, &session, choices)?;
            (0..times).try_for_each(|_| session.run(&inputs)?.iter().try_for_each(read))
        };
        let [first, second] = &self.choices;
        let done = [run(first, 2), run(second, 1)];
        // A bad error is one wherever it is.
        let bad = done.iter().find(|done| done.as_ref().is_err_and(|error| !is_good(error)));
        bad.unwrap_or(&done[0]).clone()
    }
}

/// What is written of a model must be one, if anything can be written.
fn is_written(session: &Session) -> Result<()> {
    let files = session.to_onnx(&About::default());
    let read = files.map(|files| import::onnx::decode(files.model.into(), None));
    match read {
        Ok(Err(error)) => Err(Error::new(ErrorKind::Fatal, format!("no model was written: {error}"))),
        Ok(Ok(_)) => Ok(()),
        Err(error) if is_good(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn allocated(runtime: &Runtime) -> u64 {
    let device = runtime.device("cpu").expect("the CPU");
    device.pool().expect("its pool").statistics().allocated
}

fn read(datum: &Datum) -> Result<()> {
    match datum {
        Datum::Tensor(tensor) => tensor.wait(),
        Datum::Sequence(elements) => elements.iter().try_for_each(read),
        Datum::Nothing => Ok(()),
    }
}

/// An error says what was expected, and is not about the runtime itself.
fn is_good(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("expected") && !text.contains("panicked") && error.kind() != ErrorKind::Fatal
}
