//! Streams of the driver.
//!
//! Callbacks use `cuStreamAddCallback`, which also runs them after a failure of the stream and reports it; `cuLaunchHostFunc`
//! would never call them then.

#![expect(unsafe_code, reason = "streams are C objects, and the arguments of a kernel are untyped")]

mod event;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::DriverError;
use cudarc::driver::result::{launch_kernel, memcpy_dtod_async, memcpy_peer_async, memset_d8_async, stream};
use cudarc::driver::sys::{
    CUevent_wait_flags, CUresult, CUstream, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, cuStreamAddCallback,
    cuStreamQuery,
};
use oarlock_portable::{BlockOffset, GpuQueue, LaunchArgument, LaunchGrid, StreamCallback};
use oarlock_sdk::{Result, Stream};

use super::{CudaAddress, CudaGpu};
use crate::context::{CurrentContext, DriverHandle, PrimaryContext};
use crate::error::{driver_error, is_complete};
use crate::program::CudaProgram;

pub(crate) use event::CudaEvent;

pub(crate) struct CudaQueue {
    context: Arc<PrimaryContext>,
    raw: DriverHandle<CUstream>,
    /// True for stream 0, on which calls finish before they return.
    is_own: bool,
}

fn device_address(place: BlockOffset<'_, CudaAddress>) -> u64 {
    place.block.0 + place.offset
}

impl CudaQueue {
    /// Creates a stream that synchronizes with no other. Lower numbers are higher priorities; the driver clamps them to its
    /// range.
    pub(crate) fn new(context: &Arc<PrimaryContext>, handle: Stream, priority: i32) -> Result<Self> {
        let entered = context.enter_context()?;
        let raw = stream::create_with_priority(stream::StreamKind::NonBlocking, priority);
        let raw = entered.check_result("cuStreamCreateWithPriority", raw)?;
        Ok(Self { context: Arc::clone(context), raw: DriverHandle(raw), is_own: handle.0 == 0 })
    }

    /// Enqueues work with a driver function. On stream 0 the work is done when this returns.
    fn enqueue_driver_work(
        &self,
        function: &str,
        enqueue: impl FnOnce(CUstream) -> Result<(), DriverError>,
    ) -> Result<()> {
        self.enqueue_library_work(|entered, stream| entered.check_result(function, enqueue(stream)))
    }

    /// Like [`CudaQueue::enqueue_driver_work`], for work that another CUDA library enqueues.
    pub(crate) fn enqueue_library_work(
        &self,
        enqueue: impl FnOnce(&CurrentContext<'_>, CUstream) -> Result<()>,
    ) -> Result<()> {
        let entered = self.context.enter_context()?;
        enqueue(&entered, self.raw.0)?;
        if self.is_own {
            // SAFETY: the stream is alive.
            entered.check_result("cuStreamSynchronize", unsafe { stream::synchronize(self.raw.0) })?;
        }
        Ok(())
    }

    /// Enqueues a point such as an event, without waiting for it even on stream 0.
    pub(crate) fn record_point(
        &self,
        function: &str,
        enqueue: impl FnOnce(CUstream) -> Result<(), DriverError>,
    ) -> Result<()> {
        self.context.enter_context()?.check_result(function, enqueue(self.raw.0))
    }
}

impl GpuQueue<CudaGpu> for CudaQueue {
    unsafe fn enqueue_write(
        &self,
        target: BlockOffset<'_, CudaAddress>,
        source: *const u8,
        size: usize,
    ) -> Result<()> {
        self.enqueue_driver_work("cuMemcpyHtoDAsync", |stream| {
            // SAFETY: the range lies in a live block, and the caller guarantees the source.
            unsafe { cuMemcpyHtoDAsync_v2(device_address(target), source.cast(), size, stream) }.result()
        })
    }

    unsafe fn enqueue_read(
        &self,
        target: *mut u8,
        source: BlockOffset<'_, CudaAddress>,
        size: usize,
    ) -> Result<()> {
        self.enqueue_driver_work("cuMemcpyDtoHAsync", |stream| {
            // SAFETY: the range lies in a live block, and the caller guarantees the target.
            unsafe { cuMemcpyDtoHAsync_v2(target.cast(), device_address(source), size, stream) }.result()
        })
    }

    fn enqueue_copy(
        &self,
        target: BlockOffset<'_, CudaAddress>,
        source: BlockOffset<'_, CudaAddress>,
        size: usize,
    ) -> Result<()> {
        self.enqueue_driver_work("cuMemcpyDtoDAsync", |stream| {
            // SAFETY: both ranges lie in live blocks.
            unsafe { memcpy_dtod_async(device_address(target), device_address(source), size, stream) }
        })
    }

    /// The driver stages the copy in host memory if the devices have no direct path.
    fn enqueue_copy_to_peer(
        &self,
        (peer, target): (&CudaGpu, BlockOffset<'_, CudaAddress>),
        source: BlockOffset<'_, CudaAddress>,
        size: usize,
    ) -> Result<()> {
        self.enqueue_driver_work("cuMemcpyPeerAsync", |stream| {
            let (here, there) = (self.context.as_raw(), peer.context.as_raw());
            // SAFETY: both ranges lie in live blocks, each on the device whose context is named.
            unsafe {
                memcpy_peer_async(there, device_address(target), here, device_address(source), size, stream)
            }
        })
    }

    fn enqueue_fill(&self, target: BlockOffset<'_, CudaAddress>, byte: u8, size: usize) -> Result<()> {
        self.enqueue_driver_work("cuMemsetD8Async", |stream| {
            // SAFETY: the range lies in a live block.
            unsafe { memset_d8_async(device_address(target), byte, size, stream) }
        })
    }

    fn launch_program(
        &self,
        program: &CudaProgram,
        grid: LaunchGrid,
        arguments: &[LaunchArgument<'_, CudaAddress>],
    ) -> Result<()> {
        const NOTHING: &u64 = &0;
        let place = |argument: &LaunchArgument<'_, CudaAddress>| -> *mut c_void {
            match argument {
                LaunchArgument::Memory(Some(CudaAddress(address))) => (&raw const *address).cast_mut().cast(),
                LaunchArgument::Memory(None) => (&raw const *NOTHING).cast_mut().cast(),
                LaunchArgument::Value(bytes) => bytes.as_ptr().cast_mut().cast(),
            }
        };
        let mut places: Vec<*mut c_void> = arguments.iter().map(place).collect();
        let (groups, block) = ((grid.groups, 1, 1), (grid.block[0], grid.block[1], 1));
        self.enqueue_driver_work("cuLaunchKernel", |stream| {
            // SAFETY: function and stream are alive and belong to one context, and there is a pointer for each parameter, read
            // before the call returns. The caller has checked that everything the kernel touches lies in live blocks.
            unsafe { launch_kernel(program.function.0, groups, block, 0, stream, &mut places) }
        })
    }

    fn finish_queue(&self) -> Result<()> {
        let entered = self.context.enter_context()?;
        // SAFETY: the stream is alive.
        entered.check_result("cuStreamSynchronize", unsafe { stream::synchronize(self.raw.0) })
    }

    fn drain_queue(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.context.release_resource("cuStreamSynchronize", || unsafe { stream::synchronize(self.raw.0) })
    }

    fn is_empty(&self) -> Result<bool> {
        let entered = self.context.enter_context()?;
        // SAFETY: the stream is alive.
        let state = unsafe { cuStreamQuery(self.raw.0) };
        entered.check_result("cuStreamQuery", is_complete(state.result()))
    }

    fn wait_for_event(&self, event: &CudaEvent) -> Result<()> {
        self.record_point("cuStreamWaitEvent", |queue| {
            // SAFETY: stream and event are alive.
            unsafe { stream::wait_event(queue, event.raw.0, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
        })
    }

    fn enqueue_callback(&self, reached: StreamCallback) -> Result<()> {
        let waiting = Arc::new(HeldCallback(Mutex::new(Some(reached))));
        let held = Arc::into_raw(Arc::clone(&waiting)).cast_mut().cast();
        let added = self.record_point("cuStreamAddCallback", |stream| {
            // SAFETY: the stream is alive, and the driver passes the pointer to `on_stream_reached` at most once.
            unsafe { cuStreamAddCallback(stream, Some(on_stream_reached), held, 0) }.result()
        });
        if added.is_err() {
            // The driver may report an earlier failure here and still call back, so it keeps the holder, now empty.
            waiting.take_callback();
        }
        added
    }
}

impl Drop for CudaQueue {
    fn drop(&mut self) {
        // `drop` cannot report a failure.
        let _ = self.context.release_resource("cuStreamDestroy", || {
            // SAFETY: the stream is alive and not used after this; work that it contains still completes.
            unsafe { stream::destroy(self.raw.0) }
        });
    }
}

/// Held by the driver until the stream gets there. Either caller takes the function out, so it runs only once.
struct HeldCallback(Mutex<Option<StreamCallback>>);

impl HeldCallback {
    fn take_callback(&self) -> Option<StreamCallback> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

unsafe extern "C" fn on_stream_reached(_stream: CUstream, status: CUresult, held: *mut c_void) {
    // SAFETY: the driver passes back the pointer from `enqueue_callback`, once.
    let waiting = unsafe { Arc::from_raw(held.cast_const().cast::<HeldCallback>()) };
    if let Some(reached) = waiting.take_callback() {
        reached.queue_callback(
            status.result().err().map(|error| driver_error("work before the callback", error)),
        );
    }
}
