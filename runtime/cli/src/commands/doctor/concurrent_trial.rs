//! Runs all devices of one type at the same time.
//!
//! A plugin may drive each of its devices well alone and still mix them up, through shared memory or a wrong notion of the
//! current device. So each device computes with numbers of its own, on a thread of its own, several times.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError, RwLock};

use oarlock_core::{Device, Runtime};
use oarlock_host::sanitize_text;
use serde_json::{Value, json};

use super::computation;
use super::device_count::count_devices;
use super::diagnosis::{DeviceDiagnosis, FailureCause, outcome_to_json};
use super::trial_fault::TrialFault;
use super::watchdog::{COMPUTATION_TIMEOUT, wait_for_answer};
use crate::output::{BAD_STYLE, CommandOutput, GOOD_STYLE, NAME_STYLE};
use crate::session::CoreSession;

/// Rounds of each device, enough to make them overlap.
const ROUNDS_PER_DEVICE: u32 = 5;

pub(super) struct ConcurrentTrial {
    pub(super) device_type: String,
    devices: Vec<(String, Result<String, DeviceDiagnosis>)>,
}

impl ConcurrentTrial {
    /// Computes on all devices concurrently; they must have one type. A thread that hangs is abandoned.
    pub(super) fn run_concurrently(devices: &[Device], core: &CoreSession) -> Self {
        let gate = Arc::new(RwLock::new(()));
        // The held lock keeps all threads waiting until the last one has started.
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let places = (0..).zip(devices);
        let started: Vec<_> = places
            .map(|(place, device)| (device, start_computation(device.clone(), place, &core.runtime, &gate)))
            .collect();
        drop(closed);
        let finish = |(device, answers): (&Device, Receiver<Result<String, TrialFault>>)| {
            let heard = wait_for_answer(
                &answers,
                COMPUTATION_TIMEOUT,
                &format!("{device}: computation with the others"),
            );
            let outcome = heard.and_then(|outcome| outcome.map_err(FailureCause::Fault));
            let plugin = &device.host_device().plugin().info().name;
            let outcome =
                outcome.map_err(|cause| DeviceDiagnosis::from_cause(&cause, plugin, core.runtime.host()));
            (device.name().to_owned(), outcome)
        };
        let device_type = devices.first().map_or("", Device::device_type).to_owned();
        Self { device_type, devices: started.into_iter().map(finish).collect() }
    }

    pub(super) fn is_working(&self) -> bool {
        self.devices.iter().all(|(_, outcome)| outcome.is_ok())
    }

    pub(super) fn device_count(&self) -> usize {
        self.devices.len()
    }

    pub(super) fn print_trial(&self, output: &mut CommandOutput) {
        let state = if self.is_working() {
            output.paint_text(GOOD_STYLE, "works")
        } else {
            output.paint_text(BAD_STYLE, "fails")
        };
        let what = format!("{} at the same time", count_devices(self.device_count(), &self.device_type));
        let what = output.paint_text(NAME_STYLE, &what);
        let names: Vec<&str> = self.devices.iter().map(|(name, _)| name.as_str()).collect();
        output.write_line(&format!("  {state}  {what}  {}", sanitize_text(&names.join(", "))));
        for (name, outcome) in &self.devices {
            if let Err(finding) = outcome {
                finding.print_diagnosis(&format!("{name}: "), 9, output);
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let device = |(name, outcome): &(String, Result<String, DeviceDiagnosis>)| {
            outcome_to_json(json!({ "device": name }), outcome)
        };
        let devices: Vec<Value> = self.devices.iter().map(device).collect();
        json!({ "device_type": self.device_type, "works": self.is_working(), "devices": devices })
    }
}

fn start_computation(
    device: Device,
    place: u32,
    runtime: &Arc<Runtime>,
    gate: &Arc<RwLock<()>>,
) -> Receiver<Result<String, TrialFault>> {
    let (sender, receiver) = channel();
    let (runtime, gate) = (runtime.clone(), gate.clone());
    let work = move || {
        drop(gate.read());
        let mut outcome = Ok(String::new());
        for round in 0..ROUNDS_PER_DEVICE {
            outcome = computation::run_computation(&runtime, &device, place * ROUNDS_PER_DEVICE + round);
            if outcome.is_err() {
                break;
            }
        }
        // Sending fails after the trial was given up.
        _ = sender.send(outcome);
    };
    // If the thread cannot start, its end of the channel is dropped, and the receiver reports that.
    _ = std::thread::Builder::new().name(format!("trial of many, {place}")).spawn(work);
    receiver
}
