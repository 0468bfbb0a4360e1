//! Checks of the functions of a kernel.

#![expect(unsafe_code, reason = "a run may get a call whose outputs were moved")]

use std::sync::{Arc, OnceLock};

use oarlock_layer::{ContractSlot, HandleKind, LayerCall, word_const_pointer};
use oarlock_sdk::abi;

use crate::breach::CallBreach;
use crate::call_watch::{CallNumber, CallWatch};
use crate::handle_record::HandleOrigin;
use crate::kernel_guard::GuardBuffers;
use crate::kernel_operands::KernelOperands;
use crate::kernel_states::KernelStates;
use crate::plugin_ledger::{BlockUse, LedgerState, PluginLedger};
use crate::stream_order::HOST;

/// A kernel whose calls are checked.
pub(crate) struct WatchedKernel {
    pub(crate) plugin: Arc<PluginLedger>,
    pub(crate) op: String,
    /// True if the kernel runs on the device of another plugin.
    runs_elsewhere: bool,
    has_prepare: bool,
    bits: abi::KernelFlags,
    states: KernelStates,
    /// The plugin whose memory the kernel uses, once a call has shown it.
    device_plugin: OnceLock<Arc<PluginLedger>>,
}

impl WatchedKernel {
    pub(crate) fn new(plugin: Arc<PluginLedger>, op: &str, kernel: &abi::Kernel) -> Self {
        Self {
            plugin,
            op: op.to_owned(),
            runs_elsewhere: !kernel.device_type.is_empty(),
            has_prepare: kernel.prepare.is_some(),
            bits: kernel.bits,
            states: KernelStates::default(),
            device_plugin: OnceLock::new(),
        }
    }

    pub(crate) fn leaked_states(&self) -> Vec<String> {
        self.states.list_alive()
    }

    /// The plugin that owns the memory of a call.
    fn memory_owner(&self, watch: &CallWatch, operands: &KernelOperands) -> &PluginLedger {
        if !self.runs_elsewhere {
            return &self.plugin;
        }
        if let Some(owner) = self.device_plugin.get() {
            return owner;
        }
        let owns = |ledger: &PluginLedger| {
            let state = ledger.lock_state();
            operands.block_uses().any(|used| state.has_block(used.block))
        };
        match watch.find_ledger(owns) {
            Some(owner) => self.device_plugin.get_or_init(|| owner),
            None => &self.plugin,
        }
    }

    /// Does a call of a kernel's function.
    pub(crate) fn do_call(&self, watch: &CallWatch, call: &LayerCall<'_>, number: CallNumber) -> abi::Error {
        match call.slot() {
            ContractSlot::KernelRun => self.do_run(watch, call, number),
            ContractSlot::KernelRelease => {
                let checked = self.states.release_state(call.words()[0]);
                watch.forward_checked(number, checked, call, |_| Ok(()))
            }
            ContractSlot::KernelPrepare => {
                let made = HandleOrigin::new(number.call, "kernel.prepare", watch.keeps_stacks);
                watch.forward_checked(number, self.check_description(call), call, |failed| {
                    if !failed {
                        // SAFETY: the host provided the place of the state, and the plugin has written it.
                        let state = unsafe { *word_const_pointer::<u64>(call.words()[1]) };
                        self.states.add_state(state, made);
                    }
                    Ok(())
                })
            }
            _ => watch.forward_checked(number, self.check_description(call), call, |_| Ok(())),
        }
    }

    /// Checks the call of a function that does not read elements.
    fn check_description(&self, call: &LayerCall<'_>) -> Result<(), CallBreach> {
        let at = call.description().parameter_position("call");
        // SAFETY: the host vouches for the call.
        at.map_or(Ok(()), |at| unsafe { KernelOperands::read_call(call.words()[at]) }.map(drop))
    }

    fn do_run(&self, watch: &CallWatch, call: &LayerCall<'_>, number: CallNumber) -> abi::Error {
        let mut buffers = GuardBuffers::take_from_thread();
        let room = std::mem::take(&mut buffers.operands);
        // SAFETY: the host vouches for the call.
        let failure = match unsafe { KernelOperands::read_call_into(call.words()[1], room) } {
            Ok(operands) => {
                let failure = self.run_checked(watch, call, number, &operands, &mut buffers);
                buffers.operands = operands.operands;
                failure
            }
            Err(breach) => watch.refuse(number, &breach),
        };
        buffers.return_to_thread();
        failure
    }

    fn run_checked(
        &self,
        watch: &CallWatch,
        call: &LayerCall<'_>,
        number: CallNumber,
        operands: &KernelOperands,
        buffers: &mut GuardBuffers,
    ) -> abi::Error {
        let state = call.words()[0];
        let owner = self.memory_owner(watch, operands);
        let queue = operands.call.queue.0;
        let mut uses = std::mem::take(&mut buffers.uses);
        uses.clear();
        uses.extend(operands.block_uses());
        let mut is_addressable = false;
        let checked = self.check_state(state).and_then(|()| {
            let mut ledger = owner.lock_state();
            is_addressable = ledger.is_host_addressable(operands.call.device);
            check_run(&mut ledger, operands, &uses)
        });
        let failure = match checked {
            Err(breach) => watch.refuse(number, &breach),
            Ok(()) => {
                let failure = self.run_guarded(watch, call, number, operands, is_addressable, buffers);
                if queue != HOST {
                    self.note_work(&mut owner.lock_state(), queue, failure, &uses, number);
                }
                failure
            }
        };
        buffers.uses = uses;
        failure
    }

    /// Notes the work that a run has added to a stream.
    fn note_work(
        &self,
        ledger: &mut LedgerState,
        queue: u64,
        failure: abi::Error,
        uses: &[BlockUse],
        number: CallNumber,
    ) {
        ledger.leave_handle(HandleKind::Stream, queue);
        if failure.is_some() {
            return;
        }
        let point = ledger.order.add_work(queue);
        ledger.add_uses(uses, point, number.call);
        if !self.bits.contains(abi::KernelFlags::ASYNCHRONOUS) {
            ledger.order.finish_stream(queue);
        }
    }

    fn check_state(&self, state: u64) -> Result<(), CallBreach> {
        if self.has_prepare {
            return self.states.check_state(state);
        }
        if state == 0 {
            return Ok(());
        }
        let message = format!("expected null for a kernel without `prepare`, found {state:#x}");
        Err(CallBreach::by_caller("kernel.prepare", message))
    }

    fn run_guarded(
        &self,
        watch: &CallWatch,
        call: &LayerCall<'_>,
        number: CallNumber,
        operands: &KernelOperands,
        is_addressable: bool,
        guards: &mut GuardBuffers,
    ) -> abi::Error {
        let allocates = self.bits.contains(abi::KernelFlags::ALLOCATES_OUTPUTS);
        let is_guarded = watch.has_guards && operands.call.queue.0 == HOST;
        if !is_guarded {
            let failure = watch.forward_watched(number, call, None);
            // SAFETY: the structs are the host's, which waits for the call.
            let unchanged = if allocates { Ok(()) } else { unsafe { operands.check_unchanged_outputs() } };
            return watch.finish_checked(number, failure, unchanged);
        }
        // SAFETY: the operands were read from the call at this address, and the device said whether its blocks are addresses.
        let address = unsafe { guards.set_guards(call.words()[1], operands, is_addressable, !allocates) };
        let failure = watch.forward_watched(number, call, Some(&[call.words()[0], address]));
        // SAFETY: the guards were set for this run, and the host keeps the operands until it returns.
        let kept = unsafe { guards.check_guards(operands) };
        let unchanged = if allocates || guards.has_moved() {
            Ok(())
        } else {
            // SAFETY: the structs are the host's, which waits for the call.
            unsafe { operands.check_unchanged_outputs() }
        };
        watch.finish_checked(number, failure, kept.and(unchanged))
    }
}

fn check_run(
    ledger: &mut LedgerState,
    operands: &KernelOperands,
    uses: &[BlockUse],
) -> Result<(), CallBreach> {
    let queue = operands.call.queue.0;
    if queue != HOST {
        ledger.check_handle(HandleKind::Stream, queue, Some(operands.call.device))?;
    }
    uses.iter().try_for_each(|used| ledger.check_use(used, queue))?;
    if queue == HOST { Ok(()) } else { ledger.enter_handle(HandleKind::Stream, queue) }
}
