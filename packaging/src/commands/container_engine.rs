//! The local container engine, for the commands that use it.

use std::path::Path;

use oarlock_formats::Error;
use oarlock_image::ImageName;
use oarlock_pack::container_engine::{ContainerEngine, ProgressEvent, ProgressSink};

use super::progress::ProgressReporter;

/// Finds the engine that the environment names, or one at a default socket.
pub(crate) fn find_engine() -> Result<ContainerEngine, Error> {
    ContainerEngine::find_local(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// Loads an archive into the engine and shows progress.
pub(crate) fn load_image(
    engine: &ContainerEngine,
    archive: &Path,
    name: &ImageName,
) -> Result<String, Error> {
    with_progress(&format!("giving {name} to {}", engine.description()), |on_event| {
        engine.load_image(archive, name, on_event)
    })
}

/// Has the engine build an image and shows progress.
pub(crate) fn build_image(
    engine: &ContainerEngine,
    directory: &Path,
    name: &ImageName,
) -> Result<String, Error> {
    with_progress(&format!("building {name} with {}", engine.description()), |on_event| {
        engine.build_image(directory, name, on_event)
    })
}

fn with_progress(
    what: &str,
    work: impl FnOnce(ProgressSink<'_>) -> Result<String, Error>,
) -> Result<String, Error> {
    let progress = ProgressReporter::new();
    progress.note_activity(what);
    work(&mut |event| match event {
        ProgressEvent::Sent(done, all) => {
            // In KiB, which keeps the numbers short.
            progress.count_step((done >> 10) as usize, (all >> 10) as usize, &format!("{what}, KiB sent"));
        }
        ProgressEvent::Step(number, count, text) => progress.begin_step(number - 1, count, text),
        ProgressEvent::Line(line) => progress.show_message(line),
    })
}
