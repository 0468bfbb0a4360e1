/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer in front of the core tables of at most eight plugins. `memory_stats` says a total of 4242 bytes, which shows that the
 * layer is in the way; everything else goes to the next table, and every other kind of table passes by. */
#include "oarlock/plugin.h"

enum { MOST_TABLES = 8, TOTAL = 4242 };

static struct wrapped {
    void *context;
    const oarlock_core_table *next;
    oarlock_core_table table;
} wrapped_tables[MOST_TABLES];

static oarlock_error memory_stats(void *context, uint32_t device, uint64_t *total, uint64_t *free_now) {
    for (int i = 0; i < MOST_TABLES; i++) {
        if (wrapped_tables[i].next != NULL && wrapped_tables[i].context == context) {
            OARLOCK_TRY(wrapped_tables[i].next->memory_stats(context, device, total, free_now));
            *total = TOTAL;
            *free_now = *free_now < TOTAL ? *free_now : TOTAL;
            return 0;
        }
    }
    return OARLOCK_FAIL(OARLOCK_CODE_NOT_FOUND, "expected the context of a wrapped table");
}

static oarlock_error wrap(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context, void *next_table,
    void **wrapped_context, void **wrapped_table) {
    (void)context;
    (void)plugin;
    *wrapped_context = next_context;
    *wrapped_table = next_table;
    if (kind != OARLOCK_TABLE_KIND_CORE) {
        return 0;
    }
    for (int i = 0; i < MOST_TABLES; i++) {
        struct wrapped *const place = &wrapped_tables[i];
        if (place->next == NULL) {
            const oarlock_core_table *const next = next_table;
            const size_t size = next->size < sizeof place->table ? next->size : sizeof place->table;
            memset(&place->table, 0, sizeof place->table);
            memcpy(&place->table, next, size);
            place->table.size = sizeof place->table;
            place->table.features &= OARLOCK_FEATURES;
            place->table.memory_stats = memory_stats;
            place->context = next_context;
            place->next = next;
            *wrapped_table = &place->table;
            return 0;
        }
    }
    return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected at most %d tables", MOST_TABLES);
}

static oarlock_error unwrap(void *context, oarlock_table_kind kind, void *wrapped_context, void *wrapped_table) {
    (void)context;
    (void)kind;
    (void)wrapped_context;
    for (int i = 0; i < MOST_TABLES; i++) {
        if (wrapped_table == &wrapped_tables[i].table) {
            wrapped_tables[i].next = NULL;
        }
    }
    return 0;
}

static const oarlock_layer_table table = {OARLOCK_TABLE(oarlock_layer_table), .wrap = wrap, .unwrap = unwrap};

static oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock_string("frozen-layer-c");
    plugin->version = oarlock_string("1.0.0");
    plugin->vendor = oarlock_string("Oarlock");
    plugin->layer = &table;
    return 0;
}

OARLOCK_PLUGIN(describe);
