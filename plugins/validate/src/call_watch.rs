//! Forwards calls and checks what came of them, for tables and kernels alike.

#![expect(unsafe_code, reason = "out-parameters are places of the caller")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_layer::{LayerCall, LayerHost};
use oarlock_sdk::{Result, abi};

use crate::breach::{BreachLog, BreachReaction, BreachSide, BreachSite, CallBreach};
use crate::callback_watch::CallbackWatch;
use crate::float_mode::{read_float_mode, write_float_mode};
use crate::out_parameters::PoisonedPlaces;
use crate::plugin_ledger::PluginLedger;

/// What all checks share: the plugins, the breaches, and the settings.
pub(crate) struct CallWatch {
    pub(crate) host: LayerHost,
    pub(crate) log: Arc<BreachLog>,
    ledgers: Mutex<Vec<Arc<PluginLedger>>>,
    pub(crate) callbacks: Mutex<Vec<Arc<CallbackWatch>>>,
    pub(crate) keeps_stacks: bool,
    pub(crate) has_guards: bool,
}

/// The call that is being checked.
#[derive(Clone, Copy)]
pub(crate) struct CallNumber<'a> {
    pub(crate) call: u64,
    pub(crate) plugin: &'a str,
    pub(crate) place: &'a str,
}

impl CallWatch {
    pub(crate) fn new(host: LayerHost) -> Result<Self> {
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

    fn lock_ledgers(&self) -> MutexGuard<'_, Vec<Arc<PluginLedger>>> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ledger of a plugin.
    pub(crate) fn ledger_of(&self, plugin: &str) -> Arc<PluginLedger> {
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
        checked: std::result::Result<(), CallBreach>,
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
        // SAFETY: the places are those of the call, which has not returned to its caller.
        let mut outcome = unsafe { places.check_places(failure.is_some()) };
        if failure.is_some() {
            outcome = outcome.and(self.check_error(failure));
        }
        if mode != mode_now {
            write_float_mode(mode);
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
}
