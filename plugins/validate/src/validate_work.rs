//! The work of the layer: which calls are checked how, and what is said at the end.

use std::sync::{Arc, PoisonError};

use oarlock_layer::{ContractSlot, HandleKind, LayerCall, LayerHost, LayerTarget, LayerWork, TargetTable};
use oarlock_sdk::{LogLevel, Result, abi};

use crate::breach::{BreachLog, BreachSite, CallBreach};
use crate::call_watch::{CallNumber, CallWatch};
use crate::plugin_ledger::PluginLedger;
use crate::validate_kernel::WatchedKernel;

pub(crate) struct ValidateWork {
    watch: CallWatch,
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
        Ok(Self { watch: CallWatch::new(host)? })
    }

    fn wrap_target(&self, target: LayerTarget<'_>) -> Result<ValidateTarget> {
        let ledger = self.watch.ledger_of(target.plugin);
        let table = |name: &str, suffix: &str| WatchedTable {
            ledger: ledger.clone(),
            log: self.watch.log.clone(),
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
            call: self.watch.log.count_call(),
            plugin: &table.ledger.plugin,
            place: table.place(call.slot()),
        };
        match target {
            ValidateTarget::Kernel(_, kernel) => kernel.do_call(&self.watch, &call, number),
            _ => self.watch.do_table_call(&table.ledger, &call, number),
        }
    }

    fn finish_work(&self, tell: &dyn Fn(LogLevel, &str)) {
        let callbacks = self.watch.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        for watch in callbacks.iter().filter(|watch| !watch.has_run()) {
            watch.report_missing();
        }
        let (level, summary) = self.watch.log.summary();
        tell(level, &summary);
    }
}
