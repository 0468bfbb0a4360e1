// The simulated chip. Replace it by calls of your driver.
//
// The quoted rules, such as M-2, are those of the contract: `oarlock plugin check` tries them.
#ifndef SAMPLE_NPU_H
#define SAMPLE_NPU_H

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "oarlock/plugin.h"

namespace sample_npu {

constexpr uint64_t MEMORY_SIZE = uint64_t{1} << 30;
constexpr uint32_t MEMORY_ALIGNMENT = 64;

/// A call for a device that is not in `device_list` fails (D-2).
void check(uint32_t device);

/// Things that the host knows by number. Numbers count from 1: no block, stream or event is 0.
template <class Thing>
class HandleTable {
public:
    uint64_t add(std::shared_ptr<Thing> thing) {
        const std::lock_guard<std::mutex> lock(mutex_);
        things_.emplace(++last_, std::move(thing));
        return last_;
    }

    std::shared_ptr<Thing> find(uint64_t handle) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = things_.find(handle);
        if (found == things_.end()) {
            OARLOCK_THROW(OARLOCK_CODE_NOT_FOUND, "expected a handle that is alive, received %d", static_cast<int>(handle));
        }
        return found->second;
    }

    /// The thing ends once nobody uses it any more.
    void remove(uint64_t handle) {
        const std::shared_ptr<Thing> thing = find(handle);
        const std::lock_guard<std::mutex> lock(mutex_);
        things_.erase(handle);
    }

    std::map<uint64_t, std::shared_ptr<Thing>> all() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return things_;
    }

private:
    std::mutex mutex_;
    std::map<uint64_t, std::shared_ptr<Thing>> things_;
    uint64_t last_ = 0;
};

/// A block of the chip's memory. The host only knows its number, and cannot look into it.
struct Block {
    explicit Block(uint64_t bytes);
    ~Block();
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    unsigned char *data;
    uint64_t size;
};

/// Bytes of a block, which they keep alive.
struct Range {
    /// The range lies in its block (M-2); an empty one needs none.
    Range(oarlock_memory handle, uint64_t offset, uint64_t size);
    unsigned char *data = nullptr;
    std::shared_ptr<Block> block;
};

/// Why the work of a stream failed, or null.
using Failure = std::exception_ptr;

/// Throws a failure that is not null.
void rethrow(const Failure &failure);

/// An event may be recorded again and again: each record is a turn. One that was never recorded has happened.
class Event {
public:
    uint64_t next_turn();
    uint64_t current_turn();
    void happen(uint64_t turn, Failure failure);
    bool has_happened();
    /// Throws the failure of the work before the turn.
    void wait(uint64_t turn);

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t recorded_ = 0, happened_ = 0;
    Failure failure_;
};

/// A thread that does its work in order.
class Stream {
public:
    /// Gets the failure of earlier work; what it throws is the failure of the stream.
    using Work = std::function<void(Failure)>;

    Stream();
    ~Stream();
    void add(Work work);
    bool is_idle();
    /// Waits for all work and returns its failure, which is forgotten then.
    Failure synchronize();

private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> waiting_;
    bool is_busy_ = false, is_closed_ = false;
    Failure failure_;
    std::thread thread_;
};

/// Adds work to a stream, which an earlier failure cancels; on stream 0, does it at once.
void launch(oarlock_stream queue, std::function<void()> work);

extern HandleTable<Block> blocks;
extern HandleTable<Stream> streams;
extern HandleTable<Event> events;
/// The kernel `Relu`.
void run_relu(void *, const oarlock_call *call);

extern const oarlock_core_table core_table;
extern const oarlock_async_table async_table;
extern const oarlock_kernel_table kernel_table;

} // namespace sample_npu

#endif
