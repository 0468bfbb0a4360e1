/* The profile `graph`, which is a DRAFT: the chip compiles a part of a model and runs it as a whole.
 *
 * Today no host calls it. It reports that the plugin has draft 1 of `graph`, and uses the plugin without: `run` of the kernels
 * goes on to do the work. The table may change with any version; then its number, `OARLOCK_GRAPH_DRAFT`, does too.
 *
 * This compiler takes `Relu` alone: a graph of them is one `Relu`, however many it has. */
#include <stdlib.h>

#include "graph.h"

/* A compiled graph: which input the one output is made of. */
struct program {
    struct item item;
    uint64_t input;
};

static struct table programs = {.kind = "compiled graph", .lock = PTHREAD_MUTEX_INITIALIZER};

static int is_taken(const oarlock_graph *graph, const oarlock_graph_node *node) {
    return oarlock_equals(node->op, "Relu") && node->domain.size == 0 && node->inputs_count == 1 &&
        node->inputs[0] < graph->values_count && graph->values[node->inputs[0]]->dtype == OARLOCK_DTYPE_F32;
}

/* Writes as many answers as fit, and says how many nodes there are. */
static oarlock_error graph_supports(void *context, uint32_t device, const oarlock_graph *graph, uint8_t *taken,
    uint64_t capacity, uint64_t *count) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    for (uint64_t i = 0; i < graph->nodes_count && i < capacity; i++) {
        taken[i] = (uint8_t)is_taken(graph, graph->nodes[i]);
    }
    *count = graph->nodes_count;
    return 0;
}

/* The value that the chain of nodes which makes `value` begins with. Nodes are in topological order. */
static uint32_t origin(const oarlock_graph *graph, uint32_t value) {
    for (uint64_t i = graph->nodes_count; i-- > 0;) {
        const oarlock_graph_node *node = graph->nodes[i];
        if (node->outputs_count == 1 && node->outputs[0] == value) {
            value = node->inputs[0];
        }
    }
    return value;
}

static void program_end(struct item *item) {
    free(item);
}

static oarlock_error graph_compile(void *context, uint32_t device, const oarlock_graph *graph,
    const oarlock_attribute *const *options, uint64_t options_count, oarlock_executable *executable) {
    struct program *program;
    (void)context;
    (void)options;
    (void)options_count;
    OARLOCK_TRY(check_device(device));
    OARLOCK_ENFORCE_EQ(graph->outputs_count, 1, OARLOCK_CODE_UNIMPLEMENTED, "the graph has other than one output");
    for (uint64_t i = 0; i < graph->nodes_count; i++) {
        OARLOCK_ENFORCE(is_taken(graph, graph->nodes[i]), OARLOCK_CODE_UNIMPLEMENTED, "expected nodes that were taken");
    }
    program = calloc(1, sizeof *program);
    OARLOCK_ENFORCE_NOT_NULL(program, OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory for a graph, received none");
    program->item.end = program_end;
    for (uint64_t i = 0; i < graph->inputs_count; i++) {
        if (graph->inputs[i] == origin(graph, graph->outputs[0])) {
            program->input = i;
        }
    }
    *executable = table_add(&programs, &program->item);
    return 0;
}

/* In the stream of the call: a compiled graph runs as a kernel does. */
static oarlock_error graph_run(void *context, oarlock_executable executable, const oarlock_call *call) {
    const oarlock_tensor *input;
    oarlock_call relu = *call;
    struct item *item;
    OARLOCK_TRY(table_find(&programs, executable, &item));
    if (((const struct program *)item)->input >= call->inputs_count) {
        item_release(item);
        return OARLOCK_FAIL(OARLOCK_CODE_INVALID_ARGUMENT, "expected the inputs of the compiled graph");
    }
    input = call->inputs[((const struct program *)item)->input];
    item_release(item);
    relu.inputs = &input;
    relu.inputs_count = 1;
    return sample_npu_relu(context, NULL, &relu);
}

static oarlock_error graph_destroy(void *context, oarlock_executable executable) {
    (void)context;
    return table_remove(&programs, executable);
}

static const oarlock_graph_table table = {
    OARLOCK_TABLE(oarlock_graph_table),
    .graph_supports = graph_supports,
    .graph_compile = graph_compile,
    .graph_run = graph_run,
    .graph_destroy = graph_destroy,
};

const oarlock_draft_profile sample_npu_graph = {
    OARLOCK_HEADER(oarlock_draft_profile),
    .profile = OARLOCK_STR("graph"),
    .number = OARLOCK_GRAPH_DRAFT,
    .table = &table,
};
