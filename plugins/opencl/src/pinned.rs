//! Page-locked host memory, from and to which the device copies directly: buffers of the driver, mapped as long as they live.

#![expect(unsafe_code, reason = "buffers are made and mapped by C functions")]

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Error, HostPointer, Result, ensure};
use opencl3::command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object};
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::CL_TRUE;

use crate::device::Device;
use crate::error::failed;
use crate::queue::Queue;

/// The buffers of one device that are mapped, by their address, with their sizes.
#[derive(Default)]
pub(crate) struct Pinned(Mutex<HashMap<usize, (Buffer<u8>, u64)>>);

impl Pinned {
    pub(crate) fn allocate(&self, device: &Device, queue: &Queue, size: u64) -> Result<HostPointer> {
        let most = device.facts.largest_block;
        ensure!(
            (1..=most).contains(&size),
            resource_exhausted,
            "expected a request for 1 to {most} bytes of page-locked memory, found {size}"
        );
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: the context is alive, and no host memory is handed over.
        let buffer =
            unsafe { Buffer::<u8>::create(&device.context, flags, size as usize, std::ptr::null_mut()) };
        let buffer = buffer.map_err(|error| failed("clCreateBuffer", error))?;
        let mut address = std::ptr::null_mut();
        queue.put("clEnqueueMapBuffer", |queue| {
            let access = CL_MAP_READ | CL_MAP_WRITE;
            let (size, list) = (size as usize, std::ptr::null());
            // SAFETY: queue and buffer are alive, and the whole buffer is mapped.
            unsafe {
                enqueue_map_buffer(queue, buffer.get(), CL_TRUE, access, 0, size, &mut address, 0, list)
            }
        })?;
        let pointer = HostPointer::new(address, "address").map_err(|_| {
            Error::resource_exhausted("expected the driver to map its memory, found no address")
        })?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address.addr(), (buffer, size));
        Ok(pointer)
    }

    pub(crate) fn deallocate(&self, queue: &Queue, address: HostPointer, size: u64) -> Result<()> {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = address.address().addr();
        let known = buffers.get(&key).is_some_and(|(_, known)| *known == size);
        ensure!(
            known,
            invalid_argument,
            "expected page-locked memory of this device with the size it was taken with, found {size} bytes at {key:#x}"
        );
        let Some((buffer, _)) = buffers.remove(&key) else { return Ok(()) };
        queue.put("clEnqueueUnmapMemObject", |queue| {
            // SAFETY: queue and buffer are alive, and the address is the one the buffer was mapped to.
            unsafe { enqueue_unmap_mem_object(queue, buffer.get(), address.address(), 0, std::ptr::null()) }
        })
    }
}
