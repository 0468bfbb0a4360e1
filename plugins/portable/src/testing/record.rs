//! A device that computes nothing and remembers what it was to compile, for tests of compilers without their chips.

use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Core, Host, Memory, Plugin, Result, Stream, Version, slots};

use super::{CASES, Machine};
use crate::{Argument, Compiled, Gpu, Grid, Language, Limits, Programs, Store};

/// The language that is recorded, and what was recorded. One at a time.
static RECORDED: Mutex<(Language, Vec<String>)> = Mutex::new((Language::OpenCl, Vec::new()));
static TURN: Mutex<()> = Mutex::new(());

struct Recorder {
    language: Language,
    programs: Programs<()>,
}

fn plugin(_: &Host) -> Result<Plugin<Recorder>> {
    let language = RECORDED.lock().unwrap_or_else(PoisonError::into_inner).0;
    let recorder = Recorder { language, programs: Programs::new(Store::nowhere()) };
    Ok(Plugin::device("recorder", "1.0.0", "recorder", recorder).kernels(crate::kernels()))
}

/// Every source that the [`CASES`] lead to, in a language.
pub fn sources(language: Language) -> Vec<String> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *RECORDED.lock().unwrap_or_else(PoisonError::into_inner) = (language, Vec::new());
    let machine = Machine::start(oarlock_sdk::query!(plugin)).expect("a recorder needs nothing");
    let machine = Machine { computes: false, ..machine };
    for (_, case) in CASES {
        case(&machine);
    }
    std::mem::take(&mut RECORDED.lock().unwrap_or_else(PoisonError::into_inner).1)
}

impl Gpu for Recorder {
    type Program = ();

    fn language(&self) -> Language {
        self.language
    }

    fn limits(&self, _: u32) -> Result<Limits> {
        Ok(Limits { has_f64: true })
    }

    fn identity(&self, _: u32) -> Result<String> {
        Ok(String::new())
    }

    fn programs(&self) -> &Programs<()> {
        &self.programs
    }

    fn compile(&self, _: u32, source: &str) -> Result<Compiled<()>> {
        RECORDED.lock().unwrap_or_else(PoisonError::into_inner).1.push(source.to_owned());
        Ok(Compiled { program: (), binary: None })
    }

    fn load(&self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn launch(&self, _: u32, _: Stream, (): &(), _: Grid, _: &[Argument<'_>]) -> Result<()> {
        Ok(())
    }
}

#[slots]
impl Core for Recorder {
    fn device_synchronize(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> Result<u32> {
        Ok(1)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        Ok(vec![0])
    }

    fn compute_capability(&self, _: u32) -> Result<Version> {
        Ok(Version::EMPTY)
    }

    fn runtime_version(&self) -> Result<Version> {
        Ok(Version::EMPTY)
    }

    fn driver_version(&self) -> Result<Version> {
        Ok(Version::EMPTY)
    }

    fn memory_allocate(&self, _: u32, _: u64) -> Result<Memory> {
        Ok(Memory(1))
    }

    fn memory_deallocate(&self, _: u32, _: Memory, _: u64) -> Result<()> {
        Ok(())
    }

    fn memory_copy_h2d(&self, _: u32, _: Memory, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn memory_copy_d2h(&self, _: u32, _: &mut [u8], _: Memory, _: u64) -> Result<()> {
        Ok(())
    }

    fn memory_copy_d2d(&self, _: u32, _: Memory, _: u64, _: Memory, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn memory_stats(&self, _: u32) -> Result<(u64, u64)> {
        Ok((0, 0))
    }

    fn min_chunk_size(&self, _: u32) -> Result<u64> {
        Ok(1)
    }
}
