//! Failures of calls that nobody waits for, until the next call that reports them (rule A-2).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::wire::failure::WireFailure;
use crate::wire::generated as slots;
use crate::wire::header::{FENCE, RequestHeader};

/// Where a failure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FailurePlace {
    Stream(u64),
    /// By an event that was recorded after the failure.
    Event(u64),
    /// By the fence of a lane, at the end of a copy in pieces.
    Lane(usize),
}

/// The first failure at each place.
#[derive(Debug, Default)]
pub(crate) struct DeferredFailures {
    has_any: AtomicBool,
    places: Mutex<BTreeMap<FailurePlace, WireFailure>>,
}

impl DeferredFailures {
    /// What a call returns, whose own failure is `own`: a posted call nothing, a call that synchronizes also the failures of
    /// earlier posted calls.
    pub(crate) fn settle_call(
        &self,
        lane: usize,
        header: &RequestHeader,
        own: Option<WireFailure>,
    ) -> Option<WireFailure> {
        if !header.is_posted {
            return own.or_else(|| self.take_reported(lane, header));
        }
        let is_record = header.slot == slots::ASYNC_EVENT_RECORD;
        if own.is_none() && !(is_record && self.has_any.load(Ordering::Acquire)) {
            return None;
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = FailurePlace::Stream(header.stream);
        if let Some(failure) = own {
            let place = if header.stream == 0 { FailurePlace::Lane(lane) } else { stream };
            places.entry(place).or_insert(failure);
            self.has_any.store(true, Ordering::Release);
        }
        if is_record {
            let event = FailurePlace::Event(header.event);
            match places.get(&stream).cloned() {
                Some(failure) => places.insert(event, failure),
                None => places.remove(&event),
            };
        }
        None
    }

    fn take_reported(&self, lane: usize, header: &RequestHeader) -> Option<WireFailure> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        let (place, is_report) = match header.slot {
            FENCE => (FailurePlace::Lane(lane), true),
            slots::ASYNC_STREAM_SYNCHRONIZE => (FailurePlace::Stream(header.stream), true),
            slots::ASYNC_EVENT_SYNCHRONIZE => (FailurePlace::Event(header.event), true),
            slots::ASYNC_STREAM_DESTROY => (FailurePlace::Stream(header.stream), false),
            slots::ASYNC_EVENT_DESTROY => (FailurePlace::Event(header.event), false),
            _ => return None,
        };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let found = places.remove(&place);
        self.has_any.store(!places.is_empty(), Ordering::Release);
        found.filter(|_| is_report)
    }

    /// The failure that a callback of a stream is told.
    pub(crate) fn stream_failure(&self, stream: u64) -> Option<WireFailure> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&FailurePlace::Stream(stream)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_of_a_posted_call_is_reported_once_by_its_stream_and_by_a_later_event() {
        let deferred = DeferredFailures::default();
        let posted = |slot, event| RequestHeader { slot, is_posted: true, stream: 5, event };
        let waits = |slot, stream, event| RequestHeader { slot, is_posted: false, stream, event };
        let fill = posted(slots::ASYNC_MEMORY_SET_ASYNC, 0);
        let record = |event| posted(slots::ASYNC_EVENT_RECORD, event);
        let (first, second) = (WireFailure::fatal("first"), WireFailure::fatal("second"));
        assert_eq!(deferred.settle_call(0, &record(8), None), None);
        assert_eq!(deferred.settle_call(0, &fill, Some(first.clone())), None);
        assert_eq!(deferred.settle_call(0, &fill, Some(second)), None);
        assert_eq!(deferred.settle_call(0, &record(9), None), None);
        let ask = |header: RequestHeader| deferred.settle_call(1, &header, None);
        assert_eq!(ask(waits(slots::ASYNC_EVENT_SYNCHRONIZE, 0, 8)), None, "recorded before the failure");
        assert_eq!(ask(waits(slots::ASYNC_STREAM_SYNCHRONIZE, 6, 0)), None, "another stream");
        assert_eq!(deferred.stream_failure(5), Some(first.clone()));
        assert_eq!(ask(waits(slots::ASYNC_EVENT_SYNCHRONIZE, 0, 9)), Some(first.clone()));
        assert_eq!(ask(waits(slots::ASYNC_STREAM_SYNCHRONIZE, 5, 0)), Some(first));
        assert_eq!(ask(waits(slots::ASYNC_STREAM_SYNCHRONIZE, 5, 0)), None);
    }
}
