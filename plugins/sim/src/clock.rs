//! Virtual time of a simulated device.
//!
//! No operation sleeps. Each one advances the clock of its device by what the work would cost on a plain accelerator, so measured
//! times are the same on every machine and in every run.

use std::time::Duration;

/// The path that an operation's bytes take, which decides its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostLane {
    /// Between host memory and device memory.
    HostLink,
    /// Between two devices.
    PeerLink,
    /// Inside one device.
    DeviceMemory,
    /// No bytes: a kernel launch, a callback or a bookkeeping step.
    Command,
}

impl CostLane {
    /// Nanoseconds before the first byte moves.
    const fn latency_nanoseconds(self) -> u64 {
        match self {
            CostLane::HostLink => 8_000,
            CostLane::PeerLink => 10_000,
            CostLane::DeviceMemory => 3_000,
            CostLane::Command => 1_000,
        }
    }

    /// Bytes moved in one nanosecond.
    const fn bytes_per_nanosecond(self) -> u64 {
        match self {
            CostLane::HostLink => 16,
            CostLane::PeerLink => 32,
            CostLane::DeviceMemory => 512,
            CostLane::Command => 1,
        }
    }
}

/// The virtual clock of one device, in nanoseconds since the device was created.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now: u64,
}

impl VirtualClock {
    /// Current virtual time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Advances by the cost of an operation over `bytes` bytes.
    pub fn charge_bytes(&mut self, lane: CostLane, bytes: u64) {
        let moving = bytes.div_ceil(lane.bytes_per_nanosecond());
        self.now = self.now.saturating_add(lane.latency_nanoseconds()).saturating_add(moving);
    }

    /// Advances by a fixed time, for a scripted delay.
    pub fn advance_by(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.now = self.now.saturating_add(nanoseconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_and_slower_lanes_cost_more() {
        let cost = |lane, bytes| {
            let mut clock = VirtualClock::default();
            clock.charge_bytes(lane, bytes);
            clock.now()
        };
        assert!(cost(CostLane::HostLink, 1 << 20) > cost(CostLane::HostLink, 1 << 10));
        assert!(cost(CostLane::HostLink, 1 << 20) > cost(CostLane::DeviceMemory, 1 << 20));
        assert_eq!(cost(CostLane::Command, 0), 1_000);
    }

    #[test]
    fn time_stops_at_its_end_and_does_not_wrap() {
        let mut clock = VirtualClock::default();
        clock.advance_by(Duration::MAX);
        clock.charge_bytes(CostLane::HostLink, u64::MAX);
        assert_eq!(clock.now(), u64::MAX);
    }
}
