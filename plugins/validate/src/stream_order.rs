//! Which work of streams is known to be done before what: vector clocks.
//!
//! Each stream counts its work. A stream knows, for each other stream, how much of that stream's work comes before its own next
//! work: what it waited for through events, and what the host had seen done when it added the work. The host is one party; work on
//! the synchronous stream is its own. A doubt counts as order, so that only certain mistakes are reported.

use rustc_hash::FxHashMap;

/// How much of each stream's work is known to be done.
pub(crate) type StreamClock = FxHashMap<u64, u64>;

/// The stream of work that is done when its call returns.
pub(crate) const HOST: u64 = 0;

/// A point in the order of all work: a stream, and the number of the work in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkPoint {
    pub(crate) stream: u64,
    pub(crate) number: u64,
}

#[derive(Debug, Default)]
struct StreamWorkCount {
    device: u32,
    number: u64,
    seen: StreamClock,
}

/// The order of the work of one plugin.
#[derive(Debug, Default)]
pub(crate) struct StreamOrder {
    streams: FxHashMap<u64, StreamWorkCount>,
    events: FxHashMap<u64, StreamClock>,
    /// What the host has seen done.
    host: StreamClock,
}

fn join_clocks(into: &mut StreamClock, from: &StreamClock) {
    for (&stream, &number) in from {
        let known = into.entry(stream).or_insert(0);
        *known = (*known).max(number);
    }
}

impl StreamOrder {
    pub(crate) fn add_stream(&mut self, stream: u64, device: u32) {
        self.streams.insert(stream, StreamWorkCount { device, ..StreamWorkCount::default() });
        self.host.remove(&stream);
    }

    /// Work of a destroyed stream counts as done: the contract says that a stream is destroyed once it is.
    pub(crate) fn remove_stream(&mut self, stream: u64) {
        self.finish_stream(stream);
        self.streams.remove(&stream);
    }

    pub(crate) fn remove_event(&mut self, event: u64) {
        self.events.remove(&event);
    }

    /// Adds work to a stream.
    pub(crate) fn add_work(&mut self, stream: u64) -> WorkPoint {
        let Some(count) = self.streams.get_mut(&stream) else { return WorkPoint { stream: HOST, number: 0 } };
        join_clocks(&mut count.seen, &self.host);
        count.number += 1;
        count.seen.insert(stream, count.number);
        WorkPoint { stream, number: count.number }
    }

    /// Whether the work at `point` is certain to be done before work that is added to `stream` now.
    pub(crate) fn is_before(&self, point: WorkPoint, stream: u64) -> bool {
        let is_seen =
            |clock: &StreamClock| clock.get(&point.stream).is_some_and(|&seen| seen >= point.number);
        point.stream == HOST
            || point.stream == stream
            || !self.streams.contains_key(&point.stream)
            || is_seen(&self.host)
            || self.streams.get(&stream).is_some_and(|count| is_seen(&count.seen))
    }

    pub(crate) fn record_event(&mut self, stream: u64, event: u64) {
        let seen = self.streams.get(&stream).map(|count| count.seen.clone()).unwrap_or_default();
        self.events.insert(event, seen);
    }

    pub(crate) fn wait_event(&mut self, stream: u64, event: u64) {
        if let (Some(count), Some(seen)) = (self.streams.get_mut(&stream), self.events.get(&event)) {
            join_clocks(&mut count.seen, seen);
        }
    }

    /// The host has seen all work of a stream done.
    pub(crate) fn finish_stream(&mut self, stream: u64) {
        if let Some(count) = self.streams.get(&stream) {
            join_clocks(&mut self.host, &count.seen);
        }
    }

    /// The host has seen an event happen.
    pub(crate) fn finish_event(&mut self, event: u64) {
        if let Some(seen) = self.events.get(&event) {
            join_clocks(&mut self.host, seen);
        }
    }

    /// The host has seen all work of a device done.
    pub(crate) fn finish_device(&mut self, device: u32) {
        for count in self.streams.values().filter(|count| count.device == device) {
            join_clocks(&mut self.host, &count.seen);
        }
    }

    /// What comes before the next work of a stream, for a callback that is added now.
    pub(crate) fn clock_of(&self, stream: u64) -> StreamClock {
        self.streams.get(&stream).map(|count| count.seen.clone()).unwrap_or_default()
    }

    /// The host has seen the work that a clock counts done.
    pub(crate) fn finish_clock(&mut self, clock: &StreamClock) {
        join_clocks(&mut self.host, clock);
    }
}

#[cfg(test)]
mod tests {
    use super::{HOST, StreamOrder};

    #[test]
    fn only_waits_and_synchronization_order_the_work_of_two_streams() {
        let mut order = StreamOrder::default();
        order.add_stream(1, 0);
        order.add_stream(2, 0);
        let first = order.add_work(1);
        assert!(order.is_before(first, 1) && !order.is_before(first, 2) && !order.is_before(first, HOST));
        order.record_event(1, 9);
        let later = order.add_work(1);
        order.wait_event(2, 9);
        assert!(order.is_before(first, 2) && !order.is_before(first, HOST));
        assert!(!order.is_before(later, 2), "the event came before it");
        order.finish_event(9);
        assert!(order.is_before(first, HOST) && !order.is_before(later, HOST));
        order.finish_device(0);
        assert!(order.is_before(later, HOST) && order.is_before(later, 2));
    }

    #[test]
    fn a_wait_passes_on_what_the_other_stream_waited_for() {
        let mut order = StreamOrder::default();
        for stream in 1..=3 {
            order.add_stream(stream, 0);
        }
        let first = order.add_work(1);
        order.record_event(1, 8);
        order.wait_event(2, 8);
        order.add_work(2);
        order.record_event(2, 9);
        order.wait_event(3, 9);
        assert!(order.is_before(first, 3));
    }

    #[test]
    fn an_event_that_was_never_recorded_orders_nothing() {
        let mut order = StreamOrder::default();
        order.add_stream(1, 0);
        order.add_stream(2, 0);
        let work = order.add_work(1);
        order.wait_event(2, 9);
        order.finish_event(9);
        assert!(!order.is_before(work, 2));
    }
}
