// The profile `async`: streams and events. A stream is a thread here; with a driver that has queues of its own, it is one.

#include "sample_npu.h"

namespace sample_npu {

HandleTable<Stream> streams;
HandleTable<Event> events;

Stream::Stream() : thread_([this] { work(); }) {}

/// Waits for the work in the stream.
Stream::~Stream() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_closed_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Stream::add(Work work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(work));
    changed_.notify_all();
}

void Stream::work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
        if (waiting_.empty()) {
            return;
        }
        Work next = std::exchange(waiting_.front(), nullptr);
        waiting_.pop_front();
        is_busy_ = true;
        Failure failure = failure_;
        lock.unlock();
        try {
            next(failure);
        } catch (...) {
            failure = std::current_exception();
        }
        next = nullptr; // lets go of what the work kept, before anybody hears that it is done
        lock.lock();
        failure_ = failure;
        is_busy_ = false;
        changed_.notify_all();
    }
}

bool Stream::is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.empty() && !is_busy_;
}

Failure Stream::synchronize() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
    return std::exchange(failure_, nullptr);
}

void rethrow(const Failure &failure) {
    if (failure) {
        std::rethrow_exception(failure);
    }
}

uint64_t Event::next_turn() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++recorded_;
}

uint64_t Event::current_turn() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return recorded_;
}

void Event::happen(uint64_t turn, Failure failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    happened_ = turn > happened_ ? turn : happened_;
    failure_ = failure;
    changed_.notify_all();
}

bool Event::has_happened() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return happened_ >= recorded_;
}

void Event::wait(uint64_t turn) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return happened_ >= turn; });
    rethrow(failure_);
}

void launch(oarlock_stream queue, std::function<void()> work) {
    if (queue == 0) {
        work();
        return;
    }
    streams.find(queue)->add([work = std::move(work)](Failure failure) {
        if (!failure) {
            work();
        }
    });
}

namespace {

void stream_create(uint32_t device, int32_t, oarlock_stream *queue) {
    check(device);
    *queue = streams.add(std::make_shared<Stream>());
}

void stream_destroy(uint32_t device, oarlock_stream queue) {
    check(device);
    streams.remove(queue);
}

void stream_query(uint32_t device, oarlock_stream queue, uint32_t *done) {
    check(device);
    *done = queue == 0 || streams.find(queue)->is_idle();
}

void stream_synchronize(uint32_t device, oarlock_stream queue) {
    check(device);
    if (queue != 0) {
        rethrow(streams.find(queue)->synchronize());
    }
}

/// Returns without waiting; the callback runs exactly once, on a thread of the plugin (T-2).
void stream_add_callback(uint32_t device, oarlock_stream queue, oarlock_stream_reached reached, void *user) {
    const auto call = [=](Failure failure) {
        const auto report = [&] { return rethrow(failure), oarlock_error{0}; };
        reached(device, queue, user, oarlock::guard(report));
    };
    check(device);
    if (queue == 0) {
        std::thread(call, Failure()).detach();
    } else {
        streams.find(queue)->add(call);
    }
}

void stream_wait_event(uint32_t device, oarlock_stream queue, oarlock_event point) {
    check(device);
    // The work keeps the event, which may be destroyed meanwhile.
    const std::shared_ptr<Event> event = events.find(point);
    launch(queue, [event, turn = event->current_turn()] { event->wait(turn); });
}

void event_create(uint32_t device, oarlock_event *point) {
    check(device);
    *point = events.add(std::make_shared<Event>());
}

void event_destroy(uint32_t device, oarlock_event point) {
    check(device);
    events.remove(point);
}

void event_record(uint32_t device, oarlock_stream queue, oarlock_event point) {
    check(device);
    const std::shared_ptr<Event> event = events.find(point);
    const std::shared_ptr<Stream> stream = queue == 0 ? nullptr : streams.find(queue);
    const uint64_t turn = event->next_turn();
    if (stream == nullptr) {
        event->happen(turn, nullptr);
    } else {
        stream->add([event, turn](Failure failure) { event->happen(turn, failure); });
    }
}

void event_query(uint32_t device, oarlock_event point, uint32_t *done) {
    check(device);
    *done = events.find(point)->has_happened();
}

void event_synchronize(uint32_t device, oarlock_event point) {
    check(device);
    const std::shared_ptr<Event> event = events.find(point);
    event->wait(event->current_turn());
}

} // namespace

/// The asynchronous copies stay empty: the host then synchronizes the stream and uses those of `core`.
const oarlock_async_table async_table = [] {
    auto table = oarlock::make_table<oarlock_async_table>();
    table.stream_create = oarlock::slot<stream_create>;
    table.stream_destroy = oarlock::slot<stream_destroy>;
    table.stream_query = oarlock::slot<stream_query>;
    table.stream_synchronize = oarlock::slot<stream_synchronize>;
    table.stream_add_callback = oarlock::slot<stream_add_callback>;
    table.stream_wait_event = oarlock::slot<stream_wait_event>;
    table.event_create = oarlock::slot<event_create>;
    table.event_destroy = oarlock::slot<event_destroy>;
    table.event_record = oarlock::slot<event_record>;
    table.event_query = oarlock::slot<event_query>;
    table.event_synchronize = oarlock::slot<event_synchronize>;
    return table;
}();

} // namespace sample_npu
