/* x / (1 + exp(-sharpness x)), element by element. */
#include <math.h>

#include "oarlock/op.h"

static oarlock_error swish_run(void *context, void *state, const oarlock_call *call) {
    double sharpness = 1;
    const float *x = oarlock_data(call->inputs[0]);
    float *y = oarlock_data(call->outputs[0]);
    (void)context, (void)state;
    OARLOCK_TRY(oarlock_read_float(call, "sharpness", &sharpness));
    for (uint64_t i = 0; i < oarlock_element_count(call->inputs[0]); i++) {
        y[i] = x[i] / (1 + expf((float)-sharpness * x[i]));
    }
    return 0;
}

OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OP(swish, "example", OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), oarlock_infer_like_first, swish_run);
OARLOCK_EXTENSION(&swish_op);
