/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel for ONNX's `Add`: element by element, with broadcasting, for five types.
 *
 * The constraints are at the end of the file. The host calls `run` only with operands that meet them. */
#include "custom_cpu.h"
#include "half.h"

enum { MOST_DIMS = 16 };

/* ------------------------------------------------------------------------------------------------------------------
 * One row: the elements along the last dimension. Steps are in bytes; a step of 0 repeats one element. Both elements are
 * read before the sum is written, so the sum may overwrite either operand in place. */

struct steps {
    int64_t left, right, sum;
};

typedef void add_row(const char *left, const char *right, char *sum, struct steps step, int64_t count);

#define ADD_ROW(name, element, add)                                                                         \
    static void name(const char *left, const char *right, char *sum, struct steps step, int64_t count) {    \
        for (int64_t i = 0; i < count; i++) {                                                               \
            const element a = *(const element *)(const void *)(left + i * step.left);                       \
            const element b = *(const element *)(const void *)(right + i * step.right);                     \
            *(element *)(void *)(sum + i * step.sum) = add(a, b);                                           \
        }                                                                                                   \
    }

#define PLUS(a, b) ((a) + (b))

/* The significand of a float has more than twice the bits of that of a half, so rounding the float sum again yields the
 * correctly rounded half. */
#define HALF_PLUS(a, b) half_of_float(float_of_half(a) + float_of_half(b))

/* Signed integers must wrap around, which C guarantees only for unsigned types; the bits are the same. */
ADD_ROW(add_row_i32, uint32_t, PLUS)
ADD_ROW(add_row_i64, uint64_t, PLUS)
ADD_ROW(add_row_f16, uint16_t, HALF_PLUS)
ADD_ROW(add_row_f32, float, PLUS)
ADD_ROW(add_row_f64, double, PLUS)

/* ------------------------------------------------------------------------------------------------------------------
 * All rows: the loops over the other dimensions of the sum. */

struct plan {
    add_row *row;
    int64_t element_size;
    uint64_t rank;
    int64_t dims[MOST_DIMS];
    struct steps steps[MOST_DIMS];
};

static void add_from(const struct plan *plan, uint64_t dim, const char *left, const char *right, char *sum) {
    const struct steps step = plan->steps[dim];
    if (dim + 1 == plan->rank) {
        plan->row(left, right, sum, step, plan->dims[dim]);
        return;
    }
    for (int64_t i = 0; i < plan->dims[dim]; i++) {
        add_from(plan, dim + 1, left + i * step.left, right + i * step.right, sum + i * step.sum);
    }
}

/* For each dimension of `sum`, the step in `operand` from one index to the next, in bytes. Shapes are aligned at their last
 * dimension; a dimension that is missing or has size 1 is repeated. */
static oarlock_error broadcast(const oarlock_tensor *operand, const oarlock_tensor *sum, int64_t element_size,
    int64_t steps[MOST_DIMS]) {
    const uint64_t missing = sum->dims_count - operand->dims_count;
    int64_t contiguous = element_size;
    OARLOCK_ENFORCE_LE(operand->dims_count, sum->dims_count, OARLOCK_CODE_INVALID_ARGUMENT,
        "an operand has more dimensions than the sum");
    for (uint64_t i = operand->dims_count; i-- > 0;) {
        const int64_t size = operand->dims[i];
        const int64_t step = operand->strides_count > 0 ? operand->strides[i] * element_size : contiguous;
        contiguous *= size;
        if (size != 1) {
            OARLOCK_ENFORCE_EQ(size, sum->dims[missing + i], OARLOCK_CODE_INVALID_ARGUMENT,
                "dimension %llu of an operand does not broadcast to the sum", (unsigned long long)i);
            steps[missing + i] = step;
        }
    }
    return 0;
}

static oarlock_error choose_row(oarlock_dtype dtype, struct plan *plan) {
    switch (dtype) {
    case OARLOCK_DTYPE_I32: plan->row = add_row_i32; plan->element_size = 4; return 0;
    case OARLOCK_DTYPE_I64: plan->row = add_row_i64; plan->element_size = 8; return 0;
    case OARLOCK_DTYPE_F16: plan->row = add_row_f16; plan->element_size = 2; return 0;
    case OARLOCK_DTYPE_F32: plan->row = add_row_f32; plan->element_size = 4; return 0;
    case OARLOCK_DTYPE_F64: plan->row = add_row_f64; plan->element_size = 8; return 0;
    default: return OARLOCK_FAIL(OARLOCK_CODE_UNIMPLEMENTED, "expected i32, i64, f16, f32 or f64, received %u", dtype);
    }
}

static oarlock_error run(void *context, void *state, const oarlock_call *call) {
    struct plan plan = {.rank = 1, .dims = {1}};
    int64_t left_steps[MOST_DIMS] = {0}, right_steps[MOST_DIMS] = {0}, sum_steps[MOST_DIMS] = {0};
    const oarlock_tensor *left, *right, *sum;
    (void)context;
    (void)state;
    OARLOCK_ENFORCE_EQ(call->inputs_count, 2, OARLOCK_CODE_INVALID_ARGUMENT, "Add takes two inputs");
    OARLOCK_ENFORCE_EQ(call->outputs_count, 1, OARLOCK_CODE_INVALID_ARGUMENT, "Add has one output");
    left = call->inputs[0];
    right = call->inputs[1];
    sum = call->outputs[0];
    OARLOCK_ENFORCE_LE(sum->dims_count, MOST_DIMS, OARLOCK_CODE_INVALID_ARGUMENT, "the sum has too many dimensions");
    OARLOCK_ENFORCE(left->dtype == sum->dtype && right->dtype == sum->dtype, OARLOCK_CODE_INVALID_ARGUMENT,
        "expected one dtype, received %u + %u = %u", left->dtype, right->dtype, sum->dtype);
    OARLOCK_TRY(choose_row(sum->dtype, &plan));
    OARLOCK_TRY(broadcast(left, sum, plan.element_size, left_steps));
    OARLOCK_TRY(broadcast(right, sum, plan.element_size, right_steps));
    OARLOCK_TRY(broadcast(sum, sum, plan.element_size, sum_steps));
    if (oarlock_element_count(sum) == 0) {
        return 0;
    }
    /* A scalar keeps the one dimension of size 1 that the plan starts with. */
    for (uint64_t i = 0; i < sum->dims_count; i++) {
        plan.dims[i] = sum->dims[i];
        plan.steps[i] = (struct steps){.left = left_steps[i], .right = right_steps[i], .sum = sum_steps[i]};
        plan.rank = i + 1;
    }
    add_from(&plan, 0, oarlock_data(left), oarlock_data(right), oarlock_data(sum));
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The kernel's constraints. An operand that is not declared `STRIDED` is contiguous: the host copies it if necessary. */

#define OPERAND(operand_name)                                                                                 \
    {                                                                                                         \
        OARLOCK_HEADER(oarlock_operand),                                                                      \
        .name = OARLOCK_STR(operand_name),                                                                    \
        .dtypes = OARLOCK_DTYPE_SET_I32 | OARLOCK_DTYPE_SET_I64 | OARLOCK_DTYPE_SET_F16 |                     \
            OARLOCK_DTYPE_SET_F32 | OARLOCK_DTYPE_SET_F64,                                                    \
        .dtype_group = 1, /* all operands with this number have one dtype */                                  \
        .rank_max = MOST_DIMS,                                                                                \
        .bits = OARLOCK_OPERAND_FLAGS_STRIDED,                                                                \
    }

static const oarlock_operand operand_a = OPERAND("A"), operand_b = OPERAND("B"), operand_c = OPERAND("C");
static const oarlock_operand *const add_inputs[] = {&operand_a, &operand_b};
static const oarlock_operand *const add_outputs[] = {&operand_c};
static const oarlock_in_place add_in_place[] = {{.output = 0, .input = 0}, {.output = 0, .input = 1}};

static const oarlock_kernel add = {
    OARLOCK_HEADER(oarlock_kernel),
    .op = OARLOCK_STR("Add"),
    .version_min = 7, /* broadcasting works as it does since version 7; 0 as the last one means all later ones */
    .score = 100,
    .bits = OARLOCK_KERNEL_FLAGS_DETERMINISTIC,
    .inputs = add_inputs,
    .inputs_count = 2,
    .outputs = add_outputs,
    .outputs_count = 1,
    .in_place = add_in_place,
    .in_place_count = 2,
    .run = run,
};

static const oarlock_kernel *const kernels[] = {&add};

const oarlock_kernel_table custom_cpu_kernels = {
    OARLOCK_TABLE(oarlock_kernel_table),
    .kernels = kernels,
    .kernels_count = 1,
};
