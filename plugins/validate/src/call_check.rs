//! What the words of a call say about handles, memory and order, for any slot: names and kinds of its parameters decide.

use std::ops::Range;

use oarlock_layer::{ContractSlot, HandleKind, LayerCall, ParameterKind, SlotDescription};

use crate::breach::CallBreach;
use crate::plugin_ledger::{BlockUse, HostAccess, LedgerState, PluginStage};
use crate::stream_order::{HOST, WorkPoint};

/// Host memory that a call reads or writes.
pub(crate) struct HostUse {
    pub(crate) range: Range<u64>,
    /// True if the device writes it.
    pub(crate) writes: bool,
    pub(crate) name: &'static str,
}

/// What a call does to memory, and the handle that it frees.
pub(crate) struct CallUses {
    pub(crate) blocks: Vec<BlockUse>,
    pub(crate) host: Vec<HostUse>,
    pub(crate) freed: Option<(HandleKind, u64)>,
    /// Streams and events that no other thread may use meanwhile.
    pub(crate) exclusive: Vec<(HandleKind, u64)>,
    pub(crate) stream: u64,
}

/// True for the slots that free what their handle stands for.
fn frees_handle(description: &SlotDescription) -> bool {
    let name = description.name;
    name.ends_with("_destroy") || name.ends_with("_deallocate") || name.ends_with("_deallocate_async")
}

/// True for the slots that other threads may call meanwhile.
fn is_query_or_wait(description: &SlotDescription) -> bool {
    let name = description.name;
    name.ends_with("_query") || name.ends_with("_synchronize") || name.ends_with("_elapsed")
}

fn word(call: &LayerCall<'_>, name: &str) -> Option<u64> {
    call.description().parameter_position(name).map(|at| call.words()[at])
}

impl CallUses {
    pub(crate) fn from_call(call: &LayerCall<'_>) -> Self {
        let description = call.description();
        let frees = frees_handle(description);
        let mut uses = Self {
            blocks: Vec::new(),
            host: Vec::new(),
            freed: None,
            exclusive: Vec::new(),
            stream: description.queue.map_or(HOST, |at| call.words()[at]),
        };
        for (index, (parameter, &value)) in description.parameters.iter().zip(call.words()).enumerate() {
            match parameter.kind {
                ParameterKind::Handle(kind) if frees && Some(index) != description.queue => {
                    uses.freed = Some((kind, value));
                    if kind == HandleKind::Event {
                        uses.exclusive.push((kind, value));
                    }
                }
                ParameterKind::Handle(HandleKind::Stream)
                    if frees && description.name == "stream_destroy" =>
                {
                    uses.freed = Some((HandleKind::Stream, value));
                    uses.exclusive.push((HandleKind::Stream, value));
                }
                ParameterKind::Handle(HandleKind::Memory) => {
                    uses.blocks.extend(block_use(call, parameter.name, value));
                }
                ParameterKind::Handle(HandleKind::Stream) if value != 0 && !is_query_or_wait(description) => {
                    uses.exclusive.push((HandleKind::Stream, value));
                }
                ParameterKind::Handle(HandleKind::Event) if description.name == "event_record" => {
                    uses.exclusive.push((HandleKind::Event, value));
                }
                ParameterKind::InBytes | ParameterKind::InAddress => {
                    uses.host.extend(host_use(call, parameter.name, value, false));
                }
                ParameterKind::OutBytes => uses.host.extend(host_use(call, parameter.name, value, true)),
                // The target of an asynchronous copy to the host.
                ParameterKind::Address if parameter.name == "target" => {
                    uses.host.extend(host_use(call, parameter.name, value, true));
                }
                _ => {}
            }
        }
        uses
    }
}

/// The bytes of a block that a call names with an offset and a size.
fn block_use(call: &LayerCall<'_>, name: &'static str, block: u64) -> Option<BlockUse> {
    let offset = word(call, &format!("{name}_offset"))?;
    let size = ["size", "source_size", "target_size"].iter().find_map(|size| word(call, size))?;
    let device = word(call, &format!("{name}_device")).or(call.device().map(u64::from))? as u32;
    Some(BlockUse { block, device, offset, size, writes: name == "target", name })
}

fn host_use(call: &LayerCall<'_>, name: &'static str, address: u64, writes: bool) -> Option<HostUse> {
    let size = word(call, &format!("{name}_size")).or_else(|| word(call, "size"))?;
    Some(HostUse { range: address..address.saturating_add(size), writes, name })
}

/// Fails if the plugin is not in the stage that a call needs.
pub(crate) fn check_stage(state: &LedgerState, slot: ContractSlot) -> Result<(), CallBreach> {
    match (state.stage, slot) {
        (PluginStage::Loaded, ContractSlot::CoreInitialize) => Ok(()),
        (PluginStage::Loaded, _) if state.has_initialize => Err(CallBreach::by_caller(
            "core.initialize",
            "expected `initialize` to come first, found no call of it that succeeded",
        )),
        (PluginStage::Initialized, ContractSlot::CoreInitialize) => {
            Err(CallBreach::by_caller("core.initialize", "expected one call of `initialize`, found another"))
        }
        (PluginStage::Finalized, slot) if slot != ContractSlot::CoreInitialize => {
            Err(CallBreach::by_caller("core.finalize", "expected no call after `finalize`, found one"))
        }
        _ => Ok(()),
    }
}

/// Fails if the call names a handle, bytes or host memory that it must not use now.
pub(crate) fn check_uses(
    state: &LedgerState,
    call: &LayerCall<'_>,
    uses: &CallUses,
) -> Result<(), CallBreach> {
    let description = call.description();
    let device = call.device();
    if device.is_some_and(|device| state.is_lost(device)) && uses.freed.is_some() {
        return Ok(());
    }
    for (index, (parameter, &value)) in description.parameters.iter().zip(call.words()).enumerate() {
        let ParameterKind::Handle(kind) = parameter.kind else { continue };
        let is_block_with_range = kind == HandleKind::Memory && uses.freed.is_none();
        let is_own_stream = kind == HandleKind::Stream
            && value == 0
            && (Some(index) == description.queue && uses.freed != Some((kind, 0)));
        if !is_block_with_range && !is_own_stream {
            // The stream of a copy between devices belongs to the source.
            let device = device.or_else(|| word(call, "source_device").map(|device| device as u32));
            state.check_handle(kind, value, device)?;
        }
    }
    for used in &uses.blocks {
        state.check_use(used, uses.stream)?;
    }
    check_overlap(&uses.blocks)?;
    if let Some((HandleKind::Memory, block)) = uses.freed {
        check_freed_block(state, call, block, uses.stream)?;
    }
    for used in &uses.host {
        if used.range.start == 0 && !used.range.is_empty() {
            let message = format!(
                "expected an address for the {} bytes of `{}`, found null",
                used.range.end, used.name
            );
            return Err(CallBreach::by_caller(rule_of_slot(call), message));
        }
        state.check_host_range(&used.range, used.writes, uses.stream, used.name)?;
    }
    if description.name.contains("allocate")
        && !description.name.contains("deallocate")
        && word(call, "size") == Some(0)
    {
        return Err(CallBreach::by_caller("M-4", "expected a size of at least 1 byte, found 0"));
    }
    Ok(())
}

/// Quoted where a slot's own description makes the promise.
fn rule_of_slot(call: &LayerCall<'_>) -> &'static str {
    if call.description().queue.is_some() { "async" } else { "core" }
}

fn check_overlap(blocks: &[BlockUse]) -> Result<(), CallBreach> {
    let [first, second] = blocks else { return Ok(()) };
    let (first_end, second_end) =
        (first.offset.saturating_add(first.size), second.offset.saturating_add(second.size));
    let overlaps = first.block == second.block
        && first.device == second.device
        && first.offset < second_end
        && second.offset < first_end;
    if overlaps {
        let message = format!(
            "expected ranges that do not overlap, found bytes {} to {first_end} and {} to {second_end} of one block",
            first.offset, second.offset
        );
        return Err(CallBreach::by_caller("core.memory_copy_d2d", message));
    }
    Ok(())
}

fn check_freed_block(
    state: &LedgerState,
    call: &LayerCall<'_>,
    block: u64,
    stream: u64,
) -> Result<(), CallBreach> {
    let record = state.check_handle(HandleKind::Memory, block, call.device())?;
    if let Some(size) = word(call, "size").filter(|&size| size != record.size) {
        let message = format!(
            "expected the size of the allocation, {} bytes by {}, found {size}",
            record.size, record.made
        );
        return Err(CallBreach::by_caller("M-1", message));
    }
    let (device, size) = (record.device, record.size);
    let whole = BlockUse { block, device, offset: 0, size, writes: true, name: "block" };
    state.check_use(&whole, stream)
}

/// Remembers the host memory of asynchronous copies.
pub(crate) fn add_host_uses(state: &mut LedgerState, uses: &CallUses, point: WorkPoint, call: u64) {
    if point.stream != HOST {
        let added = uses.host.iter().map(|used| HostAccess {
            range: used.range.clone(),
            writes: used.writes,
            point,
            call,
        });
        state.in_flight.extend(added);
    }
}
