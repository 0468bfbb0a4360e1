// Good: an op whose attributes are declared, for all types of elements that a dispatch lists.
#define OARLOCK_EXTENSION_NAME "declared-cpp"
#include "oarlock/op.h"

namespace {

template <class T>
void scale(const oarlock_call *call, double factor) {
    const T *x = static_cast<const T *>(oarlock_data(call->inputs[0]));
    T *y = static_cast<T *>(oarlock_data(call->outputs[0]));
    for (uint64_t i = 0; i < oarlock_element_count(call->inputs[0]); i++) {
        y[i] = static_cast<T>(static_cast<double>(x[i]) * factor);
    }
}

// x times all the numbers that the attributes hold: each kind of attribute counts.
oarlock_error run(void *, void *, const oarlock_call *call) {
    int doubles = 0;
    int64_t small = 1, large = 1;
    double factor = 1, more[4] = {1, 1, 1, 1};
    const int64_t *sizes = nullptr;
    const oarlock_str *names = nullptr;
    oarlock_str name = oarlock_string("");
    uint64_t more_count = 0, sizes_count = 0, names_count = 0;
    OARLOCK_TRY(oarlock_read_bool(call, "doubles", &doubles));
    OARLOCK_TRY(oarlock_read_int(call, "small", &small));
    OARLOCK_TRY(oarlock_read_int(call, "large", &large));
    OARLOCK_TRY(oarlock_read_float(call, "factor", &factor));
    OARLOCK_TRY(oarlock_read_string(call, "name", &name));
    OARLOCK_TRY(oarlock_read_floats(call, "more", more, 4, &more_count));
    OARLOCK_TRY(oarlock_read_ints(call, "sizes", &sizes, &sizes_count));
    OARLOCK_TRY(oarlock_read_strings(call, "names", &names, &names_count));
    factor *= (doubles ? 2 : 1) * static_cast<double>(small * large) * more[0] * more[1] * more[2] * more[3];
    for (uint64_t i = 0; i < sizes_count; i++) {
        factor *= static_cast<double>(sizes[i]);
    }
    factor *= oarlock_equals(name, "thrice") ? 3 : 1;
    factor *= names_count == 2 && oarlock_equals(names[1], "five") ? 5 : 1;
    return OARLOCK_DISPATCH_REALS(call->inputs[0]->dtype, "scale", { scale<T>(call, factor); });
}

constexpr oarlock_dtype_set REALS = OARLOCK_DTYPE_SET_F32 | OARLOCK_DTYPE_SET_F64 | OARLOCK_DTYPE_SET_I8 | OARLOCK_DTYPE_SET_U16 |
    OARLOCK_DTYPE_SET_I64 | OARLOCK_DTYPE_SET_BOOL;

OARLOCK_OPERAND(x, REALS, 1);
OARLOCK_OPERAND(y, REALS, 1);
OARLOCK_ATTRIBUTES(scale_attributes, {"factor", OARLOCK_DECLARED_FLOAT, 1}, {"doubles", OARLOCK_DECLARED_BOOL, 0},
    {"small", OARLOCK_DECLARED_INT32, 0}, {"large", OARLOCK_DECLARED_INT64, 0}, {"name", OARLOCK_DECLARED_STRING, 0},
    {"counts", OARLOCK_DECLARED_INT32S, 0}, {"sizes", OARLOCK_DECLARED_INT64S, 0}, {"more", OARLOCK_DECLARED_FLOATS, 0},
    {"names", OARLOCK_DECLARED_STRINGS, 0});
OARLOCK_KERNEL(scale, "scale", "test.declared", "cpu", OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), (), scale_attributes,
    oarlock_infer_like_first, run);

} // namespace

OARLOCK_EXTENSION(&scale_op);
