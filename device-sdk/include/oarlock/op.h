/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops for the CPU in a few lines: what `oarlock.extension.load` of the Python package compiles while a program runs. An op
 * of a domain of its own provides `infer`, which says the dtypes and shapes of its outputs.
 *
 *     static oarlock_error run(void *context, void *state, const oarlock_call *call) {
 *         const float *x = OARLOCK_CAST(const float *, oarlock_data(call->inputs[0]));
 *         float *y = OARLOCK_CAST(float *, oarlock_data(call->outputs[0]));
 *         for (uint64_t i = 0; i < oarlock_element_count(call->inputs[0]); i++) {
 *             y[i] = 2 * x[i];
 *         }
 *         return 0;
 *     }
 *     OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
 *     OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
 *     OARLOCK_OP(twice, "acme", OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), oarlock_infer_like_first, run);
 *     OARLOCK_EXTENSION(&twice_op);
 *
 * For anything that these macros do not cover, such as an optional operand, fill the structs of the contract directly. */
#ifndef OARLOCK_OP_H
#define OARLOCK_OP_H

#include "plugin.h"

/** The name and the version of the plugin; define them with the compiler's `-D`. */
#ifndef OARLOCK_EXTENSION_NAME
#define OARLOCK_EXTENSION_NAME "extension"
#endif
#ifndef OARLOCK_EXTENSION_VERSION
#define OARLOCK_EXTENSION_VERSION "0"
#endif

/** Defines the operand `name`: contiguous, of any rank, with one of these dtypes. All operands of an op with the same nonzero
 *  `group` have the same dtype. */
#define OARLOCK_OPERAND(name, dtypes, group)                                                             \
    static const oarlock_operand name = {                                                                \
        OARLOCK_HEADER(oarlock_operand), OARLOCK_STR(#name), dtypes, group, 0, OARLOCK_RANK_ANY, 0, 0, 0, \
    }

/** Defines `name_op`, the CPU kernel of the op `name`. `inputs` and `outputs` are lists such as `(&x, &y)`. In C++, an exception
 *  that `infer` or `run` throws becomes an error of the call. */
#define OARLOCK_OP(name, domain, flags, inputs, outputs, infer, run)                                   \
    static const oarlock_operand *const name##_inputs[] = {OARLOCK_LISTED_ inputs};                    \
    static const oarlock_operand *const name##_outputs[] = {OARLOCK_LISTED_ outputs};                  \
    static const oarlock_kernel name##_op = {                                                          \
        OARLOCK_HEADER(oarlock_kernel), OARLOCK_STR(#name), OARLOCK_STR(domain), OARLOCK_STR("cpu"),   \
        1, 0, 100, flags, name##_inputs, OARLOCK_COUNT_(name##_inputs), name##_outputs,                \
        OARLOCK_COUNT_(name##_outputs), OARLOCK_NULL, 0, OARLOCK_NULL, OARLOCK_NULL,                   \
        OARLOCK_GUARDED_(infer), OARLOCK_NULL, OARLOCK_NULL, OARLOCK_GUARDED_(run), OARLOCK_NULL,      \
    }

#ifdef __cplusplus
namespace oarlock OARLOCK_HIDDEN {

/** Wraps a slot and turns exceptions into errors. */
template <auto slot, class... Parameters>
constexpr auto guarded(oarlock_error (*)(Parameters...)) -> oarlock_error (*)(Parameters...) {
    return [](Parameters... parameters) -> oarlock_error { return guard([&] { return slot(parameters...); }); };
}

template <auto slot>
constexpr decltype(nullptr) guarded(decltype(nullptr)) {
    return nullptr;
}

} // namespace oarlock
#define OARLOCK_GUARDED_(slot) oarlock::guarded<slot>(slot)
#else
#define OARLOCK_GUARDED_(slot) slot
#endif

#define OARLOCK_LISTED_(...) __VA_ARGS__
#define OARLOCK_COUNT_(list) (sizeof(list) / sizeof(list)[0])

/** Defines a plugin with these kernels, in exactly one source file: `OARLOCK_EXTENSION(&one_op, &other_op);` */
#define OARLOCK_EXTENSION(...)                                                              \
    static const oarlock_kernel *const oarlock_extension_kernels[] = {__VA_ARGS__};         \
    static const oarlock_kernel_table oarlock_extension_table = {                           \
        OARLOCK_TABLE(oarlock_kernel_table), oarlock_extension_kernels,                     \
        OARLOCK_COUNT_(oarlock_extension_kernels),                                          \
    };                                                                                      \
    static oarlock_error oarlock_extension_describe(oarlock_plugin *plugin) {               \
        plugin->name = oarlock_string(OARLOCK_EXTENSION_NAME);                              \
        plugin->version = oarlock_string(OARLOCK_EXTENSION_VERSION);                        \
        plugin->kernels = &oarlock_extension_table;                                         \
        return 0;                                                                           \
    }                                                                                       \
    OARLOCK_PLUGIN(oarlock_extension_describe)

/** Reads a numeric attribute, such as `beta=2` or `beta=0.5`. If it is not set, `value` is unchanged. */
static inline oarlock_error oarlock_read_float(const oarlock_call *call, const char *name, double *value) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, name);
    if (attribute == OARLOCK_NULL) {
        return 0;
    }
    if (attribute->kind == OARLOCK_ATTRIBUTE_KIND_INT && attribute->ints_count == 1) {
        *value = OARLOCK_CAST(double, attribute->ints[0]);
        return 0;
    }
    OARLOCK_ENFORCE(attribute->kind == OARLOCK_ATTRIBUTE_KIND_FLOAT && attribute->floats_count == 1,
        OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be a number, found something else", name);
    *value = attribute->floats[0];
    return 0;
}

/** Reads an integer attribute; otherwise like `oarlock_read_float`. */
static inline oarlock_error oarlock_read_int(const oarlock_call *call, const char *name, int64_t *value) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, name);
    if (attribute == OARLOCK_NULL) {
        return 0;
    }
    OARLOCK_ENFORCE(attribute->kind == OARLOCK_ATTRIBUTE_KIND_INT && attribute->ints_count == 1,
        OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be a whole number, found something else", name);
    *value = attribute->ints[0];
    return 0;
}

/** An `infer` function for ops whose outputs all have the dtype and shape of the first input. */
static inline oarlock_error oarlock_infer_like_first(void *context, const oarlock_call *call) {
    uint32_t i;
    OARLOCK_CAST(void, context);
    OARLOCK_ENFORCE_GT(call->inputs_count, 0, OARLOCK_CODE_INVALID_ARGUMENT, "the op needs an input");
    for (i = 0; i < call->outputs_count; i++) {
        const oarlock_tensor *first = call->inputs[0];
        OARLOCK_TRY(oarlock_allocate_output(call, i, first->dtype, first->dims, first->dims_count));
    }
    return 0;
}

#endif
