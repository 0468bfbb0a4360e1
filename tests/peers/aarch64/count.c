/* A plugin of qemu's user mode that counts the instructions of a program and writes the number to the file that OARLOCK_INSTRUCTIONS
 * names. It declares what it uses of qemu's plugin interface, version 1, because Debian does not ship the header. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct qemu_plugin_tb;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, void (*translated)(uint64_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *place, uint64_t value);
void qemu_plugin_register_atexit_cb(uint64_t plugin, void (*ended)(uint64_t, void *), void *data);

/* The operation that adds a value to the number at a place. */
enum { ADD = 0 };

int qemu_plugin_version = 1;

static uint64_t count;

static void count_block(uint64_t plugin, struct qemu_plugin_tb *block) {
    (void)plugin;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &count, qemu_plugin_tb_n_insns(block));
}

static void write_count(uint64_t plugin, void *data) {
    (void)plugin;
    (void)data;
    const char *place = getenv("OARLOCK_INSTRUCTIONS");
    FILE *file = place ? fopen(place, "w") : NULL;
    if (!file) {
        return;
    }
    fprintf(file, "%llu\n", (unsigned long long)count);
    fclose(file);
}

int qemu_plugin_install(uint64_t plugin, const void *info, int argc, char **argv) {
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, count_block);
    qemu_plugin_register_atexit_cb(plugin, write_count, NULL);
    return 0;
}
