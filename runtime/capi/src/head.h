/* Made from `runtime/capi/src/interface` by `OARLOCK_WRITE=1 cargo test -p oarlock-capi`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API of Oarlock: read a model, run it on any device, read what comes out.
 *
 * Errors      A function that can fail gives an `oarlock_error *`: NULL is success, and anything else is freed by the
 *             caller. What cannot fail gives 0, -1 or NULL, as it says, for NULL and for what is not there.
 * Ownership   What a function puts into a `T **` is the caller's and has one `oarlock_T_free`. What it returns as a
 *             `const` pointer belongs to the handle it was asked of and is there for as long as that. What is passed in
 *             stays the caller's, and nothing of it is kept after the call but where a function says so.
 * Threads     Every handle may be used from any number of threads at once, but for `oarlock_attributes`; it is freed once,
 *             when no other thread uses it. Nothing belongs to a thread and nothing is global.
 * Texts       Texts are UTF-8 and end with a zero, both ways; elements of tensors are `oarlock_text`.
 * Structs     One that begins with `size` may grow: set all of it to zero and `size` to its `sizeof`, and older programs
 *             work with newer libraries.
 * Callbacks   They must return: no exception and no `longjmp` may leave them.
 *
 * Plugins are written against `oarlock/contract.h`, which has an error of its own: a source includes one or the other. */
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
