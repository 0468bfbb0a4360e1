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
 * `OARLOCK_KERNEL` covers more: optional operands and lists of them, outputs in the memory of inputs, other devices, and attributes
 * that are declared and checked. In C++, `OARLOCK_DISPATCH` runs code for the type of the elements. For anything else, fill the
 * structs of the contract directly. */
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
#define OARLOCK_OPERAND(name, dtypes, group) OARLOCK_OPERAND_WITH(name, dtypes, group, 0)

/** Defines an operand with flags: `OARLOCK_OPERAND_FLAGS_OPTIONAL` if it may be left out, `OARLOCK_OPERAND_FLAGS_VARIADIC` for the
 *  last one if it stands for any number of them. Of a list of outputs, the caller says how many there are. */
#define OARLOCK_OPERAND_WITH(name, dtypes, group, flags)                                                     \
    static const oarlock_operand name = {                                                                    \
        OARLOCK_HEADER(oarlock_operand), OARLOCK_STR(#name), dtypes, group, 0, OARLOCK_RANK_ANY, flags, 0, 0, \
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

/** The kinds of attributes. A bool is 0 or 1, an `INT32` fits into 32 bits, and a float may be given as a whole number. A single
 *  value is a list with one item. */
enum oarlock_declared_kind {
    OARLOCK_DECLARED_BOOL,
    OARLOCK_DECLARED_INT32,
    OARLOCK_DECLARED_INT64,
    OARLOCK_DECLARED_FLOAT,
    OARLOCK_DECLARED_STRING,
    OARLOCK_DECLARED_INT32S,
    OARLOCK_DECLARED_INT64S,
    OARLOCK_DECLARED_FLOATS,
    OARLOCK_DECLARED_STRINGS
};

/** An attribute that an op knows. One that is not `required` has a default, which the kernel knows. */
struct oarlock_declared_attribute {
    const char *name;
    enum oarlock_declared_kind kind;
    int required;
};

/** Declares the attributes of an op: `OARLOCK_ATTRIBUTES(swish_attributes, {"sharpness", OARLOCK_DECLARED_FLOAT, 0});` */
#define OARLOCK_ATTRIBUTES(name, ...) \
    static const struct oarlock_declared_attribute name[] = {{OARLOCK_NULL, OARLOCK_DECLARED_BOOL, 0}, __VA_ARGS__}

/** Declares that an op has no attributes. */
#define OARLOCK_NO_ATTRIBUTES(name) \
    static const struct oarlock_declared_attribute name[] = {{OARLOCK_NULL, OARLOCK_DECLARED_BOOL, 0}}

static inline oarlock_error oarlock_check_attributes(const oarlock_call *call, const char *op,
    const struct oarlock_declared_attribute *declared, uint64_t declared_count);

/** Defines `id_op`, a kernel of the op `op` for a type of device. Define several, each with an `id` of its own, for several types of
 *  device. `in_place` is a list of pairs such as `({0, 1})`: output 0 may have the memory of input 1; `()` if there is none.
 *  A call with an attribute that `attributes` does not declare, of another kind, or without a required one, is an error. */
#define OARLOCK_KERNEL(id, op, domain, device_type, flags, inputs, outputs, in_place, attributes, infer, run)   \
    static const oarlock_operand *const id##_inputs[] = {OARLOCK_LISTED_ inputs};                              \
    static const oarlock_operand *const id##_outputs[] = {OARLOCK_LISTED_ outputs};                            \
    static const oarlock_in_place id##_in_place[] = {{0, 0}, OARLOCK_LISTED_ in_place};                        \
    static oarlock_error id##_checked_infer(void *context, const oarlock_call *call) {                         \
        OARLOCK_TRY(oarlock_check_attributes(call, op, attributes + 1, OARLOCK_COUNT_(attributes) - 1));       \
        return infer(context, call);                                                                           \
    }                                                                                                          \
    static const oarlock_kernel id##_op = {                                                                    \
        OARLOCK_HEADER(oarlock_kernel), OARLOCK_STR(op), OARLOCK_STR(domain), OARLOCK_STR(device_type),        \
        1, 0, 100, flags, id##_inputs, OARLOCK_COUNT_(id##_inputs), id##_outputs,                              \
        OARLOCK_COUNT_(id##_outputs), id##_in_place + 1, OARLOCK_COUNT_(id##_in_place) - 1, OARLOCK_NULL,      \
        OARLOCK_NULL, OARLOCK_GUARDED_(id##_checked_infer), OARLOCK_NULL, OARLOCK_NULL, OARLOCK_GUARDED_(run), \
        OARLOCK_NULL,                                                                                          \
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

/** Reads an attribute that is true or false; otherwise like `oarlock_read_float`. */
static inline oarlock_error oarlock_read_bool(const oarlock_call *call, const char *name, int *value) {
    int64_t number = *value;
    OARLOCK_TRY(oarlock_read_int(call, name, &number));
    OARLOCK_ENFORCE(number == 0 || number == 1, OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be 0 or 1, found %lld", name,
        OARLOCK_CAST(long long, number));
    *value = number != 0;
    return 0;
}

/** Reads an attribute that is text, which lives as long as the call; otherwise like `oarlock_read_float`. */
static inline oarlock_error oarlock_read_string(const oarlock_call *call, const char *name, oarlock_str *value) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, name);
    if (attribute == OARLOCK_NULL) {
        return 0;
    }
    OARLOCK_ENFORCE(attribute->kind == OARLOCK_ATTRIBUTE_KIND_STRING && attribute->strings_count == 1,
        OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be text, found something else", name);
    *value = attribute->strings[0];
    return 0;
}

/** Reads a list of whole numbers, which lives as long as the call; otherwise like `oarlock_read_float`. */
static inline oarlock_error oarlock_read_ints(const oarlock_call *call, const char *name, const int64_t **values, uint64_t *count) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, name);
    if (attribute == OARLOCK_NULL) {
        return 0;
    }
    OARLOCK_ENFORCE(attribute->kind == OARLOCK_ATTRIBUTE_KIND_INTS || attribute->kind == OARLOCK_ATTRIBUTE_KIND_INT,
        OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be whole numbers, found something else", name);
    *values = attribute->ints;
    *count = attribute->ints_count;
    return 0;
}

/** Reads a list of texts, which lives as long as the call; otherwise like `oarlock_read_float`. */
static inline oarlock_error oarlock_read_strings(const oarlock_call *call, const char *name, const oarlock_str **values, uint64_t *count) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, name);
    if (attribute == OARLOCK_NULL) {
        return 0;
    }
    OARLOCK_ENFORCE(attribute->kind == OARLOCK_ATTRIBUTE_KIND_STRINGS || attribute->kind == OARLOCK_ATTRIBUTE_KIND_STRING,
        OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be texts, found something else", name);
    *values = attribute->strings;
    *count = attribute->strings_count;
    return 0;
}

/** Reads a list of numbers into `values`, which has room for `room` of them; otherwise like `oarlock_read_float`. */
static inline oarlock_error oarlock_read_floats(const oarlock_call *call, const char *name, double *values, uint64_t room, uint64_t *count) {
    const oarlock_attribute *attribute = oarlock_find_attribute(call, name);
    uint64_t i, found;
    if (attribute == OARLOCK_NULL) {
        return 0;
    }
    found = attribute->floats_count + attribute->ints_count;
    OARLOCK_ENFORCE(attribute->kind == OARLOCK_ATTRIBUTE_KIND_FLOATS || attribute->kind == OARLOCK_ATTRIBUTE_KIND_FLOAT ||
            attribute->kind == OARLOCK_ATTRIBUTE_KIND_INTS || attribute->kind == OARLOCK_ATTRIBUTE_KIND_INT,
        OARLOCK_CODE_INVALID_ARGUMENT, "expected `%s` to be numbers, found something else", name);
    OARLOCK_ENFORCE_LE(found, room, OARLOCK_CODE_OUT_OF_RANGE, "`%s` has too many numbers", name);
    for (i = 0; i < found; i++) {
        values[i] = attribute->floats_count > 0 ? attribute->floats[i] : OARLOCK_CAST(double, attribute->ints[i]);
    }
    *count = found;
    return 0;
}

/** Checks one attribute of a call against its declaration. */
static inline oarlock_error oarlock_check_attribute(const oarlock_attribute *given, const struct oarlock_declared_attribute *declared) {
    static const char *const expected[] = {"0 or 1", "a whole number of 32 bits", "a whole number", "a number", "text",
        "whole numbers of 32 bits", "whole numbers", "numbers", "texts"};
    const enum oarlock_declared_kind kind = declared->kind;
    const oarlock_attribute_kind found = given->kind;
    const int is_int = found == OARLOCK_ATTRIBUTE_KIND_INT, are_ints = is_int || found == OARLOCK_ATTRIBUTE_KIND_INTS;
    const int is_float = is_int || found == OARLOCK_ATTRIBUTE_KIND_FLOAT;
    const int is_text = found == OARLOCK_ATTRIBUTE_KIND_STRING;
    int fits = 0;
    uint64_t i;
    switch (kind) {
    case OARLOCK_DECLARED_BOOL:
    case OARLOCK_DECLARED_INT32:
    case OARLOCK_DECLARED_INT64: fits = is_int; break;
    case OARLOCK_DECLARED_FLOAT: fits = is_float; break;
    case OARLOCK_DECLARED_STRING: fits = is_text; break;
    case OARLOCK_DECLARED_INT32S:
    case OARLOCK_DECLARED_INT64S: fits = are_ints; break;
    case OARLOCK_DECLARED_FLOATS: fits = is_float || are_ints || found == OARLOCK_ATTRIBUTE_KIND_FLOATS; break;
    case OARLOCK_DECLARED_STRINGS: fits = is_text || found == OARLOCK_ATTRIBUTE_KIND_STRINGS; break;
    }
    for (i = 0; fits && i < given->ints_count; i++) {
        const int64_t number = given->ints[i];
        if (kind == OARLOCK_DECLARED_BOOL) {
            fits = number == 0 || number == 1;
        } else if (kind == OARLOCK_DECLARED_INT32 || kind == OARLOCK_DECLARED_INT32S) {
            fits = number >= INT32_MIN && number <= INT32_MAX;
        }
    }
    OARLOCK_ENFORCE(fits, OARLOCK_CODE_INVALID_ARGUMENT, "expected the attribute `%s` to be %s, found something else",
        declared->name, expected[kind]);
    return 0;
}

/** Checks the attributes of a call of `op`. `OARLOCK_KERNEL` does so in `infer`; a kernel without it calls this in `run`. */
static inline oarlock_error oarlock_check_attributes(const oarlock_call *call, const char *op,
    const struct oarlock_declared_attribute *declared, uint64_t declared_count) {
    uint64_t i, at;
    for (i = 0; i < call->attributes_count; i++) {
        const oarlock_attribute *given = call->attributes[i];
        for (at = 0; at < declared_count && !oarlock_equals(given->name, declared[at].name); at++) {
        }
        if (at == declared_count) {
            char known[256] = "none";
            size_t length = 0;
            for (at = 0; at < declared_count && length < sizeof known; at++) {
                length += OARLOCK_CAST(size_t, snprintf(known + length, sizeof known - length, "%s`%s`", at > 0 ? ", " : "", declared[at].name));
            }
            return OARLOCK_FAIL(OARLOCK_CODE_INVALID_ARGUMENT, "expected attributes that `%s` has: %s; found `%.*s`", op, known,
                OARLOCK_CAST(int, given->name.size > 64 ? 64 : given->name.size), given->name.data);
        }
        OARLOCK_TRY(oarlock_check_attribute(given, &declared[at]));
    }
    for (at = 0; at < declared_count; at++) {
        OARLOCK_ENFORCE(!declared[at].required || oarlock_find_attribute(call, declared[at].name) != OARLOCK_NULL,
            OARLOCK_CODE_INVALID_ARGUMENT, "expected the attribute `%s` of `%s`, which has no default, found none",
            declared[at].name, op);
    }
    return 0;
}

/** The experimental function `run_op_since_1_2` of the host. */
typedef oarlock_error (*oarlock_run_op_function)(void *context, oarlock_str domain, oarlock_str op, uint32_t opset,
    const oarlock_tensor *const *inputs, uint64_t inputs_count, const oarlock_attribute *const *attributes,
    uint64_t attributes_count, const oarlock_tensor *const *outputs, uint64_t outputs_count);

/** Runs another op of the runtime, such as `MatMul` of the domain `""`: in `run` of a CPU kernel whose op has a domain of its own, on
 *  the thread that called it. `opset` 0 is the newest. Operands are contiguous and in host memory, with their `size_in_bytes`; an
 *  output has the dtype and the shape that the op computes. The op is looked up each time, and its operands are copied. Fails on a host without the function. */
static inline oarlock_error oarlock_run_op(const char *domain, const char *op, uint32_t opset, const oarlock_tensor *const *inputs,
    uint64_t inputs_count, const oarlock_attribute *const *attributes, uint64_t attributes_count,
    const oarlock_tensor *const *outputs, uint64_t outputs_count) {
    oarlock_run_op_function run;
    void *found = OARLOCK_NULL;
    if (oarlock_services() == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    OARLOCK_TRY(oarlock_services()->experimental(oarlock_services_context(), oarlock_string("run_op_since_1_2"), &found));
    memcpy(&run, &found, sizeof run);
    return run(oarlock_services_context(), oarlock_string(domain), oarlock_string(op), opset, inputs, inputs_count, attributes,
        attributes_count, outputs, outputs_count);
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

#ifdef __cplusplus
#include <complex>

namespace oarlock OARLOCK_HIDDEN {

/** The dtype of a type of C++. */
template <class Element>
constexpr oarlock_dtype dtype_of() {
    if constexpr (std::is_same<Element, bool>::value) {
        return OARLOCK_DTYPE_BOOL;
    } else if constexpr (std::is_same<Element, float>::value) {
        return OARLOCK_DTYPE_F32;
    } else if constexpr (std::is_same<Element, double>::value) {
        return OARLOCK_DTYPE_F64;
    } else if constexpr (std::is_same<Element, std::complex<float>>::value) {
        return OARLOCK_DTYPE_C64;
    } else if constexpr (std::is_same<Element, std::complex<double>>::value) {
        return OARLOCK_DTYPE_C128;
    } else {
        static_assert(std::is_integral<Element>::value, "no dtype has elements of this type");
        constexpr oarlock_dtype signed_dtypes[] = {OARLOCK_DTYPE_I8, OARLOCK_DTYPE_I16, OARLOCK_DTYPE_I32, OARLOCK_DTYPE_I64};
        constexpr oarlock_dtype unsigned_dtypes[] = {OARLOCK_DTYPE_U8, OARLOCK_DTYPE_U16, OARLOCK_DTYPE_U32, OARLOCK_DTYPE_U64};
        constexpr int at = sizeof(Element) == 1 ? 0 : sizeof(Element) == 2 ? 1 : sizeof(Element) == 4 ? 2 : 3;
        return std::is_signed<Element>::value ? signed_dtypes[at] : unsigned_dtypes[at];
    }
}

/** Stands for a type as an argument. */
template <class Element>
struct ElementType {
    using type = Element;
};

/** Calls `body` with the type among `Elements` that has the dtype. */
template <class... Elements, class Body>
oarlock_error dispatch(oarlock_dtype dtype, const char *name, Body &&body) {
    oarlock_error failure = 0;
    const bool is_known = ((dtype == dtype_of<Elements>() && (failure = body(ElementType<Elements>{}), true)) || ...);
    return is_known ? failure
                    : OARLOCK_FAIL(OARLOCK_CODE_UNIMPLEMENTED, "expected a dtype that `%s` computes with, found the dtype %u", name,
                          static_cast<unsigned>(dtype));
}

} // namespace oarlock

/** Runs a block for the dtype, in which `T` is the type of the elements, and returns its error:
 *  `return OARLOCK_DISPATCH((float, double), dtype, "swish", { ... });`. The block returns an error, or nothing for success. */
#define OARLOCK_DISPATCH(types, dtype, name, ...)                                                  \
    (::oarlock::dispatch<OARLOCK_LISTED_ types>(dtype, name, [&](auto oarlock_element) -> oarlock_error { \
        using T = typename decltype(oarlock_element)::type;                                        \
        __VA_ARGS__                                                                                \
        return 0;                                                                                  \
    }))

/** `OARLOCK_DISPATCH` for usual sets of types. */
#define OARLOCK_DISPATCH_FLOATS(dtype, name, ...) OARLOCK_DISPATCH((float, double), dtype, name, __VA_ARGS__)
#define OARLOCK_DISPATCH_INTEGERS(dtype, name, ...) \
    OARLOCK_DISPATCH((int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t), dtype, name, __VA_ARGS__)
#define OARLOCK_DISPATCH_REALS(dtype, name, ...)                                                            \
    OARLOCK_DISPATCH((float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t), \
        dtype, name, __VA_ARGS__)
#define OARLOCK_DISPATCH_COMPLEX(dtype, name, ...) \
    OARLOCK_DISPATCH((std::complex<float>, std::complex<double>), dtype, name, __VA_ARGS__)
#endif

#endif
