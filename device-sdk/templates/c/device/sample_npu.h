/* The simulated chip, and what the sources share. Replace it by calls of your driver.
 *
 * The quoted rules, such as M-2, are those of the contract: `oarlock plugin check` tries them. */
#ifndef SAMPLE_NPU_H
#define SAMPLE_NPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "oarlock/plugin.h"

/* A plugin exports `oarlock_plugin_query` and nothing else (E-1). */
#pragma GCC visibility push(hidden)

#define MEMORY_SIZE (UINT64_C(1) << 30)
#define MEMORY_ALIGNMENT 64u

/* Returns an error unless `device` is in `device_list` (D-2). */
oarlock_error check_device(uint32_t device);

/* ------------------------------------------------------------------------------------------------------------------
 * Things that the host knows by number. Numbers count from 1: no block, stream or event is 0. */

struct item {
    struct item *next;
    uint64_t number;
    /* The table has one use, and everything that keeps the item one more. */
    atomic_uint uses;
    void (*end)(struct item *item);
};

struct table {
    const char *kind;
    pthread_mutex_t lock;
    struct item *first;
};

uint64_t table_add(struct table *table, struct item *item);

/* Finds an item and adds a use, or returns an error. */
oarlock_error table_find(struct table *table, uint64_t number, struct item **item);

/* Takes an item out of the table; it ends once nobody uses it any more. */
oarlock_error table_remove(struct table *table, uint64_t number);

/* Gives a use back. Null is ignored. */
void item_release(struct item *item);

/* ------------------------------------------------------------------------------------------------------------------
 * Memory: the host only knows the number of a block, and cannot look into it. */

struct block {
    struct item item;
    unsigned char *data;
    uint64_t size;
};

/* Bytes of a block, which they use. */
struct range {
    struct item *block;
    unsigned char *data;
};

/* A range lies in its block (M-2); an empty one needs none. */
oarlock_error range_find(oarlock_memory block, uint64_t offset, uint64_t size, struct range *range);

/* ------------------------------------------------------------------------------------------------------------------
 * Work in a stream. */

enum { MOST_OPERANDS = 3, MOST_DIMS = 8 };

/* What work keeps of an operand. */
struct operand {
    struct range range;
    uint64_t count;
    uint64_t rank;
    uint64_t dims[MOST_DIMS];
};

/* One piece of work, with everything that it needs: what a call points to holds only until the call returns. */
struct job {
    struct job *next;
    /* Does the work. Returns why it failed, or null. `failure` is that of earlier work in the stream. */
    const char *(*run)(struct job *job, const char *failure);
    struct operand operands[MOST_OPERANDS];
    struct range scratch;
    /* An event, or the state of a kernel. */
    struct item *used;
    float (*compute)(float left, float right);
    uint64_t turn;
    oarlock_stream_reached reached;
    oarlock_stream queue;
    void *user;
};

/* Makes a job with all else zero, or fails. */
oarlock_error job_create(const char *(*run)(struct job *job, const char *failure), struct job **job);

/* Adds a job to a stream; on stream 0, does it at once. The job ends either way. */
oarlock_error job_launch(struct job *job, uint32_t device, oarlock_stream queue);

/* Ends a job that was not launched. */
void job_end(struct job *job);

extern const oarlock_core_table sample_npu_core;
extern const oarlock_async_table sample_npu_async;
extern const oarlock_kernel_table sample_npu_kernels;

oarlock_error synchronize_all_streams(void);

/* The kernel `Relu`. */
oarlock_error sample_npu_relu(void *context, void *state, const oarlock_call *call);

#pragma GCC visibility pop

#endif
