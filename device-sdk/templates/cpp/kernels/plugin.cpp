// A plugin that brings kernels for a device of another plugin: here for `cpu`, whose memory the host may read and write.
//
// `Relu` competes with the kernel that the device has; `ScaledAdd` is an op of our own, so it says what its output looks like.
// The quoted rules, such as K-4, are those of the contract.
#include "oarlock/plugin.h"

namespace {

/// The host calls a kernel only with operands that fit its record: here contiguous ones, aligned to an element (K-5).
template <class Number>
Number *elements(const oarlock_tensor *tensor) {
    return static_cast<Number *>(oarlock_data(tensor));
}

template <class Number>
struct ReluLoop {
    const Number *from;
    Number *to;

    /// One part of the loop; the host's threads run the parts.
    static void part(void *user, uint64_t begin, uint64_t end, uint32_t) {
        const ReluLoop *loop = static_cast<ReluLoop *>(user);
        for (uint64_t i = begin; i < end; i++) {
            loop->to[i] = loop->from[i] < 0 ? 0 : loop->from[i];
        }
    }
};

template <class Number>
oarlock_error run_relu_of(const oarlock_call *call) {
    ReluLoop<Number> loop{elements<Number>(call->inputs[0]), elements<Number>(call->outputs[0])};
    return oarlock_parallel_for(oarlock_element_count(call->inputs[0]), 16384, ReluLoop<Number>::part, &loop);
}

/// Several threads may run a kernel at once (K-4), and it writes its output and nothing else (K-3).
oarlock_error run_relu(void *, void *, const oarlock_call *call) {
    return call->inputs[0]->dtype == OARLOCK_DTYPE_F64 ? run_relu_of<double>(call) : run_relu_of<float>(call);
}

/// The attribute `alpha`, which is 1 if it is absent: for an op of its own, a plugin states its defaults itself.
float alpha_of(const oarlock_call *call) {
    const oarlock_attribute *alpha = oarlock_find_attribute(call, "alpha");
    return alpha == nullptr || alpha->floats_count == 0 ? 1 : static_cast<float>(alpha->floats[0]);
}

/// Says what the output looks like. A dimension of -1 is not known yet.
oarlock_error infer_scaled_add(void *, const oarlock_call *call) {
    const oarlock_tensor *x = call->inputs[0], *y = call->inputs[1];
    OARLOCK_ENFORCE_EQ(x->dims_count, y->dims_count, OARLOCK_CODE_INVALID_ARGUMENT, "the inputs have different ranks");
    for (uint64_t i = 0; i < x->dims_count; i++) {
        OARLOCK_ENFORCE(x->dims[i] == y->dims[i] || x->dims[i] < 0 || y->dims[i] < 0, OARLOCK_CODE_INVALID_ARGUMENT,
            "expected inputs of one shape");
    }
    return oarlock_allocate_output(call, 0, x->dtype, x->dims, x->dims_count);
}

/// sum = x + alpha * y. What it throws becomes an error, since no exception may cross into the host.
void run_scaled_add(void *, const oarlock_call *call) {
    const float *x = elements<float>(call->inputs[0]), *y = elements<float>(call->inputs[1]);
    float *sum = elements<float>(call->outputs[0]);
    const float alpha = alpha_of(call);
    const uint64_t count = oarlock_element_count(call->outputs[0]);
    for (uint64_t i = 0; i < count; i++) {
        sum[i] = x[i] + alpha * y[i];
    }
}

/// Operands with the same group have the same dtype.
constexpr oarlock_operand operand(oarlock_dtype_set dtypes) {
    auto made = oarlock::make<oarlock_operand>();
    made.dtypes = dtypes;
    made.dtype_group = 1;
    made.rank_max = OARLOCK_RANK_ANY;
    return made;
}

constexpr oarlock_operand numbers = operand(OARLOCK_DTYPE_SET_F32 | OARLOCK_DTYPE_SET_F64);
constexpr oarlock_operand floats = operand(OARLOCK_DTYPE_SET_F32);
constexpr const oarlock_operand *one_of_numbers[] = {&numbers};
constexpr const oarlock_operand *two_floats[] = {&floats, &floats};
constexpr oarlock_in_place first_in_first[] = {{0, 0}};

constexpr oarlock_kernel relu = [] {
    auto made = oarlock::make<oarlock_kernel>();
    made.op = oarlock::str("Relu");
    made.device_type = oarlock::str("cpu");
    made.version_min = 6;
    made.score = 100;
    made.bits = OARLOCK_KERNEL_FLAGS_DETERMINISTIC;
    made.inputs = one_of_numbers;
    made.inputs_count = 1;
    made.outputs = one_of_numbers;
    made.outputs_count = 1;
    made.in_place = first_in_first;
    made.in_place_count = 1;
    made.run = run_relu;
    return made;
}();

constexpr oarlock_kernel scaled_add = [] {
    auto made = oarlock::make<oarlock_kernel>();
    made.op = oarlock::str("ScaledAdd");
    made.domain = oarlock::str("sample_npu");
    made.device_type = oarlock::str("cpu");
    made.version_min = 1;
    made.score = 100;
    made.bits = OARLOCK_KERNEL_FLAGS_DETERMINISTIC;
    made.inputs = two_floats;
    made.inputs_count = 2;
    made.outputs = two_floats;
    made.outputs_count = 1;
    made.infer = infer_scaled_add;
    made.run = oarlock::slot<run_scaled_add>;
    return made;
}();

constexpr const oarlock_kernel *all_kernels[] = {&relu, &scaled_add};

const oarlock_kernel_table kernel_table = [] {
    auto table = oarlock::make_table<oarlock_kernel_table>();
    table.kernels = all_kernels;
    table.kernels_count = sizeof all_kernels / sizeof all_kernels[0];
    return table;
}();

/// A host may call this at any time and more than once (E-3).
oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock::str("sample-npu");
    plugin->version = oarlock::str("0.1.0");
    plugin->vendor = oarlock::str("Sample Vendor");
    plugin->package = oarlock::str("oarlock-sample-npu");
    plugin->kernels = &kernel_table;
    return 0;
}

} // namespace

OARLOCK_PLUGIN(describe);
