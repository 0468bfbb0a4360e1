//! The model commands, and what they share: from a file to a session.

mod accuracy;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod explain;
mod fallback;
mod html_page;
mod implied_shapes;
mod model_inputs;
mod model_source;
mod node_announcer;
pub(crate) mod optimize;
mod outputs;
mod random_inputs;
pub(crate) mod run;
pub(crate) mod trace;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oarlock_core::flags::FallbackScope;
use oarlock_core::{Device, Runtime};
use oarlock_engine::{
    ExecutionPlan, FallbackListener, Model, PrecisionMode, RuntimeValue, Session, SessionOptions,
};
use serde::Serialize;

use crate::arguments::{GlobalOptions, ModelArguments, PrecisionArguments};
use crate::output::{self, CommandOutput};
use crate::problem::CommandError;
use crate::progress::ProgressLine;
use crate::session::CoreSession;
use crate::{environment_flags, watched_child};
use implied_shapes::ShapeQuestion;
use model_inputs::{InputRequest, ModelInputs};
use node_announcer::NodeAnnouncer;

/// Random inputs noted one by one; the rest are counted.
const MAX_INPUT_NOTES: usize = 6;

struct PreparedModel {
    // Declared before `core`, to be dropped first.
    session: Session,
    model: Model,
    core: CoreSession,
    announcer: NodeAnnouncer,
    precision: PrecisionMode,
    is_plain: bool,
    progress: Arc<Mutex<ProgressLine>>,
    /// True if everything that the arguments name exists.
    is_complete: bool,
    /// When reading of the file began, and the time from then to a session.
    began: Instant,
    loading: Duration,
    preparing: Duration,
}

impl PreparedModel {
    /// Loads a model and prepares it as far as that does not need input shapes.
    fn load_model(
        global: &GlobalOptions,
        choice: &ModelArguments,
        exactness: PrecisionArguments,
    ) -> Result<Self, CommandError> {
        Self::load_modified(global, choice, exactness, |_| Ok(()))
    }

    /// Loads a model only to inspect its plan. CPU fallback is planned whatever the flag `kernel_fallback` says.
    fn load_for_inspection(
        global: &GlobalOptions,
        choice: &ModelArguments,
        exactness: PrecisionArguments,
    ) -> Result<Self, CommandError> {
        Self::load_with_fallback(global, choice, exactness, Some(FallbackScope::Models), |_| Ok(()))
    }

    /// Loads a model and lets `change` edit it before the session is made.
    fn load_modified(
        global: &GlobalOptions,
        choice: &ModelArguments,
        exactness: PrecisionArguments,
        change: impl FnOnce(&mut Model) -> Result<(), CommandError>,
    ) -> Result<Self, CommandError> {
        Self::load_with_fallback(global, choice, exactness, None, change)
    }

    fn load_with_fallback(
        global: &GlobalOptions,
        choice: &ModelArguments,
        exactness: PrecisionArguments,
        fallback: Option<FallbackScope>,
        change: impl FnOnce(&mut Model) -> Result<(), CommandError>,
    ) -> Result<Self, CommandError> {
        let (core, is_complete) = start_core(global, choice)?;
        let devices = resolve_devices(&core.runtime, choice)?;
        let file = choice.file.display();
        let progress = Arc::new(Mutex::new(ProgressLine::default()));
        watched_child::send_status(&format!("`{file}` was read"));
        show_progress(&progress, &format!("reading `{file}` …"));
        let began = Instant::now();
        let mut model = model_source::load_model(&choice.file)?;
        change(&mut model)?;
        let loading = began.elapsed();
        watched_child::send_status(&format!("`{file}` was optimized"));
        show_progress(&progress, &format!("optimizing `{file}` …"));
        let bar = progress.clone();
        let show_progress = move |ready, all| lock_progress(&bar).show_bar("readying kernels", ready, all);
        let (precision, is_plain) = (exactness.precision, choice.plain);
        let announcer = NodeAnnouncer::new(&core.runtime);
        let options = SessionOptions {
            devices,
            is_plain,
            precision,
            fallback,
            // Commands report fallback themselves, in one line at the end.
            on_fallback: FallbackListener::new(|_| ()),
            progress: oarlock_engine::PrepareProgressListener::new(show_progress),
            on_node: announcer.listener(),
        };
        let session = Session::new(core.runtime.clone(), &model, &options)
            .map_err(|error| CommandError::from(error).for_file(&choice.file))?;
        let preparing = began.elapsed() - loading;
        clear_progress(&progress);
        Ok(Self {
            session,
            model,
            core,
            announcer,
            precision,
            is_plain,
            progress,
            is_complete,
            began,
            loading,
            preparing,
        })
    }

    fn device_names(&self) -> Vec<String> {
        self.session.devices().iter().map(|device| device.name().to_owned()).collect()
    }

    /// The device that inputs are copied to.
    fn input_device(&self) -> Result<&Device, CommandError> {
        self.session.devices().first().ok_or_else(|| CommandError::new("expected a device, found none"))
    }

    /// A model without outputs is not worth a run.
    fn check_outputs(&self, choice: &ModelArguments) -> Result<(), CommandError> {
        if !self.session.outputs().is_empty() {
            return Ok(());
        }
        let problem = CommandError::new("expected a model with outputs, found one that gives nothing");
        Err(problem
            .for_file(&choice.file)
            .with_hint("name the values that are wanted as outputs of its graph"))
    }

    /// Resolves the inputs. Made-up ones of shapes that cannot fit the model are an error that suggests others.
    fn create_inputs(&self, wish: &InputRequest<'_>) -> Result<ModelInputs, CommandError> {
        let device = self.input_device()?;
        let question =
            ShapeQuestion { model: &self.model, shapes: wish.shapes, runtime: &self.core.runtime, device };
        let given = wish.resolve_inputs(&self.session, device, &|| question.suggest_arguments())?;
        let is_made_up = !given.made_up.is_empty();
        match is_made_up.then(|| question.refuse_made_up(&given.data)).flatten() {
            Some(problem) => Err(problem),
            None => Ok(given),
        }
    }

    /// Resolves the inputs and prints a note for each random one.
    fn resolve_inputs(
        &self,
        global: &GlobalOptions,
        wish: &InputRequest<'_>,
    ) -> Result<ModelInputs, CommandError> {
        let given = self.create_inputs(wish)?;
        let (shown, rest) = given.made_up.split_at(given.made_up.len().min(MAX_INPUT_NOTES));
        for note in shown.iter().chain(&given.assumed) {
            output::print_message(global.color, "note", note, None);
        }
        if !rest.is_empty() {
            let more = oarlock_report::text::format_count(rest.len(), "more input is", "more inputs are");
            output::print_message(global.color, "note", &format!("{more} made up likewise"), None);
        }
        Ok(given)
    }

    /// Plans the model for these inputs. Each node is announced, in case a kernel takes the process along.
    fn plan_inputs(&self, inputs: &[RuntimeValue]) -> Result<Arc<ExecutionPlan>, CommandError> {
        Ok(self.announcer.announce_during(|| self.session.plan(inputs))?)
    }

    /// Runs the model and waits for its outputs. Each node is announced, in case a kernel takes the process along.
    fn run(&self, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>, CommandError> {
        let devices = self.device_names().join("`, `");
        watched_child::send_status(&format!("the nodes of the model were readied and run on `{devices}`"));
        let run_model = || {
            let outputs = self.session.run(inputs)?;
            outputs.iter().try_for_each(wait_for_value)?;
            Ok::<_, CommandError>(outputs)
        };
        let outputs = self.announcer.announce_during(run_model)?;
        watched_child::send_status(&format!("the model was in use on `{devices}`"));
        clear_progress(&self.progress);
        Ok(outputs)
    }
}

/// Starts the core with the flags of the arguments; the bool is false if something that they name is missing.
fn start_core(global: &GlobalOptions, choice: &ModelArguments) -> Result<(CoreSession, bool), CommandError> {
    let mut flags = environment_flags::flags_from_environment()?;
    if let Some(threads) = choice.threads {
        flags.set("threads", &threads.to_string())?;
    }
    for (name, value) in &choice.flags {
        flags.set(name, value)?;
    }
    let core = CoreSession::start_core(global, flags)?;
    let is_complete = core.warn_about_missing(global, false);
    Ok((core, is_complete))
}

/// The devices in the arguments; empty if the runtime should choose. A device named again, perhaps under another name, keeps
/// its first position.
fn resolve_devices(runtime: &Runtime, choice: &ModelArguments) -> Result<Vec<Device>, CommandError> {
    let mut devices: Vec<Device> = Vec::new();
    for name in &choice.devices {
        let device = runtime.device(name)?;
        if !devices.iter().any(|other| other.is_same_device(&device)) {
            devices.push(device);
        }
    }
    Ok(devices)
}

/// Prints the report as JSON or text. The plugins shut down next.
fn report_result(
    global: &GlobalOptions,
    output: &mut CommandOutput,
    report: &impl Serialize,
    print: impl FnOnce(&mut CommandOutput),
) -> Result<(), CommandError> {
    if global.json {
        crate::commands::print_json(output, report)?;
    } else {
        print(output);
    }
    output.flush();
    Ok(())
}

/// Waits for every tensor in the value.
fn wait_for_value(value: &RuntimeValue) -> Result<(), CommandError> {
    match value {
        RuntimeValue::Tensor(tensor) => Ok(tensor.wait()?),
        RuntimeValue::Sequence(elements) => elements.iter().try_for_each(wait_for_value),
        RuntimeValue::Nothing => Ok(()),
    }
}

fn lock_progress(progress: &Mutex<ProgressLine>) -> std::sync::MutexGuard<'_, ProgressLine> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show_progress(progress: &Mutex<ProgressLine>, text: &str) {
    lock_progress(progress).show_text(text);
}

fn clear_progress(progress: &Mutex<ProgressLine>) {
    lock_progress(progress).clear_line();
}
