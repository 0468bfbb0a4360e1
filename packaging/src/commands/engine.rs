//! The engine of this machine, as commands use it.

use std::path::Path;

use oarlock_pack::Error;
use oarlock_pack::engine::{Engine, Heard, Tell};
use oarlock_pack::image::Name;

use super::progress::Progress;

/// The engine that this user's environment says, or that is at a usual place.
pub(crate) fn find() -> Result<Engine, Error> {
    Engine::find(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// Gives it an archive, and shows how far that is.
pub(crate) fn load(engine: &Engine, archive: &Path, name: &Name) -> Result<String, Error> {
    show(&format!("giving {name} to {}", engine.described()), |hear| engine.load(archive, name, hear))
}

/// Has it build an image, and shows how far that is.
pub(crate) fn build(engine: &Engine, directory: &Path, name: &Name) -> Result<String, Error> {
    show(&format!("building {name} with {}", engine.described()), |hear| engine.build(directory, name, hear))
}

fn show(what: &str, work: impl FnOnce(Tell<'_>) -> Result<String, Error>) -> Result<String, Error> {
    let progress = Progress::new();
    progress.note(what);
    work(&mut |heard| match heard {
        Heard::Sent(done, all) => {
            // In thousands of bytes, so that the numbers stay short.
            progress.count((done >> 10) as usize, (all >> 10) as usize, &format!("{what}, KiB sent"));
        }
        Heard::Step(number, count, text) => progress.step(number - 1, count, text),
        Heard::Line(line) => progress.message(line),
    })
}
