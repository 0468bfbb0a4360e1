/* The kernels. Each says which operands it takes, and the host calls it with no others.
 *
 * All are asynchronous: they put a job into the stream of the call and return. What `call` and `state` point to holds until
 * then, so the job takes along what it needs. A real driver would enqueue a launch here. */
#include <math.h>
#include <stdlib.h>

#include "sample_npu.h"

static float *numbers_of(const struct operand *operand) {
    return (float *)(void *)operand->range.data;
}

static oarlock_error keep(const oarlock_tensor *tensor, struct operand *operand) {
    OARLOCK_ENFORCE_LE(tensor->dims_count, MOST_DIMS, OARLOCK_CODE_UNIMPLEMENTED, "an operand has too many dimensions");
    operand->count = oarlock_element_count(tensor);
    operand->rank = tensor->dims_count;
    for (uint64_t i = 0; i < tensor->dims_count; i++) {
        operand->dims[i] = (uint64_t)tensor->dims[i];
    }
    return range_find(tensor->block, tensor->offset, tensor->size_in_bytes, &operand->range);
}

/* Makes a job with all inputs and then the output of a call. */
static oarlock_error job_of_call(const oarlock_call *call, const char *(*run)(struct job *job, const char *failure),
    struct job **job) {
    oarlock_error failure = 0;
    OARLOCK_ENFORCE_LT(call->inputs_count, MOST_OPERANDS, OARLOCK_CODE_INVALID_ARGUMENT, "there are too many inputs");
    OARLOCK_TRY(job_create(run, job));
    for (uint64_t i = 0; i <= call->inputs_count && failure == 0; i++) {
        failure = keep(i < call->inputs_count ? call->inputs[i] : call->outputs[0], &(*job)->operands[i]);
    }
    if (failure != 0) {
        job_end(*job);
    }
    return failure;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Element by element */

/* The place in `from` of element `index` of `to`: a dimension of size 1 is repeated. */
static uint64_t broadcast(const struct operand *from, const struct operand *to, uint64_t index) {
    const uint64_t missing = to->rank - from->rank;
    uint64_t place = 0, step = 1;
    for (uint64_t i = to->rank; i-- > missing;) {
        const uint64_t size = from->dims[i - missing];
        place += index % to->dims[i] % size * step;
        step *= size;
        index /= to->dims[i];
    }
    return place;
}

static const char *compute_binary(struct job *job, const char *failure) {
    const struct operand *a = &job->operands[0], *b = &job->operands[1], *c = &job->operands[2];
    for (uint64_t i = 0; failure == NULL && i < c->count; i++) {
        numbers_of(c)[i] = job->compute(numbers_of(a)[broadcast(a, c, i)], numbers_of(b)[broadcast(b, c, i)]);
    }
    return NULL;
}

static oarlock_error launch_binary(const oarlock_call *call, float (*compute)(float left, float right)) {
    struct job *job;
    OARLOCK_TRY(job_of_call(call, compute_binary, &job));
    job->compute = compute;
    return job_launch(job, call->device, call->queue);
}

#define BINARY_KERNEL(name, relation)                                                       \
    static float compute_##name(float left, float right) {                                  \
        return left relation right;                                                         \
    }                                                                                       \
    static oarlock_error run_##name(void *context, void *state, const oarlock_call *call) { \
        (void)context;                                                                      \
        (void)state;                                                                        \
        return launch_binary(call, compute_##name);                                         \
    }

BINARY_KERNEL(add, +)
BINARY_KERNEL(sub, -)
BINARY_KERNEL(mul, *)

static const char *compute_relu(struct job *job, const char *failure) {
    const struct operand *x = &job->operands[0], *y = &job->operands[1];
    for (uint64_t i = 0; failure == NULL && i < x->count; i++) {
        const float value = numbers_of(x)[i];
        numbers_of(y)[i] = value < 0 ? 0 : value;
    }
    return NULL;
}

/* The output may use the memory of the input, as the record says. */
oarlock_error sample_npu_relu(void *context, void *state, const oarlock_call *call) {
    struct job *job;
    (void)context;
    (void)state;
    OARLOCK_TRY(job_of_call(call, compute_relu, &job));
    return job_launch(job, call->device, call->queue);
}

/* ------------------------------------------------------------------------------------------------------------------
 * MatMul, with B packed by columns, as the chip reads it */

struct packed {
    struct item item;
    float numbers[];
};

static void packed_end(struct item *item) {
    free(item);
}

static struct packed *pack(const struct operand *b) {
    const uint64_t depth = b->dims[0], columns = b->dims[1];
    struct packed *packed = calloc(1, sizeof *packed + b->count * sizeof(float));
    if (packed != NULL) {
        packed->item.end = packed_end;
        atomic_store(&packed->item.uses, 1);
        for (uint64_t i = 0; i < b->count; i++) {
            packed->numbers[i % columns * depth + i / columns] = numbers_of(b)[i];
        }
    }
    return packed;
}

/* Runs once for each call site. What is constant may be packed; like all operands it lies in the memory of the device.
 * Several threads may use the state at once (K-4), and work in a stream may outlive it: so its uses are counted. */
static oarlock_error prepare_matmul(void *context, const oarlock_call *call, void **state) {
    const int is_constant = (call->inputs[1]->bits & OARLOCK_TENSOR_FLAGS_CONSTANT) != 0;
    struct operand b;
    struct packed *packed;
    (void)context;
    OARLOCK_TRY(oarlock_describe(call, is_constant ? "B packed" : "B as it is"));
    if (!is_constant) {
        *state = NULL;
        return 0;
    }
    OARLOCK_TRY(keep(call->inputs[1], &b));
    packed = pack(&b);
    item_release(b.range.block);
    OARLOCK_ENFORCE_NOT_NULL(packed, OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory to pack B, received none");
    *state = packed;
    return 0;
}

static oarlock_error release_matmul(void *context, void *state) {
    (void)context;
    item_release(state);
    return 0;
}

static const char *compute_matmul(struct job *job, const char *failure) {
    const struct operand *a = &job->operands[0], *b = &job->operands[1], *y = &job->operands[2];
    const uint64_t depth = b->dims[0], width = b->dims[1];
    const struct packed *packed;
    if (failure != NULL) {
        return NULL;
    }
    if (job->used == NULL) {
        struct packed *made = pack(b);
        job->used = made == NULL ? NULL : &made->item;
    }
    if (job->used == NULL) {
        return "expected memory to pack B, received none";
    }
    packed = (const struct packed *)job->used;
    for (uint64_t i = 0; i < y->count; i++) {
        double sum = 0;
        for (uint64_t k = 0; k < depth; k++) {
            sum += (double)numbers_of(a)[i / width * depth + k] * (double)packed->numbers[i % width * depth + k];
        }
        numbers_of(y)[i] = (float)sum;
    }
    return NULL;
}

static oarlock_error run_matmul(void *context, void *state, const oarlock_call *call) {
    struct job *job;
    (void)context;
    OARLOCK_TRY(job_of_call(call, compute_matmul, &job));
    if (state != NULL) {
        job->used = state;
        atomic_fetch_add(&job->used->uses, 1);
    }
    return job_launch(job, call->device, call->queue);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Softmax over the last axis, with the sums of its rows in the workspace */

/* Declines calls that the operands alone do not rule out. An attribute with a default in the schema may be absent. */
static oarlock_error supports_softmax(void *context, const oarlock_call *call) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, "axis");
    const int64_t axis = attribute == NULL || attribute->ints_count == 0 ? -1 : attribute->ints[0];
    (void)context;
    OARLOCK_ENFORCE(axis == -1 || axis + 1 == (int64_t)call->inputs[0]->dims_count, OARLOCK_CODE_UNIMPLEMENTED,
        "expected the last axis, received %lld", (long long)axis);
    return 0;
}

/* Scratch memory that the host allocates on the device: here for the sum of each row. */
static oarlock_error workspace_softmax(void *context, const oarlock_call *call, uint64_t *size) {
    const oarlock_tensor *x = call->inputs[0];
    const uint64_t count = oarlock_element_count(x);
    (void)context;
    *size = count == 0 ? 0 : count / (uint64_t)x->dims[x->dims_count - 1] * sizeof(float);
    return 0;
}

static const char *compute_softmax(struct job *job, const char *failure) {
    const struct operand *x = &job->operands[0], *y = &job->operands[1];
    const uint64_t width = x->dims[x->rank - 1];
    float *sums = (float *)(void *)job->scratch.data;
    for (uint64_t row = 0; failure == NULL && width > 0 && row < x->count / width; row++) {
        const float *from = numbers_of(x) + row * width;
        float *to = numbers_of(y) + row * width;
        float largest = from[0];
        sums[row] = 0;
        for (uint64_t i = 0; i < width; i++) {
            largest = from[i] > largest ? from[i] : largest;
        }
        for (uint64_t i = 0; i < width; i++) {
            to[i] = expf(from[i] - largest);
            sums[row] += to[i];
        }
        for (uint64_t i = 0; i < width; i++) {
            to[i] /= sums[row];
        }
    }
    return NULL;
}

static oarlock_error run_softmax(void *context, void *state, const oarlock_call *call) {
    struct job *job;
    uint64_t size;
    oarlock_error failure;
    (void)state;
    OARLOCK_TRY(workspace_softmax(context, call, &size));
    OARLOCK_TRY(job_of_call(call, compute_softmax, &job));
    failure = range_find(call->workspace, call->workspace_offset, size, &job->scratch);
    if (failure != 0) {
        job_end(job);
        return failure;
    }
    return job_launch(job, call->device, call->queue);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The records */

#define OPERAND(least, most) \
    {OARLOCK_HEADER(oarlock_operand), .dtypes = OARLOCK_DTYPE_SET_F32, .rank_min = least, .rank_max = most}

static const oarlock_operand numbers = OPERAND(0, MOST_DIMS);
static const oarlock_operand matrix = OPERAND(2, 2);
static const oarlock_operand rows = OPERAND(1, MOST_DIMS);
static const oarlock_operand *const two_numbers[] = {&numbers, &numbers};
static const oarlock_operand *const two_matrices[] = {&matrix, &matrix};
static const oarlock_operand *const one_of_rows[] = {&rows};
static const oarlock_in_place first_in_first[] = {{.output = 0, .input = 0}};

/* A kernel whose output is like its first input. */
#define KERNEL(name, since, operands, count)                                                                \
    OARLOCK_HEADER(oarlock_kernel), .op = OARLOCK_STR(name), .version_min = since, .score = 100,            \
    .bits = OARLOCK_KERNEL_FLAGS_ASYNCHRONOUS | OARLOCK_KERNEL_FLAGS_DETERMINISTIC, .inputs = operands,     \
    .inputs_count = count, .outputs = operands, .outputs_count = 1

static const oarlock_kernel add = {KERNEL("Add", 7, two_numbers, 2), .run = run_add};
static const oarlock_kernel sub = {KERNEL("Sub", 7, two_numbers, 2), .run = run_sub};
static const oarlock_kernel mul = {KERNEL("Mul", 7, two_numbers, 2), .run = run_mul};
static const oarlock_kernel relu = {KERNEL("Relu", 6, two_numbers, 1), .in_place = first_in_first, .in_place_count = 1,
    .run = sample_npu_relu};
static const oarlock_kernel matmul = {KERNEL("MatMul", 1, two_matrices, 2), .prepare = prepare_matmul, .run = run_matmul,
    .release = release_matmul};
static const oarlock_kernel softmax = {KERNEL("Softmax", 13, one_of_rows, 1), .supports = supports_softmax,
    .workspace = workspace_softmax, .run = run_softmax};

static const oarlock_kernel *const all_kernels[] = {&add, &sub, &mul, &relu, &matmul, &softmax};

const oarlock_kernel_table sample_npu_kernels = {
    OARLOCK_TABLE(oarlock_kernel_table),
    .kernels = all_kernels,
    .kernels_count = sizeof all_kernels / sizeof all_kernels[0],
};
