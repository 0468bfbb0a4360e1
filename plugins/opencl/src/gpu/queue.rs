//! Streams: one in-order command queue each.
//!
//! Queues are in order, since a kernel may rely on what the one before it wrote. Every command is flushed at once: otherwise a
//! queue that waits for another one's event could wait for a command that the driver was never given.

#![expect(
    unsafe_code,
    reason = "commands of the driver are C functions, and the arguments of a kernel are untyped"
)]

mod event;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_portable::{BlockOffset, Gpu as _, GpuQueue, LaunchArgument, LaunchGrid, StreamCallback};
use oarlock_sdk::{PluginError, Result, Stream};
use opencl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, CommandQueue, enqueue_barrier_with_wait_list, enqueue_copy_buffer,
    enqueue_fill_buffer, enqueue_marker_with_wait_list, enqueue_nd_range_kernel, enqueue_read_buffer,
    enqueue_write_buffer,
};
use opencl3::context::Context;
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::kernel::set_kernel_arg;
use opencl3::memory::{Buffer, ClMem};
use opencl3::types::{CL_FALSE, cl_command_queue, cl_event, cl_int, cl_mem};

use super::{OpenClGpu, OpenClProgram};
use crate::error::driver_error;

pub(crate) use event::OpenClEvent;
use event::{command_status, wait_for_command};

type BufferOffset<'a> = BlockOffset<'a, Arc<Buffer<u8>>>;

/// With this many pending commands, completed ones are removed from the list.
const MAX_PENDING_COMMANDS: usize = 256;

/// Size of the staging buffer for copies between devices, in bytes.
const STAGING_SIZE: usize = 4 << 20;

pub(crate) struct OpenClQueue {
    handle: Stream,
    commands: CommandQueue,
    pending: Mutex<PendingCommands>,
}

/// Commands that may not be done yet, and the first failure since the last report.
#[derive(Default)]
struct PendingCommands {
    events: Vec<Event>,
    failure: Option<i32>,
}

impl PendingCommands {
    /// Removes completed commands and records a failure.
    fn remove_completed(&mut self) {
        let failure = &mut self.failure;
        self.events.retain(|event| match command_status(event) {
            status if status < CL_COMPLETE => {
                failure.get_or_insert(status);
                false
            }
            status => status != CL_COMPLETE,
        });
    }
}

impl OpenClQueue {
    /// Creates the queue of a stream; on the queue of stream 0 calls finish before they return.
    pub(crate) fn new(context: &Context, handle: Stream) -> Result<Self> {
        let device = context.default_device();
        // SAFETY: the device belongs to the context. This is the older of two functions, which every driver has.
        let commands = unsafe { CommandQueue::create(context, device, CL_QUEUE_PROFILING_ENABLE) };
        let commands = commands.map_err(|error| driver_error("clCreateCommandQueue", error))?;
        Ok(Self { handle, commands, pending: Mutex::default() })
    }

    /// Locks the pending commands, after removing completed ones.
    fn pending_commands(&self) -> MutexGuard<'_, PendingCommands> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.remove_completed();
        pending
    }

    /// Enqueues a command with a function that returns its event. On the queue of stream 0 the command is done when this returns.
    pub(crate) fn enqueue_command(
        &self,
        function: &str,
        enqueue: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>,
    ) -> Result<()> {
        let event = Event::new(enqueue(self.commands.get()).map_err(|code| driver_error(function, code))?);
        self.flush_queue()?;
        if self.handle.0 == 0 {
            return wait_for_command(&event);
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.events.len() >= MAX_PENDING_COMMANDS {
            pending.remove_completed();
        }
        pending.events.push(event);
        Ok(())
    }

    fn flush_queue(&self) -> Result<()> {
        self.commands.flush().map_err(|error| driver_error("clFlush", error))
    }

    /// Enqueues a marker after everything that is in the queue.
    pub(crate) fn enqueue_marker(&self) -> Result<Event> {
        // SAFETY: the queue is alive, and the wait list is empty.
        let event = unsafe { enqueue_marker_with_wait_list(self.commands.get(), 0, std::ptr::null()) };
        let event = Event::new(event.map_err(|code| driver_error("clEnqueueMarkerWithWaitList", code))?);
        self.flush_queue()?;
        Ok(event)
    }

    /// The first failure in the queue. It stays recorded, so waiting for the stream reports it too.
    pub(crate) fn take_failure(&self) -> Result<()> {
        self.pending_commands().failure.map_or(Ok(()), |code| Err(self.record_failure(code)))
    }

    fn record_failure(&self, code: i32) -> PluginError {
        driver_error(&format!("a command in stream {}", self.handle.0), code).with_rule("A-2")
    }
}

impl GpuQueue<OpenClGpu> for OpenClQueue {
    unsafe fn enqueue_write(&self, target: BufferOffset<'_>, source: *const u8, size: usize) -> Result<()> {
        self.enqueue_command("clEnqueueWriteBuffer", |queue| {
            let (buffer, offset) = (target.block.get(), target.offset as usize);
            let (source, list) = (source.cast_mut().cast(), std::ptr::null());
            // SAFETY: queue and buffer are alive, the range lies inside, and the caller guarantees the source.
            unsafe { enqueue_write_buffer(queue, buffer, CL_FALSE, offset, size, source, 0, list) }
        })
    }

    unsafe fn enqueue_read(&self, target: *mut u8, source: BufferOffset<'_>, size: usize) -> Result<()> {
        self.enqueue_command("clEnqueueReadBuffer", |queue| {
            let (buffer, offset) = (source.block.get(), source.offset as usize);
            let (target, list) = (target.cast(), std::ptr::null());
            // SAFETY: queue and buffer are alive, the range lies inside, and the caller guarantees the target.
            unsafe { enqueue_read_buffer(queue, buffer, CL_FALSE, offset, size, target, 0, list) }
        })
    }

    fn enqueue_copy(&self, target: BufferOffset<'_>, source: BufferOffset<'_>, size: usize) -> Result<()> {
        self.enqueue_command("clEnqueueCopyBuffer", |queue| {
            let (from, to) = (source.block.get(), target.block.get());
            let (from_offset, to_offset) = (source.offset as usize, target.offset as usize);
            let list = std::ptr::null();
            // SAFETY: queue and buffers are alive and the ranges lie inside. The driver refuses ranges that overlap.
            unsafe { enqueue_copy_buffer(queue, from, to, from_offset, to_offset, size, 0, list) }
        })
    }

    /// Copies through host memory, since each device has a context of its own.
    fn enqueue_copy_to_peer(
        &self,
        (peer, target): (&OpenClGpu, BufferOffset<'_>),
        source: BufferOffset<'_>,
        size: usize,
    ) -> Result<()> {
        let arrival = peer.create_queue(Stream(0), 0)?;
        let mut staged = vec![0; size.min(STAGING_SIZE)];
        for begin in (0..size).step_by(STAGING_SIZE) {
            let part = &mut staged[..STAGING_SIZE.min(size - begin)];
            let source = BlockOffset { block: source.block, offset: source.offset + begin as u64 };
            let target = BlockOffset { block: target.block, offset: target.offset + begin as u64 };
            // SAFETY: the staging buffer is filled once the queue is finished, and read before the call on the queue of stream 0
            // returns.
            unsafe {
                self.enqueue_read(part.as_mut_ptr(), source, part.len())?;
                self.finish_queue()?;
                self.take_failure()?;
                arrival.enqueue_write(target, part.as_ptr(), part.len())?;
            }
        }
        Ok(())
    }

    fn enqueue_fill(&self, target: BufferOffset<'_>, byte: u8, size: usize) -> Result<()> {
        self.enqueue_command("clEnqueueFillBuffer", |queue| {
            let (buffer, offset) = (target.block.get(), target.offset as usize);
            let (pattern, list) = ((&raw const byte).cast_mut().cast::<c_void>(), std::ptr::null());
            // SAFETY: queue and buffer are alive, the range lies inside, and the pattern is read before the call returns.
            unsafe { enqueue_fill_buffer(queue, buffer, pattern, 1, offset, size, 0, list) }
        })
    }

    fn launch_program(
        &self,
        program: &OpenClProgram,
        grid: LaunchGrid,
        arguments: &[LaunchArgument<'_, Arc<Buffer<u8>>>],
    ) -> Result<()> {
        let kernel = program.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, argument) in arguments.iter().enumerate() {
            let memory: cl_mem = match argument {
                LaunchArgument::Memory(Some(buffer)) => buffer.get(),
                _ => std::ptr::null_mut(),
            };
            let (size, address) = match argument {
                LaunchArgument::Memory(_) => (size_of::<cl_mem>(), (&raw const memory).cast()),
                LaunchArgument::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            };
            // SAFETY: the kernel is alive, and the bytes are read before the call returns. The driver checks the rest.
            unsafe { set_kernel_arg(kernel.get(), index as u32, size, address) }
                .map_err(|code| driver_error("clSetKernelArg", code))?;
        }
        let [x, y] = grid.block.map(|items| items as usize);
        let (global, local) = ([grid.groups as usize * x, y], [x, y]);
        self.enqueue_command("clEnqueueNDRangeKernel", move |queue| {
            let (global, local) = (global.as_ptr(), local.as_ptr());
            let (offsets, list) = (std::ptr::null(), std::ptr::null());
            // SAFETY: queue and kernel are alive and belong to one context, both sizes have two dimensions, and the wait list is
            // empty. The caller has checked that everything the kernel touches lies in live blocks.
            let event =
                unsafe { enqueue_nd_range_kernel(queue, kernel.get(), 2, offsets, global, local, 0, list) };
            // The command has its arguments now, so other threads may set theirs while it runs.
            drop(kernel);
            event
        })
    }

    fn finish_queue(&self) -> Result<()> {
        self.commands.finish().map_err(|error| driver_error("clFinish", error))
    }

    fn synchronize_queue(&self) -> Result<()> {
        self.finish_queue()?;
        self.pending_commands().failure.take().map_or(Ok(()), |code| Err(self.record_failure(code)))
    }

    fn free_after_work(&self, gpu: &OpenClGpu, block: Arc<Buffer<u8>>) -> Result<()> {
        gpu.free_block(block)
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.pending_commands().events.is_empty())
    }

    fn wait_for_event(&self, event: &OpenClEvent) -> Result<()> {
        let (_, happening) = event.recorded_command()?;
        let event = happening.get();
        self.enqueue_command("clEnqueueBarrierWithWaitList", |queue| {
            // SAFETY: the queue and the event, the only one in the list, are alive and belong to one context.
            unsafe { enqueue_barrier_with_wait_list(queue, 1, &raw const event) }
        })
    }

    fn enqueue_callback(&self, reached: StreamCallback) -> Result<()> {
        let mark = self.enqueue_marker()?;
        let held = Box::into_raw(Box::new(reached));
        mark.set_callback(CL_COMPLETE, on_command_complete, held.cast()).map_err(|error| {
            // SAFETY: the driver did not take the pointer, which came from a `Box`.
            drop(unsafe { Box::from_raw(held) });
            driver_error("clSetEventCallback", error)
        })
    }
}

extern "C" fn on_command_complete(_event: cl_event, status: cl_int, held: *mut c_void) {
    // SAFETY: the driver passes back the pointer from `enqueue_callback`, once.
    let reached = *unsafe { Box::from_raw(held.cast::<StreamCallback>()) };
    let failure = (status < CL_COMPLETE).then(|| driver_error("a command before the callback", status));
    reached.queue_callback(failure);
}
