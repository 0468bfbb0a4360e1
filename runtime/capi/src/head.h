/* Made from `runtime/capi/src/interface` by `OARLOCK_WRITE=1 cargo test -p oarlock-capi`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API of Oarlock: read a model, run it on any device, read its outputs.
 *
 * Errors      A function that can fail returns an `oarlock_error *`: NULL means success, and the caller frees any other.
 *             A function that cannot fail returns 0, -1 or NULL, as documented, for NULL and for missing things.
 * Ownership   The caller owns what a function stores in a `T **`, and frees it with `oarlock_T_free`. A returned `const`
 *             pointer belongs to the handle that was passed, and is valid as long as that. The caller keeps arguments,
 *             and the library does not use them after the call unless the function says so.
 * Threads     Any number of threads may use a handle at once, except `oarlock_attributes`. Free a handle once, when no
 *             other thread uses it. There is no global and no thread-local state.
 * Texts       Texts are UTF-8 and end with a zero, in both directions; elements of tensors are `oarlock_text`.
 * Structs     A struct that begins with `size` may grow: zero all of it and set `size` to its `sizeof`, so that the program
 *             works with newer libraries.
 * Callbacks   They must return: no exception and no `longjmp` may leave them.
 *
 * Plugins use `oarlock/contract.h` instead, which has a different error type: a source may include only one of them. */
#ifndef OARLOCK_H
#define OARLOCK_H

#ifdef OARLOCK_CONTRACT_H
#error "expected either oarlock.h, for programs, or oarlock/contract.h, for plugins, found both in one source"
#endif

#include <stdint.h>

/** The number of this header, for `oarlock_abi`. */
#define OARLOCK_ABI @ABI@u

#ifndef OARLOCK_API
#define OARLOCK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif
