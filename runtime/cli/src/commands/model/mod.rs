//! The commands that are about models. What they share is here: from a file to a session.

mod accuracy;
pub(crate) mod bench;
pub(crate) mod check;
mod difference;
pub(crate) mod explain;
mod fallback;
mod feeds;
pub(crate) mod optimise;
mod outputs;
mod page;
mod random;
pub(crate) mod run;
mod source;
mod statistics;
pub(crate) mod trace;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oarlock_core::flags::Fallback;
use oarlock_core::{Device, Runtime};
use oarlock_engine::graph::{Graph, ValueId};
use oarlock_engine::{Datum, FallbackListener, Model, Precision, Session, SessionOptions};
use serde::Serialize;

use crate::arguments::{Exactness, Global, ModelChoice};
use crate::output::{self, Output};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::session::Core;
use crate::{variables, watched};
use feeds::{Given, Wish};

/// How many inputs are told one by one that were made up.
const MOST_NOTES: usize = 6;

/// A model that is ready to run.
struct Subject {
    // Dropped before what they stand on.
    session: Session,
    model: Model,
    core: Core,
    precision: Precision,
    is_plain: bool,
    progress: Arc<Mutex<Progress>>,
    /// Whether everything that the arguments name is there.
    is_complete: bool,
    /// When the file was begun to be read, and how long it took until the session was there.
    began: Instant,
    loading: Duration,
    preparing: Duration,
}

impl Subject {
    /// Loads a model, and readies it as far as the shapes of inputs do not matter.
    fn load(global: &Global, choice: &ModelChoice, exactness: Exactness) -> Result<Self, Problem> {
        Self::load_changed(global, choice, exactness, |_| Ok(()))
    }

    /// The same for a plan that nobody runs: what the CPU would do for devices is in it, whatever the flag `kernel_fallback`
    /// is.
    fn load_to_look(global: &Global, choice: &ModelChoice, exactness: Exactness) -> Result<Self, Problem> {
        Self::load_with(global, choice, exactness, Some(Fallback::Models), |_| Ok(()))
    }

    /// The same of a model that is changed before anything is made of it.
    fn load_changed(
        global: &Global,
        choice: &ModelChoice,
        exactness: Exactness,
        change: impl FnOnce(&mut Model) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        Self::load_with(global, choice, exactness, None, change)
    }

    fn load_with(
        global: &Global,
        choice: &ModelChoice,
        exactness: Exactness,
        fallback: Option<Fallback>,
        change: impl FnOnce(&mut Model) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        let (core, is_complete) = start(global, choice)?;
        let devices = devices(&core.runtime, choice)?;
        let file = choice.file.display();
        let progress = Arc::new(Mutex::new(Progress::default()));
        watched::tell(&format!("`{file}` was read"));
        show(&progress, &format!("reading `{file}` …"));
        let began = Instant::now();
        let mut model = source::load(&choice.file)?;
        change(&mut model)?;
        let loading = began.elapsed();
        watched::tell(&format!("`{file}` was optimised"));
        show(&progress, &format!("optimising `{file}` …"));
        let bar = progress.clone();
        let told = move |ready, all| lock(&bar).bar("readying kernels", ready, all);
        let (precision, is_plain) = (exactness.precision, choice.plain);
        let options = SessionOptions {
            devices,
            is_plain,
            precision,
            fallback,
            // Commands tell it themselves, in one line, once all is known.
            on_fallback: FallbackListener::new(|_| ()),
            progress: oarlock_engine::Progress::new(told),
        };
        let session = Session::new(core.runtime.clone(), &model, &options)
            .map_err(|error| Problem::from(error).of_file(&choice.file))?;
        let preparing = began.elapsed() - loading;
        clear(&progress);
        Ok(Self {
            session,
            model,
            core,
            precision,
            is_plain,
            progress,
            is_complete,
            began,
            loading,
            preparing,
        })
    }

    /// The devices that nodes run on.
    fn devices(&self) -> Vec<String> {
        self.session.devices().iter().map(|device| device.name().to_owned()).collect()
    }

    /// The device that inputs go to.
    fn device(&self) -> Result<&Device, Problem> {
        self.session.devices().first().ok_or_else(|| Problem::new("expected a device, found none"))
    }

    /// Checks that there is something to run the model for.
    fn check_outputs(&self, choice: &ModelChoice) -> Result<(), Problem> {
        if !self.session.outputs().is_empty() {
            return Ok(());
        }
        let problem = Problem::new("expected a model with outputs, found one that gives nothing");
        Err(problem.of_file(&choice.file).hint("name the values that are wanted as outputs of its graph"))
    }

    /// The inputs that the arguments mean, with a note for each that was made up.
    fn feeds(&self, global: &Global, wish: &Wish<'_>) -> Result<Given, Problem> {
        let given = wish.fulfil(&self.session, self.device()?)?;
        let (shown, rest) = given.made_up.split_at(given.made_up.len().min(MOST_NOTES));
        for note in shown.iter().chain(&given.assumed) {
            output::say(global.color, "note", note, None);
        }
        if !rest.is_empty() {
            let more = crate::render::count(rest.len(), "more input is", "more inputs are");
            output::say(global.color, "note", &format!("{more} made up likewise"), None);
        }
        Ok(given)
    }

    /// Runs the model and waits for what it makes.
    fn run(&self, inputs: &[Datum]) -> Result<Vec<Datum>, Problem> {
        let devices = self.devices().join("`, `");
        watched::tell(&format!("the nodes of the model were readied and run on `{devices}`"));
        let outputs = self.session.run(inputs)?;
        outputs.iter().try_for_each(wait)?;
        clear(&self.progress);
        Ok(outputs)
    }
}

/// Starts the core on the flags that the arguments say; also says whether everything that they name is there.
fn start(global: &Global, choice: &ModelChoice) -> Result<(Core, bool), Problem> {
    let mut flags = variables::flags()?;
    if let Some(threads) = choice.threads {
        flags.set("threads", &threads.to_string())?;
    }
    for (name, value) in &choice.flags {
        flags.set(name, value)?;
    }
    let core = Core::start(global, flags)?;
    let is_complete = core.mention_what_is_missing(global, false);
    Ok((core, is_complete))
}

/// The devices that the arguments name; none where they leave it to the runtime. One that is named again, maybe by another
/// name, stays in its first place.
fn devices(runtime: &Runtime, choice: &ModelChoice) -> Result<Vec<Device>, Problem> {
    let mut devices: Vec<Device> = Vec::new();
    for name in &choice.devices {
        let device = runtime.device(name)?;
        if !devices.iter().any(|other| other.is(&device)) {
            devices.push(device);
        }
    }
    Ok(devices)
}

/// Says what was found, to programs or to people. What follows is the end of the plugins.
fn tell(
    global: &Global,
    output: &mut Output,
    report: &impl Serialize,
    print: impl FnOnce(&mut Output),
) -> Result<(), Problem> {
    if global.json {
        crate::commands::print_json(output, report)?;
    } else {
        print(output);
    }
    output.flush();
    watched::tell("the plugins were ended");
    Ok(())
}

/// Waits until a value is there.
fn wait(datum: &Datum) -> Result<(), Problem> {
    match datum {
        Datum::Tensor(tensor) => Ok(tensor.wait()?),
        Datum::Sequence(elements) => elements.iter().try_for_each(wait),
        Datum::Nothing => Ok(()),
    }
}

fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show(progress: &Mutex<Progress>, text: &str) {
    lock(progress).show(text);
}

fn clear(progress: &Mutex<Progress>) {
    lock(progress).clear();
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A time in a unit that suits it, with three figures.
fn time(milliseconds: f64) -> String {
    let (number, unit) = match milliseconds {
        ms if ms >= 1e3 => (ms / 1e3, "s"),
        ms if ms >= 1.0 || ms == 0.0 => (ms, "ms"),
        ms => (ms * 1e3, "µs"),
    };
    format!("{} {unit}", figures(number))
}

/// A number with three figures, as far as they stand behind the point.
fn figures(number: f64) -> String {
    let before = if number.abs() < 1.0 { 0 } else { number.abs().log10() as usize + 1 };
    format!("{number:.0$}", 3usize.saturating_sub(before))
}

/// An op as people read it: with its domain, unless that is ONNX's own.
fn op_of(domain: &str, op: &str) -> String {
    if domain.is_empty() { op.to_owned() } else { format!("{domain}.{op}") }
}

/// A value of a graph, as in `x: f32 [1, 3]`.
fn kind_of(graph: &Graph, id: ValueId) -> String {
    let value = graph.value(id);
    let dtype = value.dtype().map_or("?", |dtype| dtype.name());
    match value.dims() {
        Some(dims) => format!("{}: {dtype} {dims:?}", value.name),
        None => format!("{}: {dtype} […]", value.name),
    }
}

/// What a value is, for programs and in a line.
#[derive(Serialize)]
struct Kind {
    name: String,
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
}

impl Kind {
    fn of(name: &str, datum: &Datum) -> Self {
        let tensor = if let Datum::Tensor(tensor) = datum { Some(tensor) } else { None };
        Self {
            name: name.to_owned(),
            dtype: tensor.map(|tensor| tensor.dtype().name()),
            shape: tensor.map(|tensor| tensor.dims().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_figures_and_a_unit() {
        let shown = [0.0, 0.000_5, 0.004_12, 1.0, 37.72, 128.4, 2500.0].map(time);
        assert_eq!(shown, ["0.000 ms", "0.500 µs", "4.12 µs", "1.00 ms", "37.7 ms", "128 ms", "2.50 s"]);
    }
}
