/* Good: ops with optional operands and lists of them, one op for two types of device, outputs in the memory of inputs. */
#define OARLOCK_EXTENSION_NAME "declared-c"
#include "oarlock/op.h"

static oarlock_error negate(void *context, void *state, const oarlock_call *call) {
    const float *const x = oarlock_data(call->inputs[0]);
    float *const y = oarlock_data(call->outputs[0]);
    (void)context;
    (void)state;
    for (uint64_t i = 0; i < oarlock_element_count(call->inputs[0]); i++) {
        y[i] = -x[i];
    }
    return 0;
}

/* The memory of the simulated device is no memory of the host, so this only says that it was called. */
static oarlock_error negate_simulated(void *context, void *state, const oarlock_call *call) {
    (void)context;
    (void)state;
    return OARLOCK_FAIL(OARLOCK_CODE_UNAVAILABLE, "the kernel for device %u of `sim` was called", call->device);
}

/* The sum of all inputs after the first, plus the first if it is there. */
static oarlock_error total(void *context, void *state, const oarlock_call *call) {
    float *const y = oarlock_data(call->outputs[0]);
    (void)context;
    (void)state;
    for (uint64_t i = 0; i < oarlock_element_count(call->outputs[0]); i++) {
        y[i] = 0;
        for (uint64_t at = 0; at < call->inputs_count; at++) {
            if (oarlock_is_present(call->inputs[at])) {
                y[i] += ((const float *)oarlock_data(call->inputs[at]))[i];
            }
        }
    }
    return 0;
}

static oarlock_error infer_like_last(void *context, const oarlock_call *call) {
    const oarlock_tensor *last;
    (void)context;
    OARLOCK_ENFORCE_GT(call->inputs_count, 1, OARLOCK_CODE_INVALID_ARGUMENT, "`total` needs a term");
    last = call->inputs[call->inputs_count - 1];
    return oarlock_allocate_output(call, 0, last->dtype, last->dims, last->dims_count);
}

/* As many equal parts of a list as there are outputs. */
static oarlock_error split(void *context, void *state, const oarlock_call *call) {
    const float *const x = oarlock_data(call->inputs[0]);
    const uint64_t part = oarlock_element_count(call->inputs[0]) / call->outputs_count;
    (void)context;
    (void)state;
    for (uint64_t at = 0; at < call->outputs_count; at++) {
        memcpy(oarlock_data(call->outputs[at]), x + at * part, part * sizeof(float));
    }
    return 0;
}

static oarlock_error infer_parts(void *context, const oarlock_call *call) {
    const int64_t part = (int64_t)(oarlock_element_count(call->inputs[0]) / call->outputs_count);
    (void)context;
    for (uint32_t at = 0; at < call->outputs_count; at++) {
        OARLOCK_TRY(oarlock_allocate_output(call, at, call->inputs[0]->dtype, &part, 1));
    }
    return 0;
}

/* x times itself, by way of the runtime's own `MatMul`, and the sum of that along the axis in the attribute, by its `ReduceSum`. */
static oarlock_error square(void *context, void *state, const oarlock_call *call) {
    const oarlock_tensor *factors[2];
    const oarlock_tensor *summed[2];
    oarlock_tensor axes = *call->outputs[0];
    oarlock_attribute keep = {OARLOCK_HEADER(oarlock_attribute), OARLOCK_STR("keepdims"), OARLOCK_ATTRIBUTE_KIND_INT, 0, OARLOCK_NULL,
        0, OARLOCK_NULL, 0, OARLOCK_NULL, 0, OARLOCK_NULL, 0, OARLOCK_NULL, 0};
    const oarlock_attribute *attributes[] = {&keep};
    const int64_t no = 0, one = 1;
    int64_t axis = 0;
    (void)context;
    (void)state;
    OARLOCK_TRY(oarlock_read_int(call, "axis", &axis));
    factors[0] = factors[1] = call->inputs[0];
    OARLOCK_TRY(oarlock_run_op("", "MatMul", 0, factors, 2, OARLOCK_NULL, 0, call->outputs, 1));
    if (call->outputs_count == 1) {
        return 0;
    }
    keep.ints = &no;
    keep.ints_count = 1;
    axes.block = (oarlock_memory)(uintptr_t)&axis;
    axes.offset = 0;
    axes.size_in_bytes = sizeof axis;
    axes.dtype = OARLOCK_DTYPE_I64;
    axes.dims = &one;
    axes.dims_count = 1;
    axes.strides_count = 0;
    summed[0] = call->outputs[0];
    summed[1] = &axes;
    return oarlock_run_op("", "ReduceSum", 0, summed, 2, attributes, 1, call->outputs + 1, 1);
}

static oarlock_error infer_square(void *context, const oarlock_call *call) {
    const oarlock_tensor *x = call->inputs[0];
    (void)context;
    OARLOCK_ENFORCE_EQ(x->dims_count, 2, OARLOCK_CODE_INVALID_ARGUMENT, "`square` needs a matrix");
    OARLOCK_TRY(oarlock_allocate_output(call, 0, x->dtype, x->dims, 2));
    return call->outputs_count == 1 ? 0 : oarlock_allocate_output(call, 1, x->dtype, x->dims, 1);
}

OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND_WITH(start, OARLOCK_DTYPE_SET_F32, 0, OARLOCK_OPERAND_FLAGS_OPTIONAL);
OARLOCK_OPERAND_WITH(list, OARLOCK_DTYPE_SET_F32, 0, OARLOCK_OPERAND_FLAGS_VARIADIC);
OARLOCK_OPERAND_WITH(sums, OARLOCK_DTYPE_SET_F32, 0, OARLOCK_OPERAND_FLAGS_OPTIONAL);
OARLOCK_NO_ATTRIBUTES(none);
OARLOCK_KERNEL(negate_cpu, "negate", "test.declared", "cpu", OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), ({0, 0}), none,
    oarlock_infer_like_first, negate);
OARLOCK_KERNEL(negate_sim, "negate", "test.declared", "sim", OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), ({0, 0}), none,
    oarlock_infer_like_first, negate_simulated);
OARLOCK_KERNEL(total, "total", "test.declared", "cpu", 0, (&start, &list), (&y), (), none, infer_like_last, total);
OARLOCK_KERNEL(split, "split", "test.declared", "cpu", 0, (&x), (&list), (), none, infer_parts, split);
OARLOCK_ATTRIBUTES(square_attributes, {"axis", OARLOCK_DECLARED_INT64, 0});
OARLOCK_KERNEL(square, "square", "test.declared", "cpu", 0, (&x), (&y, &sums), (), square_attributes, infer_square, square);
OARLOCK_EXTENSION(&negate_cpu_op, &negate_sim_op, &total_op, &split_op, &square_op);
