// A layer: a plugin that stands between the host and other plugins. This one counts how often each kernel runs.
//
// It hands out a table of its own for the tables that it wraps, and passes on what it does not know (L-1).
#include <atomic>
#include <memory>
#include <vector>

#include "oarlock/plugin.h"

namespace {

/// A kernel as the host sees it, the kernel below, and the count.
struct CountedKernel {
    /// A slot that is empty below stays empty. A newer kernel has more fields than ours, which we cannot wrap and leave out: our
    /// record says with its size that it has no more.
    explicit CountedKernel(const oarlock_kernel &below);

    oarlock_kernel record;
    const oarlock_kernel *next;
    std::atomic<uint64_t> runs{0};
};

/// Calls a slot of the kernel below with the context from there: a kernel's functions get the context of the kernel, which is
/// ours.
template <auto Slot, class... Arguments>
oarlock_error pass(void *context, Arguments... arguments) {
    const oarlock_kernel *next = static_cast<CountedKernel *>(context)->next;
    return (next->*Slot)(next->context, arguments...);
}

/// Any thread may be here, several at once (K-4).
oarlock_error run(void *context, void *state, const oarlock_call *call) {
    static_cast<CountedKernel *>(context)->runs++;
    return pass<&oarlock_kernel::run>(context, state, call);
}

CountedKernel::CountedKernel(const oarlock_kernel &below) : record(oarlock::make<oarlock_kernel>()), next(&below) {
    memcpy(&record, next, next->size < sizeof record ? next->size : sizeof record);
    record.size = sizeof record;
    record.next = nullptr;
    record.context = this;
    const auto keep_empty = [](auto below_slot, auto ours) { return below_slot == nullptr ? nullptr : ours; };
    record.supports = keep_empty(next->supports, pass<&oarlock_kernel::supports, const oarlock_call *>);
    record.infer = keep_empty(next->infer, pass<&oarlock_kernel::infer, const oarlock_call *>);
    record.workspace = keep_empty(next->workspace, pass<&oarlock_kernel::workspace, const oarlock_call *, uint64_t *>);
    record.prepare = keep_empty(next->prepare, pass<&oarlock_kernel::prepare, const oarlock_call *, void **>);
    record.run = keep_empty(next->run, run);
    record.release = keep_empty(next->release, pass<&oarlock_kernel::release, void *>);
}

struct Wrapper {
    explicit Wrapper(const oarlock_kernel_table &below) : table(oarlock::make_table<oarlock_kernel_table>()) {
        for (uint64_t i = 0; i < below.kernels_count; i++) {
            kernels.push_back(std::make_unique<CountedKernel>(*below.kernels[i]));
            records.push_back(&kernels.back()->record);
        }
        table.kernels = records.data();
        table.kernels_count = records.size();
    }

    oarlock_kernel_table table;
    std::vector<std::unique_ptr<CountedKernel>> kernels;
    std::vector<const oarlock_kernel *> records;
};

void wrap(oarlock_table_kind kind, oarlock_str, void *next_context, void *next_table, void **wrapped_context,
    void **wrapped_table) {
    *wrapped_context = next_context;
    *wrapped_table = next_table;
    if (kind == OARLOCK_TABLE_KIND_KERNEL) {
        auto *wrapper = new Wrapper(*static_cast<oarlock_kernel_table *>(next_table));
        *wrapped_context = wrapper;
        *wrapped_table = &wrapper->table;
    }
}

/// A plugin prints nothing; what a layer logs as `info` reaches the user.
void unwrap(oarlock_table_kind, void *wrapped_context, void *) {
    const std::unique_ptr<Wrapper> wrapper(static_cast<Wrapper *>(wrapped_context));
    for (const std::unique_ptr<CountedKernel> &kernel : wrapper->kernels) {
        if (kernel->runs > 0) {
            oarlock_log(OARLOCK_LOG_LEVEL_INFO, "runs of `%.*s`: %llu", static_cast<int>(kernel->record.op.size),
                kernel->record.op.data, static_cast<unsigned long long>(kernel->runs));
        }
    }
}

constexpr oarlock_layer_table layer_table = [] {
    auto table = oarlock::make_table<oarlock_layer_table>();
    table.wrap = oarlock::slot<wrap>;
    table.unwrap = oarlock::slot<unwrap>;
    return table;
}();

/// A host may call this at any time and more than once (E-3).
oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock::str("sample-npu");
    plugin->version = oarlock::str("0.1.0");
    plugin->vendor = oarlock::str("Sample Vendor");
    plugin->package = oarlock::str("oarlock-sample-npu");
    plugin->layer = &layer_table;
    return 0;
}

} // namespace

OARLOCK_PLUGIN(describe);
