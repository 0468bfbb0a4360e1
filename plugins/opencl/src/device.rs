//! One device: what it is, its context, and the tables of what the host has made on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{Error, Event, Result, Stream, Version};
use opencl3::context::Context;
use opencl3::device::{CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, Device as Found};
use opencl3::error_codes::ClError;
use opencl3::event::Event as Happening;

use crate::error::failed;
use crate::memory::Blocks;
use crate::pinned::Pinned;
use crate::queue::Queue;

/// What is known of a device from the start.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) vendor: String,
    pub(crate) compute_units: u32,
    pub(crate) memory: u64,
    pub(crate) largest_block: u64,
    pub(crate) alignment: u64,
    pub(crate) has_f64: bool,
    /// The version of OpenCL it has.
    pub(crate) opencl: Version,
    pub(crate) driver: Version,
    /// How sources are compiled for it.
    pub(crate) options: String,
    /// Everything a compiled program depends on beside its source.
    pub(crate) identity: String,
}

impl Facts {
    fn read(device: &Found) -> Result<Self, ClError> {
        let is_rounded = device.single_fp_config()? & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0;
        let rounding = if is_rounded { " -cl-fp32-correctly-rounded-divide-sqrt" } else { "" };
        // Warnings are for whoever writes kernels, and some drivers print them.
        let options = format!("-cl-std=CL1.2 -w{rounding}");
        let text = |text: String| text.trim().replace('\0', "");
        let (name, version) = (text(device.name()?), text(device.version()?));
        let driver = text(device.driver_version()?);
        Ok(Self {
            identity: [name.as_str(), &version, &driver, &options].join("\n"),
            name,
            vendor: text(device.vendor()?),
            compute_units: device.max_compute_units()?,
            memory: device.global_mem_size()?,
            largest_block: device.max_mem_alloc_size()?,
            // The driver counts bits.
            alignment: u64::from(device.mem_base_addr_align()? / 8).max(1).next_power_of_two(),
            has_f64: device.double_fp_config().is_ok_and(|config| config != 0),
            opencl: numbers(&version),
            driver: numbers(&driver),
            options,
        })
    }
}

/// The first numbers of a text, as a version.
fn numbers(text: &str) -> Version {
    let start = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let end = text[start..].find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let mut parts = text[start..end.map_or(text.len(), |end| start + end)]
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    Version { major: next(), minor: next(), patch: next(), build: next() }
}

/// A point in a stream: the queue it was recorded in and what the driver tells it by. None before it is recorded.
pub(crate) type Point = Option<(Arc<Queue>, Arc<Happening>)>;

/// One device.
pub(crate) struct Device {
    pub(crate) facts: Facts,
    pub(crate) context: Context,
    pub(crate) blocks: Blocks,
    pub(crate) pinned: Pinned,
    own: Arc<Queue>,
    streams: Mutex<HashMap<u64, Arc<Queue>>>,
    events: Mutex<HashMap<u64, Point>>,
}

impl Device {
    pub(crate) fn open(found: Found) -> Result<Self> {
        let facts = Facts::read(&found).map_err(|error| failed("clGetDeviceInfo", error))?;
        let context = Context::from_device(&found).map_err(|error| failed("clCreateContext", error))?;
        let own = Arc::new(Queue::new(&context, Stream(0))?);
        Ok(Self {
            facts,
            context,
            blocks: Blocks::default(),
            pinned: Pinned::default(),
            own,
            streams: Mutex::default(),
            events: Mutex::default(),
        })
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, Arc<Queue>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> MutexGuard<'_, HashMap<u64, Point>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn queue(&self, stream: Stream) -> Result<Arc<Queue>> {
        if stream.0 == 0 {
            return Ok(Arc::clone(&self.own));
        }
        self.streams().get(&stream.0).cloned().ok_or_else(|| unknown("stream", stream.0))
    }

    pub(crate) fn add_stream(&self, handle: u64) -> Result<Stream> {
        let queue = Queue::new(&self.context, Stream(handle))?;
        self.streams().insert(handle, Arc::new(queue));
        Ok(Stream(handle))
    }

    pub(crate) fn remove_stream(&self, stream: Stream) -> Result<Arc<Queue>> {
        if stream.0 == 0 {
            return Err(Error::invalid_argument("expected a stream that was made, found the device's own"));
        }
        self.streams().remove(&stream.0).ok_or_else(|| unknown("stream", stream.0))
    }

    pub(crate) fn add_event(&self, handle: u64) -> Event {
        self.events().insert(handle, None);
        Event(handle)
    }

    pub(crate) fn remove_event(&self, event: Event) -> Result<()> {
        self.events().remove(&event.0).map(drop).ok_or_else(|| unknown("event", event.0))
    }

    pub(crate) fn event(&self, event: Event) -> Result<Point> {
        self.events().get(&event.0).cloned().ok_or_else(|| unknown("event", event.0))
    }

    /// Puts an event at the end of a queue.
    pub(crate) fn record(&self, event: Event, queue: Arc<Queue>) -> Result<()> {
        self.event(event)?;
        let mark = Arc::new(queue.mark()?);
        match self.events().get_mut(&event.0) {
            Some(point) => *point = Some((queue, mark)),
            None => return Err(unknown("event", event.0)),
        }
        Ok(())
    }

    /// Waits until every queue is done. What went wrong in a stream is told to whoever waits for that stream.
    pub(crate) fn finish(&self) -> Result<()> {
        let queues: Vec<Arc<Queue>> = self.streams().values().cloned().collect();
        queues.iter().chain([&self.own]).try_for_each(|queue| queue.finish())
    }

    /// Drops what the host has not given back.
    pub(crate) fn clear(&self) {
        self.streams().clear();
        self.events().clear();
        self.blocks.clear();
    }
}

fn unknown(what: &str, handle: u64) -> Error {
    Error::not_found(format!("expected a live {what} of this device, found the handle {handle}")).rule("A-3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_out_of_what_drivers_say() {
        let version = |major, minor, patch| Version { major, minor, patch, build: 0 };
        assert_eq!(numbers("OpenCL 3.0 PoCL HSTR: pthread-x86_64"), version(3, 0, 0));
        assert_eq!(numbers("3.1+debian"), version(3, 1, 0));
        assert_eq!(numbers("550.54.14"), version(550, 54, 14));
        assert_eq!(numbers("unknown"), Version::EMPTY);
    }
}
