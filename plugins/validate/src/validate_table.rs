//! Checks of the tables of devices and of streams.

#![expect(unsafe_code, reason = "results are read where the caller wants them")]

use std::sync::{Arc, PoisonError};

use oarlock_layer::{
    ContractSlot, HandleKind, LayerCall, ParameterKind, pointer_word, word_const_pointer, word_pointer,
};
use oarlock_sdk::abi;

use crate::breach::CallBreach;
use crate::call_check::{CallUses, add_host_uses, check_stage, check_uses};
use crate::call_watch::{CallNumber, CallWatch};
use crate::callback_watch::{CallbackWatch, reach_watched_callback};
use crate::handle_record::{HandleOrigin, HandleRecord};
use crate::list_guard::ListGuard;
use crate::plugin_ledger::{BlockUse, LedgerState, PluginLedger, PluginStage};
use crate::stream_order::HOST;

impl CallWatch {
    /// Does a call of a table of devices or of streams.
    pub(crate) fn do_table_call(
        &self,
        ledger: &Arc<PluginLedger>,
        call: &LayerCall<'_>,
        number: CallNumber<'_>,
    ) -> abi::Error {
        let uses = CallUses::from_call(call);
        let mut removed = None;
        let checked = {
            let mut state = ledger.lock_state();
            let checked = check_stage(&state, call.slot()).and_then(|()| check_uses(&state, call, &uses));
            let checked = checked.and_then(|()| enter_handles(&mut state, &uses.exclusive));
            let checked = checked.and_then(|()| check_host_block(&mut state, call));
            if let (Ok(()), Some((kind, handle))) = (&checked, uses.freed) {
                let origin = HandleOrigin::new(number.call, call.description().name, self.keeps_stacks);
                removed = state.remove_handle(kind, handle, origin);
            }
            checked
        };
        if let Err(breach) = checked {
            return self.refuse(number, &breach);
        }
        let (watch, replaced) = self.watch_callback(ledger, call, number);
        let list = ListGuard::for_call(call);
        let words = list.as_ref().map(ListGuard::words).or(replaced.as_deref());
        let failure = self.forward_watched(number, call, words);
        // SAFETY: the call has returned here, and its caller waits for the list.
        let closed = list.map_or(Ok(()), |list| unsafe { list.close_list(failure.is_some()) });
        let failure = self.finish_checked(number, failure, closed);
        if let Some(watch) = watch {
            watch.end_adding();
            if !failure.is_some() {
                self.callbacks.lock().unwrap_or_else(PoisonError::into_inner).push(watch);
            }
        }
        let facts = failure.is_some().then(|| self.host.read_error(failure)).flatten();
        let is_lost = facts.is_some_and(|facts| facts.bits.contains(abi::ErrorFlags::DEVICE_LOST));
        let outcome = {
            let mut state = ledger.lock_state();
            for (kind, handle) in &uses.exclusive {
                state.leave_handle(*kind, *handle);
            }
            let lost = check_loss(&mut state, call, &uses, failure.is_some(), is_lost);
            if failure.is_some() {
                if let (Some((kind, handle)), Some(record)) = (uses.freed, removed) {
                    state.put_handle_back(kind, handle, record);
                }
                lost
            } else {
                lost.and(self.note_success(&mut state, call, &uses, number))
            }
        };
        self.finish_checked(number, failure, outcome)
    }

    /// Puts a watch between the plugin and a callback of the caller.
    fn watch_callback(
        &self,
        ledger: &Arc<PluginLedger>,
        call: &LayerCall<'_>,
        number: CallNumber<'_>,
    ) -> (Option<Arc<CallbackWatch>>, Option<Vec<u64>>) {
        if call.slot() != ContractSlot::AsyncStreamAddCallback {
            return (None, None);
        }
        let position = |name: &str| call.description().parameter_position(name);
        let (Some(reached), Some(user)) = (position("reached"), position("user")) else {
            return (None, None);
        };
        if call.words()[reached] == 0 {
            return (None, None);
        }
        // SAFETY: the word is the caller's function, of the type that the slot has.
        let function = unsafe {
            core::mem::transmute::<*mut core::ffi::c_void, abi::StreamReached>(word_pointer(
                call.words()[reached],
            ))
        };
        let stream = call.description().queue.map_or(HOST, |at| call.words()[at]);
        let clock = ledger.lock_state().order.clock_of(stream);
        let watch = CallbackWatch::new(
            function,
            word_pointer(call.words()[user]),
            ledger,
            &self.log,
            clock,
            number.call,
        );
        let mut words = call.words().to_vec();
        words[reached] = pointer_word(reach_watched_callback as *const core::ffi::c_void);
        words[user] = pointer_word(Arc::as_ptr(&watch));
        // The plugin may keep the address longer than the call, or call twice: the watch stays as long as the process.
        std::mem::forget(Arc::clone(&watch));
        (Some(watch), Some(words))
    }

    /// Notes what a call that succeeded has made, ordered or finished.
    fn note_success(
        &self,
        state: &mut LedgerState,
        call: &LayerCall<'_>,
        uses: &CallUses,
        number: CallNumber<'_>,
    ) -> Result<(), CallBreach> {
        self.note_made_handles(state, call, uses, number)?;
        let value = |name: &str| call.description().parameter_position(name).map_or(0, |at| call.words()[at]);
        let device = call.device().unwrap_or(0);
        match call.slot() {
            ContractSlot::CoreInitialize => state.stage = PluginStage::Initialized,
            ContractSlot::CoreFinalize => state.stage = PluginStage::Finalized,
            ContractSlot::CoreDeviceInit => state.mark_opened(device),
            ContractSlot::CoreDeviceInfo => {
                // SAFETY: the caller provided the struct, and the plugin has filled it.
                let info = unsafe {
                    oarlock_sdk::copy_sized(
                        word_const_pointer::<abi::DeviceInfo>(value("info")),
                        abi::DeviceInfo::EMPTY,
                    )
                };
                state.set_device_flags(device, info.bits);
            }
            ContractSlot::CoreDeviceSynchronize => state.order.finish_device(device),
            ContractSlot::AsyncStreamSynchronize => state.order.finish_stream(uses.stream),
            ContractSlot::AsyncStreamDestroy => state.order.remove_stream(uses.stream),
            ContractSlot::AsyncStreamWaitEvent => state.order.wait_event(uses.stream, value("point")),
            ContractSlot::AsyncEventRecord => state.order.record_event(uses.stream, value("point")),
            ContractSlot::AsyncEventSynchronize => state.order.finish_event(value("point")),
            ContractSlot::AsyncEventDestroy => state.order.remove_event(value("point")),
            ContractSlot::AsyncStreamQuery | ContractSlot::AsyncEventQuery => {
                // SAFETY: the caller provided the place, and the plugin has written it.
                let is_done = unsafe { *word_const_pointer::<u32>(value("done")) } != 0;
                if is_done && call.slot() == ContractSlot::AsyncStreamQuery {
                    state.order.finish_stream(uses.stream);
                } else if is_done {
                    state.order.finish_event(value("point"));
                }
            }
            _ if uses.stream != HOST && !(uses.blocks.is_empty() && uses.host.is_empty()) => {
                let point = state.order.add_work(uses.stream);
                state.add_uses(&uses.blocks, point, number.call);
                add_host_uses(state, uses, point, number.call);
            }
            _ => {}
        }
        if call.description().name.ends_with("_synchronize") {
            state.forget_finished();
        }
        Ok(())
    }

    fn note_made_handles(
        &self,
        state: &mut LedgerState,
        call: &LayerCall<'_>,
        uses: &CallUses,
        number: CallNumber<'_>,
    ) -> Result<(), CallBreach> {
        let description = call.description();
        for (parameter, &place) in description.parameters.iter().zip(call.words()) {
            let device = call.device().unwrap_or(0);
            let size = description.parameter_position("size").map_or(0, |at| call.words()[at]);
            let made = || HandleOrigin::new(number.call, description.name, self.keeps_stacks);
            // SAFETY: the caller provided the place, and the plugin has written it.
            let read = || unsafe { *word_const_pointer::<u64>(place) };
            match parameter.kind {
                ParameterKind::OutHandle(kind) => {
                    let handle = read();
                    let record = HandleRecord { device, size, made: made(), pending: Default::default() };
                    state.add_handle(kind, handle, record)?;
                    if kind == HandleKind::Memory && uses.stream != HOST {
                        // The block can be used from this point of the stream on.
                        let point = state.order.add_work(uses.stream);
                        let whole =
                            BlockUse { block: handle, device, offset: 0, size, writes: true, name: "block" };
                        state.add_uses(&[whole], point, number.call);
                    }
                }
                ParameterKind::OutAddress if description.name.ends_with("memory_allocate") => {
                    let record = HandleRecord { device, size, made: made(), pending: Default::default() };
                    state.host_blocks.insert(read(), record);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn enter_handles(state: &mut LedgerState, exclusive: &[(HandleKind, u64)]) -> Result<(), CallBreach> {
    for (index, (kind, handle)) in exclusive.iter().enumerate() {
        if let Err(breach) = state.enter_handle(*kind, *handle) {
            for (kind, handle) in &exclusive[..index] {
                state.leave_handle(*kind, *handle);
            }
            return Err(breach);
        }
    }
    Ok(())
}

/// Fails if a call frees host memory that the plugin did not allocate so, or that work still uses.
fn check_host_block(state: &mut LedgerState, call: &LayerCall<'_>) -> Result<(), CallBreach> {
    let frees = matches!(
        call.slot(),
        ContractSlot::CoreHostMemoryDeallocate | ContractSlot::CoreUnifiedMemoryDeallocate
    );
    if !frees {
        return Ok(());
    }
    let value = |name: &str| call.description().parameter_position(name).map_or(0, |at| call.words()[at]);
    let (address, size) = (value("address"), value("size"));
    let is_known = state.host_blocks.get(&address).map(|record| (record.size, record.device));
    match is_known {
        None => {
            let message = format!(
                "expected host memory that this plugin allocated and that is not freed, found {address:#x}"
            );
            Err(CallBreach::by_caller("M-1", message))
        }
        Some((known, _)) if known != size => {
            let message = format!("expected the size of the allocation, {known} bytes, found {size}");
            Err(CallBreach::by_caller("M-1", message))
        }
        Some((_, device)) if Some(device) != call.device() => {
            let message = format!("expected device {device}, which allocated the memory, found another");
            Err(CallBreach::by_caller("M-1", message))
        }
        Some(_) => {
            state.check_host_range(&(address..address.saturating_add(size)), true, HOST, "address")?;
            state.host_blocks.remove(&address);
            Ok(())
        }
    }
}

/// Once a device is lost, every call on it says so; what is on it can still be freed.
fn check_loss(
    state: &mut LedgerState,
    call: &LayerCall<'_>,
    uses: &CallUses,
    failed: bool,
    says_lost: bool,
) -> Result<(), CallBreach> {
    let Some(device) = call.device() else { return Ok(()) };
    let frees = uses.freed.is_some() || call.description().name.ends_with("_deallocate");
    let ends = matches!(call.slot(), ContractSlot::CoreDeviceInit | ContractSlot::CoreDeviceDeinit);
    let was_lost = state.is_lost(device);
    if says_lost {
        state.mark_lost(device);
    }
    if !was_lost || says_lost || frees || ends {
        return Ok(());
    }
    let found = if failed { "an error without it" } else { "success" };
    let message =
        format!("expected the flag `device_lost` from device {device}, which is lost, found {found}");
    Err(CallBreach::by_plugin("R-6", message))
}
