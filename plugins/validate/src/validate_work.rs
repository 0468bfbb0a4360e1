//! The work of the layer: each call is checked, forwarded, and its outcome checked.

#![expect(unsafe_code, reason = "out-parameters are places of the caller")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_layer::{
    ContractSlot, HandleKind, LayerCall, LayerHost, LayerTarget, LayerWork, ParameterKind, TargetTable,
    pointer_word, word_const_pointer, word_pointer,
};
use oarlock_sdk::{LogLevel, Result, abi};

use crate::breach::{BreachLog, BreachReaction, BreachSide, BreachSite, CallBreach};
use crate::call_check::{CallUses, add_host_uses, check_stage, check_uses};
use crate::callback_watch::{CallbackWatch, reach_watched_callback};
use crate::float_mode::{read_float_mode, write_float_mode};
use crate::handle_record::{HandleOrigin, HandleRecord};
use crate::out_parameters::PoisonedPlaces;
use crate::plugin_ledger::{LedgerState, PluginLedger, PluginStage};
use crate::stream_order::HOST;
use crate::validate_kernel::WatchedKernel;

pub(crate) struct ValidateWork {
    host: LayerHost,
    log: Arc<BreachLog>,
    ledgers: Mutex<Vec<Arc<PluginLedger>>>,
    callbacks: Mutex<Vec<Arc<CallbackWatch>>>,
    keeps_stacks: bool,
    has_guards: bool,
}

/// The call that is being checked.
#[derive(Clone, Copy)]
pub(crate) struct CallNumber<'a> {
    pub(crate) call: u64,
    plugin: &'a str,
    place: &'a str,
}

/// A table or kernel whose calls are checked.
pub(crate) enum ValidateTarget {
    /// The table of devices; what is alive when it is unwrapped has leaked.
    Core(WatchedTable),
    Async(WatchedTable),
    Kernel(WatchedTable, WatchedKernel),
}

/// What all targets have.
pub(crate) struct WatchedTable {
    ledger: Arc<PluginLedger>,
    log: Arc<BreachLog>,
    /// The names of its slots and, for a kernel, its op.
    places: Vec<(ContractSlot, String)>,
}

impl WatchedTable {
    fn place(&self, slot: ContractSlot) -> &str {
        self.places.iter().find(|(known, _)| *known == slot).map_or("?", |(_, place)| place)
    }

    fn report_leaks(&self, place: &str, rule: &'static str, leaked: impl IntoIterator<Item = String>) {
        let leaked: Vec<String> = leaked.into_iter().collect();
        if !leaked.is_empty() {
            let site = BreachSite { plugin: &self.ledger.plugin, place, call: self.log.count_call() };
            let message = format!("expected nothing to be left, found {}", leaked.join("; "));
            self.log.report_breach(site, &CallBreach::by_caller(rule, message));
        }
    }
}

impl Drop for ValidateTarget {
    fn drop(&mut self) {
        match self {
            Self::Core(table) => {
                let state = table.ledger.lock_state();
                let of = |blocks: bool| {
                    let alive = state.list_alive();
                    alive
                        .into_iter()
                        .filter(move |(kind, _)| (*kind == HandleKind::Memory) == blocks)
                        .map(|(_, text)| text)
                };
                table.report_leaks("core.finalize", "M-1", of(true));
                table.report_leaks("core.finalize", "A-3", of(false));
            }
            Self::Async(_) => {}
            Self::Kernel(table, kernel) => {
                let place = format!("kernel.release {}", kernel.op);
                table.report_leaks(&place, "kernel.release", kernel.leaked_states());
            }
        }
    }
}

impl LayerWork for ValidateWork {
    const NAME: &'static str = "validate";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Target = ValidateTarget;

    fn start_work(host: LayerHost) -> Result<Self> {
        let reaction = BreachReaction::from_option(host.option("on_breach"))?;
        Ok(Self {
            host,
            log: Arc::new(BreachLog::new(host, reaction)),
            ledgers: Mutex::default(),
            callbacks: Mutex::default(),
            keeps_stacks: host.option("backtrace") == Some("on"),
            has_guards: host.option("guards") != Some("off"),
        })
    }

    fn wrap_target(&self, target: LayerTarget<'_>) -> Result<ValidateTarget> {
        let ledger = self.ledger_of(target.plugin);
        let table = |name: &str, suffix: &str| WatchedTable {
            ledger: ledger.clone(),
            log: self.log.clone(),
            places: oarlock_layer::SLOTS
                .iter()
                .filter(|slot| slot.table == name)
                .map(|slot| (slot.slot, format!("{}{suffix}", slot.full_name())))
                .collect(),
        };
        Ok(match target.table {
            TargetTable::Core(core) => {
                ledger.lock_state().has_initialize = core.initialize.is_some();
                ValidateTarget::Core(table("core", ""))
            }
            TargetTable::Async(_) => ValidateTarget::Async(table("async", "")),
            TargetTable::Kernel(kernel) => {
                let op = target.table.op_name().unwrap_or("?");
                let watched = WatchedKernel::new(ledger.clone(), op, kernel);
                ValidateTarget::Kernel(table("kernel", &format!(" of {op}")), watched)
            }
        })
    }

    fn around_call(&self, target: &ValidateTarget, call: LayerCall<'_>) -> abi::Error {
        let (ValidateTarget::Core(table) | ValidateTarget::Async(table) | ValidateTarget::Kernel(table, _)) =
            target;
        let number = CallNumber {
            call: self.log.count_call(),
            plugin: &table.ledger.plugin,
            place: table.place(call.slot()),
        };
        match target {
            ValidateTarget::Kernel(_, kernel) => kernel.do_call(self, &call, number),
            _ => self.do_table_call(&table.ledger, &call, number),
        }
    }

    fn finish_work(&self, tell: &dyn Fn(LogLevel, &str)) {
        let callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        for watch in callbacks.iter().filter(|watch| !watch.has_run()) {
            watch.report_missing();
        }
        let (level, summary) = self.log.summary();
        tell(level, &summary);
    }
}

impl ValidateWork {
    pub(crate) fn keeps_stacks(&self) -> bool {
        self.keeps_stacks
    }

    pub(crate) fn has_guards(&self) -> bool {
        self.has_guards
    }

    fn lock_ledgers(&self) -> MutexGuard<'_, Vec<Arc<PluginLedger>>> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger_of(&self, plugin: &str) -> Arc<PluginLedger> {
        let mut ledgers = self.lock_ledgers();
        if let Some(known) = ledgers.iter().find(|ledger| ledger.plugin == plugin) {
            return known.clone();
        }
        let ledger = Arc::new(PluginLedger::new(plugin));
        ledgers.push(ledger.clone());
        ledger
    }

    /// The first plugin for which `is_wanted` is true.
    pub(crate) fn find_ledger(&self, is_wanted: impl Fn(&PluginLedger) -> bool) -> Option<Arc<PluginLedger>> {
        self.lock_ledgers().iter().find(|ledger| is_wanted(ledger)).cloned()
    }

    fn report(&self, number: CallNumber<'_>, breach: &CallBreach) -> String {
        let site = BreachSite { plugin: number.plugin, place: number.place, call: number.call };
        self.log.report_breach(site, breach)
    }

    /// Reports a breach by the caller, and returns the error for it.
    pub(crate) fn refuse(&self, number: CallNumber<'_>, breach: &CallBreach) -> abi::Error {
        let message = self.report(number, breach);
        self.log.breach_error(breach, message)
    }

    /// Forwards a call, if it is right so far, and checks what the plugin did; `after` gets whether it failed.
    pub(crate) fn forward_checked(
        &self,
        number: CallNumber<'_>,
        checked: Result<(), CallBreach>,
        call: &LayerCall<'_>,
        after: impl FnOnce(bool) -> Result<(), CallBreach>,
    ) -> abi::Error {
        if let Err(breach) = checked {
            return self.refuse(number, &breach);
        }
        let failure = self.forward_watched(number, call, None);
        let after = after(failure.is_some());
        self.finish_checked(number, failure, after)
    }

    /// Forwards a call, and checks its out-parameters, its error and the mode of floating-point arithmetic.
    pub(crate) fn forward_watched(
        &self,
        number: CallNumber<'_>,
        call: &LayerCall<'_>,
        words: Option<&[u64]>,
    ) -> abi::Error {
        // SAFETY: the words are those that the caller passed to this slot.
        let places = match unsafe { PoisonedPlaces::fill_places(call) } {
            Ok(places) => places,
            Err(breach) => return self.refuse(number, &breach),
        };
        let mode = read_float_mode();
        let failure = match words {
            None => call.forward(),
            // SAFETY: the words are those of the call, with addresses of the layer's own that stay valid until it returns.
            Some(words) => unsafe { call.forward_with(words) },
        };
        let mode_now = read_float_mode();
        write_float_mode(mode);
        // SAFETY: the places are those of the call, which has not returned to its caller.
        let mut outcome = unsafe { places.check_places(failure.is_some()) };
        if failure.is_some() {
            outcome = outcome.and(self.check_error(failure));
        }
        if mode != mode_now {
            let message = format!(
                "expected the mode of floating-point arithmetic as it was, {mode:#x}, found {mode_now:#x}"
            );
            outcome = outcome.and(Err(CallBreach::by_plugin("D-3", message)));
        }
        self.finish_checked(number, failure, outcome)
    }

    /// Reports a breach by the plugin. With `on_breach = "fail"`, a call that succeeded fails because of it.
    pub(crate) fn finish_checked(
        &self,
        number: CallNumber<'_>,
        failure: abi::Error,
        outcome: Result<(), CallBreach>,
    ) -> abi::Error {
        let Err(breach) = outcome else { return failure };
        let message = self.report(number, &breach);
        let turns_into_error = breach.side == BreachSide::Plugin
            && self.log.reaction == BreachReaction::Fail
            && !failure.is_some();
        if turns_into_error { self.log.breach_error(&breach, message) } else { failure }
    }

    fn check_error(&self, failure: abi::Error) -> Result<(), CallBreach> {
        match self.host.read_error(failure) {
            None => Err(CallBreach::by_plugin(
                "R-1",
                format!("expected an error that the host made, found the number {:#x}", failure.0),
            )),
            Some(facts) if facts.message.is_empty() => Err(CallBreach::by_plugin(
                "R-5",
                "expected an error that says what was expected and what was found, found no message",
            )),
            Some(_) => Ok(()),
        }
    }

    /// Does a call of a table of devices or of streams.
    fn do_table_call(
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
        let failure = self.forward_watched(number, call, replaced.as_deref());
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
                        let whole = crate::plugin_ledger::BlockUse {
                            block: handle,
                            device,
                            offset: 0,
                            size,
                            writes: true,
                            name: "block",
                        };
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
