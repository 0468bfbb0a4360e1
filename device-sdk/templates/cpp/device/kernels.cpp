// The kernels. Each says which operands it takes, and the host calls it with no others.
//
// All are asynchronous: they put their work into the stream of the call and return. What `call` and `state` point to holds
// until then, so the work takes along what it needs. A real driver would enqueue a launch here.

#include "sample_npu.h"

#include <cmath>
#include <vector>

namespace sample_npu {
namespace {

/// What work keeps of an operand.
struct Operand {
    explicit Operand(const oarlock_tensor *tensor)
        : range(tensor->block, tensor->offset, tensor->size_in_bytes), dims(tensor->dims, tensor->dims + tensor->dims_count),
          count(oarlock_element_count(tensor)) {}

    float *data() const {
        return reinterpret_cast<float *>(range.data);
    }

    uint64_t dim(size_t index) const {
        return static_cast<uint64_t>(dims[index]);
    }

    Range range;
    std::vector<int64_t> dims;
    uint64_t count;
};

/// The place in `from` of element `index` of `to`: a dimension of size 1 is repeated.
uint64_t broadcast(const Operand &from, const Operand &to, uint64_t index) {
    const size_t missing = to.dims.size() - from.dims.size();
    uint64_t place = 0, step = 1;
    for (size_t i = to.dims.size(); i-- > missing;) {
        place += index % to.dim(i) % from.dim(i - missing) * step;
        step *= from.dim(i - missing);
        index /= to.dim(i);
    }
    return place;
}

template <float (*Compute)(float, float)>
void run_binary(void *, const oarlock_call *call) {
    const Operand a(call->inputs[0]), b(call->inputs[1]), c(call->outputs[0]);
    launch(call->queue, [=] {
        for (uint64_t i = 0; i < c.count; i++) {
            c.data()[i] = Compute(a.data()[broadcast(a, c, i)], b.data()[broadcast(b, c, i)]);
        }
    });
}

float plus(float a, float b) {
    return a + b;
}

float minus(float a, float b) {
    return a - b;
}

float times(float a, float b) {
    return a * b;
}

} // namespace

/// The output may use the memory of the input, as the record says.
void run_relu(void *, const oarlock_call *call) {
    const Operand x(call->inputs[0]), y(call->outputs[0]);
    launch(call->queue, [=] {
        for (uint64_t i = 0; i < x.count; i++) {
            y.data()[i] = x.data()[i] < 0 ? 0 : x.data()[i];
        }
    });
}

namespace {

/// B by columns, as the chip reads it.
using Packed = std::shared_ptr<const std::vector<float>>;

Packed pack(const Operand &b) {
    std::vector<float> packed(b.count);
    for (uint64_t i = 0; i < b.count; i++) {
        packed[i % b.dim(1) * b.dim(0) + i / b.dim(1)] = b.data()[i];
    }
    return std::make_shared<const std::vector<float>>(std::move(packed));
}

/// Runs once for each call site. What is constant may be packed; like all operands it lies in the memory of the device.
/// Several threads may use the state at once (K-4), and work in a stream may outlive it: so it is shared.
oarlock_error prepare_matmul(void *, const oarlock_call *call, void **state) {
    return oarlock::guard([&]() -> oarlock_error {
        const bool is_constant = (call->inputs[1]->bits & OARLOCK_TENSOR_FLAGS_CONSTANT) != 0;
        OARLOCK_TRY(oarlock_describe(call, is_constant ? "B packed" : "B as it is"));
        *state = is_constant ? new Packed(pack(Operand(call->inputs[1]))) : nullptr;
        return 0;
    });
}

void release_matmul(void *state) {
    delete static_cast<Packed *>(state);
}

void run_matmul(void *state, const oarlock_call *call) {
    const Operand a(call->inputs[0]), b(call->inputs[1]), y(call->outputs[0]);
    const Packed packed = state == nullptr ? nullptr : *static_cast<Packed *>(state);
    launch(call->queue, [=] {
        const Packed columns = packed == nullptr ? pack(b) : packed;
        const uint64_t depth = b.dim(0), width = b.dim(1);
        for (uint64_t i = 0; i < y.count; i++) {
            double sum = 0;
            for (uint64_t k = 0; k < depth; k++) {
                sum += double{a.data()[i / width * depth + k]} * double{(*columns)[i % width * depth + k]};
            }
            y.data()[i] = static_cast<float>(sum);
        }
    });
}

/// Declines calls that the operands alone do not rule out. An attribute with a default in the schema may be absent.
void supports_softmax(const oarlock_call *call) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, "axis");
    const int64_t axis = attribute == nullptr || attribute->ints_count == 0 ? -1 : attribute->ints[0];
    if (axis != -1 && axis + 1 != static_cast<int64_t>(call->inputs[0]->dims_count)) {
        OARLOCK_THROW(OARLOCK_CODE_UNIMPLEMENTED, "expected the last axis, received %d", static_cast<int>(axis));
    }
}

/// Scratch memory that the host allocates on the device: here for the sum of each row.
void workspace_softmax(const oarlock_call *call, uint64_t *size) {
    const oarlock_tensor *x = call->inputs[0];
    const uint64_t count = oarlock_element_count(x);
    *size = count == 0 ? 0 : count / static_cast<uint64_t>(x->dims[x->dims_count - 1]) * sizeof(float);
}

void run_softmax(void *, const oarlock_call *call) {
    const Operand x(call->inputs[0]), y(call->outputs[0]);
    uint64_t size = 0;
    workspace_softmax(call, &size);
    const Range scratch(call->workspace, call->workspace_offset, size);
    launch(call->queue, [=] {
        const uint64_t width = x.dims.empty() ? 1 : x.dim(x.dims.size() - 1);
        float *sums = reinterpret_cast<float *>(scratch.data);
        for (uint64_t row = 0; row < size / sizeof(float); row++) {
            const float *from = x.data() + row * width;
            float *to = y.data() + row * width;
            float largest = from[0];
            sums[row] = 0;
            for (uint64_t i = 0; i < width; i++) {
                largest = from[i] > largest ? from[i] : largest;
            }
            for (uint64_t i = 0; i < width; i++) {
                to[i] = std::exp(from[i] - largest);
                sums[row] += to[i];
            }
            for (uint64_t i = 0; i < width; i++) {
                to[i] /= sums[row];
            }
        }
    });
}

/// An operand of f32 with a number of dimensions from `rank_min` to `rank_max`.
constexpr oarlock_operand operand(uint32_t rank_min, uint32_t rank_max) {
    auto made = oarlock::make<oarlock_operand>();
    made.dtypes = OARLOCK_DTYPE_SET_F32;
    made.rank_min = rank_min;
    made.rank_max = rank_max;
    return made;
}

constexpr oarlock_operand numbers = operand(0, OARLOCK_RANK_ANY), matrix = operand(2, 2), rows = operand(1, OARLOCK_RANK_ANY);
constexpr const oarlock_operand *two_numbers[] = {&numbers, &numbers};
constexpr const oarlock_operand *two_matrices[] = {&matrix, &matrix};
constexpr const oarlock_operand *one_of_rows[] = {&rows};
constexpr oarlock_in_place first_in_first[] = {{0, 0}};

/// A kernel whose output is like its first input.
constexpr oarlock_kernel kernel(oarlock_str op, uint32_t since, const oarlock_operand *const *inputs, uint64_t inputs_count,
    oarlock_error (*run)(void *, void *, const oarlock_call *)) {
    auto made = oarlock::make<oarlock_kernel>();
    made.op = op;
    made.version_min = since;
    made.score = 100;
    made.bits = OARLOCK_KERNEL_FLAGS_ASYNCHRONOUS | OARLOCK_KERNEL_FLAGS_DETERMINISTIC;
    made.inputs = inputs;
    made.inputs_count = inputs_count;
    made.outputs = inputs;
    made.outputs_count = 1;
    made.run = run;
    return made;
}

constexpr oarlock_kernel add = kernel(oarlock::str("Add"), 7, two_numbers, 2, oarlock::slot<run_binary<plus>>);
constexpr oarlock_kernel sub = kernel(oarlock::str("Sub"), 7, two_numbers, 2, oarlock::slot<run_binary<minus>>);
constexpr oarlock_kernel mul = kernel(oarlock::str("Mul"), 7, two_numbers, 2, oarlock::slot<run_binary<times>>);

constexpr oarlock_kernel relu = [] {
    auto made = kernel(oarlock::str("Relu"), 6, two_numbers, 1, oarlock::slot<run_relu>);
    made.in_place = first_in_first;
    made.in_place_count = 1;
    return made;
}();

constexpr oarlock_kernel matmul = [] {
    auto made = kernel(oarlock::str("MatMul"), 1, two_matrices, 2, oarlock::slot<run_matmul>);
    made.prepare = prepare_matmul;
    made.release = oarlock::slot<release_matmul>;
    return made;
}();

constexpr oarlock_kernel softmax = [] {
    auto made = kernel(oarlock::str("Softmax"), 13, one_of_rows, 1, oarlock::slot<run_softmax>);
    made.supports = oarlock::slot<supports_softmax>;
    made.workspace = oarlock::slot<workspace_softmax>;
    return made;
}();

constexpr const oarlock_kernel *all_kernels[] = {&add, &sub, &mul, &relu, &matmul, &softmax};

} // namespace

const oarlock_kernel_table kernel_table = [] {
    auto table = oarlock::make_table<oarlock_kernel_table>();
    table.kernels = all_kernels;
    table.kernels_count = sizeof all_kernels / sizeof all_kernels[0];
    return table;
}();

} // namespace sample_npu
