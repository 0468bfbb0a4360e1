//! A device that computes nothing and remembers what it was to compile, for tests of compilers without their chips.

#![expect(unsafe_code, reason = "a driver is given host memory by its address")]

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{Error, Host, HostPointer, Plugin, Result, Stream, Version};

use super::{CASES, Machine};
use crate::{
    Argument, Compiled, Device, Event, Facts, Found, Gpu, Gpus, Grid, Language, Place, Queue, Reached, Store,
};

/// The language that is recorded, and what was recorded. One at a time.
static RECORDED: Mutex<(Language, Vec<String>)> = Mutex::new((Language::OpenCl, Vec::new()));
static TURN: Mutex<()> = Mutex::new(());

struct Recorder(Language);

/// A queue or an event of it, in which nothing ever happens.
struct Nothing;

fn plugin(host: &Host) -> Result<Plugin<Gpus<Recorder>>> {
    let recorder = Gpus::new(host, Store::nowhere());
    Ok(Plugin::device("recorder", "1.0.0", "recorder", recorder).kernels(crate::kernels()))
}

/// Every source that the [`CASES`] lead to, in a language.
pub fn sources(language: Language) -> Vec<String> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *RECORDED.lock().unwrap_or_else(PoisonError::into_inner) = (language, Vec::new());
    let mut machine = Machine::start(oarlock_sdk::query!(plugin)).expect("a recorder needs nothing");
    machine.computes = false;
    for (_, case) in CASES {
        case(&machine);
    }
    std::mem::take(&mut RECORDED.lock().unwrap_or_else(PoisonError::into_inner).1)
}

impl Gpu for Recorder {
    type Idle = Language;
    type Block = ();
    type Pinned = ();
    type Queue = Nothing;
    type Event = Nothing;
    type Program = ();

    fn find(_: &Host) -> Result<Found<Self>> {
        let language = RECORDED.lock().unwrap_or_else(PoisonError::into_inner).0;
        let room = 1 << 40;
        let facts = Facts {
            name: "recorder".to_owned(),
            vendor: String::new(),
            bus_id: String::new(),
            compute_units: 1,
            alignment: 1,
            memory: room,
            largest_block: room,
            capability: Version::EMPTY,
            has_f64: true,
        };
        let devices = vec![Device::new(facts, language)];
        Ok(Found { devices, runtime: Version::EMPTY, driver: Version::EMPTY })
    }

    fn open(language: &Language) -> Result<Self> {
        Ok(Self(*language))
    }

    fn allocate(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn free(&self, (): ()) -> Result<()> {
        Ok(())
    }

    fn allocate_pinned(&self, _: u64) -> Result<(HostPointer, ())> {
        Err(Error::unimplemented("a recorder has no page-locked memory"))
    }

    fn free_pinned(&self, (): ()) -> Result<()> {
        Ok(())
    }

    fn queue(&self, _: Stream, _: i32) -> Result<Nothing> {
        Ok(Nothing)
    }

    fn event(&self) -> Result<Nothing> {
        Ok(Nothing)
    }

    fn language(&self) -> Language {
        self.0
    }

    fn identity(&self) -> Result<String> {
        Ok(String::new())
    }

    fn compile(&self, source: &str, _with_binary: bool) -> Result<Compiled<()>> {
        RECORDED.lock().unwrap_or_else(PoisonError::into_inner).1.push(source.to_owned());
        Ok(Compiled { program: (), binary: None })
    }

    fn load(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Queue<Recorder> for Nothing {
    unsafe fn write(&self, _: Place<'_, ()>, _: *const u8, _: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn read(&self, _: *mut u8, _: Place<'_, ()>, _: usize) -> Result<()> {
        Ok(())
    }

    fn copy(&self, _: Place<'_, ()>, _: Place<'_, ()>, _: usize) -> Result<()> {
        Ok(())
    }

    fn copy_to_peer(&self, _: (&Recorder, Place<'_, ()>), _: Place<'_, ()>, _: usize) -> Result<()> {
        Ok(())
    }

    fn fill(&self, _: Place<'_, ()>, _: u8, _: usize) -> Result<()> {
        Ok(())
    }

    fn launch(&self, (): &(), _: Grid, _: &[Argument<'_, ()>]) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait_for(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    fn call_back(&self, reached: Reached) -> Result<()> {
        reached.hand_over(None);
        Ok(())
    }
}

impl Event<Recorder> for Nothing {
    fn record(&self, _: &Arc<Self>) -> Result<()> {
        Ok(())
    }

    fn has_happened(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn since(&self, _: &Self) -> Result<u64> {
        Ok(0)
    }
}
