// SPDX-License-Identifier: Apache-2.0
//
// What C++ adds to `oarlock.h`: handles that free themselves, and errors that are thrown. Everything else is the C API,
// which takes `get()` of a handle. Needs C++17.
#ifndef OARLOCK_HPP
#define OARLOCK_HPP

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "oarlock.h"

namespace oarlock {

/// What went wrong, with its kind and what to do about it.
class Error : public std::runtime_error {
public:
    Error(oarlock_code code, const std::string &message, std::string hint)
        : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

    /// One of `OARLOCK_CODE_…`.
    oarlock_code code() const noexcept { return code_; }
    /// What to do about it; empty where nothing is known.
    const std::string &hint() const noexcept { return hint_; }

private:
    oarlock_code code_;
    std::string hint_;
};

/// Frees a handle in the way of its type.
struct Free {
    void operator()(oarlock_error *it) const noexcept { oarlock_error_free(it); }
    void operator()(oarlock_runtime *it) const noexcept { oarlock_runtime_free(it); }
    void operator()(oarlock_model *it) const noexcept { oarlock_model_free(it); }
    void operator()(oarlock_session *it) const noexcept { oarlock_session_free(it); }
    void operator()(oarlock_value *it) const noexcept { oarlock_value_free(it); }
    void operator()(oarlock_attributes *it) const noexcept { oarlock_attributes_free(it); }
    void operator()(oarlock_op *it) const noexcept { oarlock_op_free(it); }
};

/// A handle that frees itself.
template <typename T> using Handle = std::unique_ptr<T, Free>;

/// Throws what a function gave, unless it succeeded.
inline void check(oarlock_error *given) {
    if (given == nullptr) {
        return;
    }
    const Handle<oarlock_error> error(given);
    const char *hint = oarlock_error_hint(given);
    throw Error(oarlock_error_code(given), oarlock_error_message(given), hint == nullptr ? "" : hint);
}

/// Calls a function that makes a handle, which is its last argument.
template <typename T, typename Function, typename... Arguments>
Handle<T> make(Function function, Arguments... arguments) {
    T *made = nullptr;
    check(function(arguments..., &made));
    return Handle<T>(made);
}

/// The dtype of a type of C++.
template <typename T> struct DtypeOf;
template <> struct DtypeOf<float> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_F32; };
template <> struct DtypeOf<double> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_F64; };
template <> struct DtypeOf<std::int8_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_I8; };
template <> struct DtypeOf<std::uint8_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_U8; };
template <> struct DtypeOf<std::int16_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_I16; };
template <> struct DtypeOf<std::uint16_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_U16; };
template <> struct DtypeOf<std::int32_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_I32; };
template <> struct DtypeOf<std::uint32_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_U32; };
template <> struct DtypeOf<std::int64_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_I64; };
template <> struct DtypeOf<std::uint64_t> { static constexpr oarlock_dtype value = OARLOCK_DTYPE_U64; };

/// A value: a tensor, a sequence or nothing.
class Value {
public:
    explicit Value(Handle<oarlock_value> handle) noexcept : handle_(std::move(handle)) {}

    /// A tensor of a copy of elements.
    template <typename T>
    Value(const oarlock_device *device, const std::vector<std::int64_t> &dims, const std::vector<T> &elements)
        : handle_(make<oarlock_value>(oarlock_tensor_create, device, DtypeOf<T>::value, dims.data(), dims.size(),
                                      static_cast<const void *>(elements.data()), elements.size() * sizeof(T))) {}

    const oarlock_value *get() const noexcept { return handle_.get(); }

    /// The sizes of the dimensions of a tensor.
    std::vector<std::int64_t> dims() const {
        const std::int64_t *first = oarlock_tensor_dims(get()), rank = oarlock_tensor_rank(get());
        return rank > 0 ? std::vector<std::int64_t>(first, first + rank) : std::vector<std::int64_t>();
    }

    /// The elements of a tensor of this type.
    template <typename T> std::vector<T> elements() const {
        if (oarlock_tensor_dtype(get()) != DtypeOf<T>::value) {
            throw Error(OARLOCK_CODE_INVALID_ARGUMENT, "expected a tensor of the type of the elements, found another", "");
        }
        std::vector<T> elements(oarlock_tensor_count(get()));
        check(oarlock_tensor_read(get(), elements.data(), elements.size() * sizeof(T)));
        return elements;
    }

private:
    Handle<oarlock_value> handle_;
};

/// A model that is ready to run. `run` may be called from any number of threads at once.
class Session {
public:
    /// `options` may be null.
    Session(const oarlock_runtime *runtime, const oarlock_model *model,
            const oarlock_session_options *options = nullptr)
        : handle_(make<oarlock_session>(oarlock_session_create, runtime, model, options)) {}

    const oarlock_session *get() const noexcept { return handle_.get(); }

    /// Runs the model on all its inputs, for all its outputs, in their order.
    std::vector<Value> run(const std::vector<const Value *> &inputs) const {
        std::vector<const oarlock_value *> given;
        for (const Value *input : inputs) {
            given.push_back(input->get());
        }
        std::vector<oarlock_value *> made(oarlock_session_output_count(get()));
        check(oarlock_session_run(get(), given.data(), given.size(), made.data(), made.size()));
        std::vector<Handle<oarlock_value>> handles(made.begin(), made.end());
        std::vector<Value> values;
        for (Handle<oarlock_value> &handle : handles) {
            values.emplace_back(std::move(handle));
        }
        return values;
    }

private:
    Handle<oarlock_session> handle_;
};

} // namespace oarlock

#endif
