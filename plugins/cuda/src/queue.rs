//! Streams of the driver.
//!
//! `cuStreamAddCallback` is the function that is also called when the stream failed, and says so; what `cuLaunchHostFunc`
//! takes is then never called.

#![expect(unsafe_code, reason = "streams are C objects, and the arguments of a kernel are untyped")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::DriverError;
use cudarc::driver::result::{launch_kernel, memcpy_dtod_async, memcpy_peer_async, memset_d8_async, stream};
use cudarc::driver::sys::{
    CUevent_wait_flags, CUresult, CUstream, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, cuStreamAddCallback,
    cuStreamQuery,
};
use oarlock_portable::{Argument, Grid, Place, Queue as Commands, Reached};
use oarlock_sdk::{Result, Stream};

use crate::context::{Context, Entered, Handle};
use crate::error::{failed, is_ready};
use crate::event::Point;
use crate::gpu::{Address, Cuda};
use crate::program::Program;

/// One stream.
pub(crate) struct Queue {
    context: Arc<Context>,
    raw: Handle<CUstream>,
    /// Whether calls finish before they return.
    is_own: bool,
}

/// Where a place is on the device.
fn address(place: Place<'_, Address>) -> u64 {
    place.block.0 + place.offset
}

impl Queue {
    /// A stream that waits for no other. Smaller priorities come first, and the driver brings them into its range.
    pub(crate) fn new(context: &Arc<Context>, handle: Stream, priority: i32) -> Result<Self> {
        let entered = context.enter()?;
        let raw = stream::create_with_priority(stream::StreamKind::NonBlocking, priority);
        let raw = entered.check("cuStreamCreateWithPriority", raw)?;
        Ok(Self { context: Arc::clone(context), raw: Handle(raw), is_own: handle.0 == 0 })
    }

    /// Puts work into the stream with a function of the driver. In the device's own stream it is done when this returns.
    fn put(&self, function: &str, enqueue: impl FnOnce(CUstream) -> Result<(), DriverError>) -> Result<()> {
        self.run(|entered, stream| entered.check(function, enqueue(stream)))
    }

    /// The same for work that another library of CUDA puts into the stream.
    pub(crate) fn run(&self, enqueue: impl FnOnce(&Entered<'_>, CUstream) -> Result<()>) -> Result<()> {
        let entered = self.context.enter()?;
        enqueue(&entered, self.raw.0)?;
        if self.is_own {
            // SAFETY: the stream is alive.
            entered.check("cuStreamSynchronize", unsafe { stream::synchronize(self.raw.0) })?;
        }
        Ok(())
    }

    /// Puts a point into the stream, which is not waited for.
    pub(crate) fn mark(
        &self,
        function: &str,
        enqueue: impl FnOnce(CUstream) -> Result<(), DriverError>,
    ) -> Result<()> {
        self.context.enter()?.check(function, enqueue(self.raw.0))
    }
}

impl Commands<Cuda> for Queue {
    unsafe fn write(&self, target: Place<'_, Address>, source: *const u8, size: usize) -> Result<()> {
        self.put("cuMemcpyHtoDAsync", |stream| {
            // SAFETY: the range lies in a block that is alive, and the caller vouches for the source.
            unsafe { cuMemcpyHtoDAsync_v2(address(target), source.cast(), size, stream) }.result()
        })
    }

    unsafe fn read(&self, target: *mut u8, source: Place<'_, Address>, size: usize) -> Result<()> {
        self.put("cuMemcpyDtoHAsync", |stream| {
            // SAFETY: the range lies in a block that is alive, and the caller vouches for the target.
            unsafe { cuMemcpyDtoHAsync_v2(target.cast(), address(source), size, stream) }.result()
        })
    }

    fn copy(&self, target: Place<'_, Address>, source: Place<'_, Address>, size: usize) -> Result<()> {
        self.put("cuMemcpyDtoDAsync", |stream| {
            // SAFETY: both ranges lie in blocks that are alive.
            unsafe { memcpy_dtod_async(address(target), address(source), size, stream) }
        })
    }

    /// The driver goes by way of the host where it must.
    fn copy_to_peer(
        &self,
        (peer, target): (&Cuda, Place<'_, Address>),
        source: Place<'_, Address>,
        size: usize,
    ) -> Result<()> {
        self.put("cuMemcpyPeerAsync", |stream| {
            let (here, there) = (self.context.raw(), peer.context.raw());
            // SAFETY: both ranges lie in blocks that are alive, each of the device whose context is named.
            unsafe { memcpy_peer_async(there, address(target), here, address(source), size, stream) }
        })
    }

    fn fill(&self, target: Place<'_, Address>, byte: u8, size: usize) -> Result<()> {
        self.put("cuMemsetD8Async", |stream| {
            // SAFETY: the range lies in a block that is alive.
            unsafe { memset_d8_async(address(target), byte, size, stream) }
        })
    }

    fn launch(&self, program: &Program, grid: Grid, arguments: &[Argument<'_, Address>]) -> Result<()> {
        const NOTHING: &u64 = &0;
        let place = |argument: &Argument<'_, Address>| -> *mut c_void {
            match argument {
                Argument::Memory(Some(Address(address))) => (&raw const *address).cast_mut().cast(),
                Argument::Memory(None) => (&raw const *NOTHING).cast_mut().cast(),
                Argument::Value(bytes) => bytes.as_ptr().cast_mut().cast(),
            }
        };
        let mut places: Vec<*mut c_void> = arguments.iter().map(place).collect();
        let (groups, block) = ((grid.groups, 1, 1), (grid.block[0], grid.block[1], 1));
        self.put("cuLaunchKernel", |stream| {
            // SAFETY: function and stream are alive and of one context, and there is a place for each parameter, which is
            // read before the call returns. What the kernel touches lies in blocks that the caller has checked.
            unsafe { launch_kernel(program.function.0, groups, block, 0, stream, &mut places) }
        })
    }

    fn finish(&self) -> Result<()> {
        let entered = self.context.enter()?;
        // SAFETY: the stream is alive.
        entered.check("cuStreamSynchronize", unsafe { stream::synchronize(self.raw.0) })
    }

    fn drain(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.context.give_back("cuStreamSynchronize", || unsafe { stream::synchronize(self.raw.0) })
    }

    fn is_empty(&self) -> Result<bool> {
        let entered = self.context.enter()?;
        // SAFETY: the stream is alive.
        let state = unsafe { cuStreamQuery(self.raw.0) };
        entered.check("cuStreamQuery", is_ready(state.result()))
    }

    fn wait_for(&self, event: &Point) -> Result<()> {
        self.mark("cuStreamWaitEvent", |queue| {
            // SAFETY: stream and event are alive.
            unsafe { stream::wait_event(queue, event.raw.0, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
        })
    }

    fn call_back(&self, reached: Reached) -> Result<()> {
        let waiting = Arc::new(Waiting(Mutex::new(Some(reached))));
        let held = Arc::into_raw(Arc::clone(&waiting)).cast_mut().cast();
        let added = self.mark("cuStreamAddCallback", |stream| {
            // SAFETY: the stream is alive, and the driver hands the pointer to `hand_over` once or never.
            unsafe { cuStreamAddCallback(stream, Some(hand_over), held, 0) }.result()
        });
        if added.is_err() {
            // The driver may tell of an earlier failure here and call back nevertheless, so what it holds is left to it, empty.
            waiting.take();
        }
        added
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // There is nobody to tell of a failure.
        let _ = self.context.give_back("cuStreamDestroy", || {
            // SAFETY: the stream is alive and not used after this; what is in it still gets done.
            unsafe { stream::destroy(self.raw.0) }
        });
    }
}

/// What the driver holds until the stream gets there. The function is taken out by whoever calls it.
struct Waiting(Mutex<Option<Reached>>);

impl Waiting {
    fn take(&self) -> Option<Reached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

unsafe extern "C" fn hand_over(_stream: CUstream, status: CUresult, held: *mut c_void) {
    // SAFETY: the driver hands back the pointer of `call_back`, once.
    let waiting = unsafe { Arc::from_raw(held.cast_const().cast::<Waiting>()) };
    if let Some(reached) = waiting.take() {
        reached.hand_over(status.result().err().map(|error| failed("work before the callback", error)));
    }
}
