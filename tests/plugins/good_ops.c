/* Good: an op in a domain of its own for the CPU, written with `oarlock/op.h`. */
#include "oarlock/op.h"

static oarlock_error run(void *context, void *state, const oarlock_call *call) {
    double factor = 2;
    const uint64_t count = oarlock_element_count(call->inputs[0]);
    const float *const x = oarlock_data(call->inputs[0]);
    float *const y = oarlock_data(call->outputs[0]);
    (void)context;
    (void)state;
    OARLOCK_TRY(oarlock_read_float(call, "factor", &factor));
    for (uint64_t i = 0; i < count; i++) {
        y[i] = (float)(factor * (double)x[i]);
    }
    return 0;
}

OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OP(times, "test.ops", OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), oarlock_infer_like_first, run);
OARLOCK_EXTENSION(&times_op);
