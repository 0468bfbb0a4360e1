//! All devices of one kind at work at the same time.
//!
//! A plugin may drive each of its devices well and still mix them up: by memory they share, or by a device it takes for the
//! current one. So every device computes with numbers of its own, each on a thread, several times over.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError, RwLock};

use oarlock_core::{Device, Runtime};
use oarlock_host::clean_text;
use serde_json::{Value, json};

use super::cause::{Cause, Finding, in_json};
use super::computation;
use super::patience::{LIMIT_OF_COMPUTATION, answer};
use super::trial::Fault;
use super::verdict::several;
use crate::output::{BAD, GOOD, NAME, Output};
use crate::session::Core;

/// How often each device computes, so that they overlap.
const ROUNDS: u32 = 5;

/// What became of the devices of one kind.
pub(super) struct Together {
    pub(super) device_type: String,
    devices: Vec<(String, Result<String, Finding>)>,
}

impl Together {
    /// Has these devices, all of one type, compute at the same time. A thread that does not end is left behind.
    pub(super) fn of(devices: &[Device], core: &Core) -> Self {
        let gate = Arc::new(RwLock::new(()));
        // Nobody starts before all threads are there.
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let places = (0..).zip(devices);
        let started: Vec<_> = places
            .map(|(place, device)| (device, start(device.clone(), place, &core.runtime, &gate)))
            .collect();
        drop(closed);
        let finish = |(device, answers): (&Device, Receiver<Result<String, Fault>>)| {
            let heard =
                answer(&answers, LIMIT_OF_COMPUTATION, &format!("{device}: computation with the others"));
            let outcome = heard.and_then(|outcome| outcome.map_err(Cause::Fault));
            let plugin = &device.host_device().plugin().info().name;
            let outcome = outcome.map_err(|cause| Finding::of(&cause, plugin, core.runtime.host()));
            (device.name().to_owned(), outcome)
        };
        let device_type = devices.first().map_or("", Device::device_type).to_owned();
        Self { device_type, devices: started.into_iter().map(finish).collect() }
    }

    pub(super) fn works(&self) -> bool {
        self.devices.iter().all(|(_, outcome)| outcome.is_ok())
    }

    /// How many devices there are.
    pub(super) fn count(&self) -> usize {
        self.devices.len()
    }

    pub(super) fn print(&self, output: &mut Output) {
        let state = if self.works() { output.paint(GOOD, "works") } else { output.paint(BAD, "fails") };
        let what = format!("{} at the same time", several(self.count(), &self.device_type));
        let what = output.paint(NAME, &what);
        let names: Vec<&str> = self.devices.iter().map(|(name, _)| name.as_str()).collect();
        output.line(&format!("  {state}  {what}  {}", clean_text(&names.join(", "))));
        for (name, outcome) in &self.devices {
            if let Err(finding) = outcome {
                finding.print(&format!("{name}: "), 9, output);
            }
        }
    }

    pub(super) fn in_json(&self) -> Value {
        let device =
            |(name, outcome): &(String, Result<String, Finding>)| in_json(json!({ "device": name }), outcome);
        let devices: Vec<Value> = self.devices.iter().map(device).collect();
        json!({ "device_type": self.device_type, "works": self.works(), "devices": devices })
    }
}

fn start(
    device: Device,
    place: u32,
    runtime: &Arc<Runtime>,
    gate: &Arc<RwLock<()>>,
) -> Receiver<Result<String, Fault>> {
    let (sender, receiver) = channel();
    let (runtime, gate) = (runtime.clone(), gate.clone());
    let work = move || {
        drop(gate.read());
        let mut outcome = Ok(String::new());
        for round in 0..ROUNDS {
            outcome = computation::run(&runtime, &device, place * ROUNDS + round);
            if outcome.is_err() {
                break;
            }
        }
        // Nobody listens any more once the trial was given up.
        _ = sender.send(outcome);
    };
    // A thread that does not start lets go of its end of the channel, which is then told.
    _ = std::thread::Builder::new().name(format!("trial of many, {place}")).spawn(work);
    receiver
}
