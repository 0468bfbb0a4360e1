// The profile `graph`, which is a DRAFT: the chip compiles a part of a model and runs it as a whole.
//
// Today no host calls it. It reports that the plugin has draft 1 of `graph`, and uses the plugin without: the kernels go on to
// do the work. The table may change with any version; then its number, `OARLOCK_GRAPH_DRAFT`, does too.
//
// This compiler takes `Relu` alone: a graph of them is one `Relu`, however many it has.

#include "graph.h"

namespace sample_npu {
namespace {

/// A compiled graph: which input the one output is made of.
struct Program {
    uint64_t input;
};

HandleTable<Program> programs;

bool is_taken(const oarlock_graph *graph, const oarlock_graph_node *node) {
    return oarlock_equals(node->op, "Relu") && node->domain.size == 0 && node->inputs_count == 1 &&
        node->inputs[0] < graph->values_count && graph->values[node->inputs[0]]->dtype == OARLOCK_DTYPE_F32;
}

/// Writes as many answers as fit, and says how many nodes there are.
void graph_supports(uint32_t device, const oarlock_graph *graph, uint8_t *taken, uint64_t capacity, uint64_t *count) {
    check(device);
    for (uint64_t i = 0; i < graph->nodes_count && i < capacity; i++) {
        taken[i] = is_taken(graph, graph->nodes[i]);
    }
    *count = graph->nodes_count;
}

/// The value that the chain of nodes which makes `value` begins with. Nodes are in topological order.
uint32_t origin(const oarlock_graph *graph, uint32_t value) {
    for (uint64_t i = graph->nodes_count; i-- > 0;) {
        const oarlock_graph_node *node = graph->nodes[i];
        if (node->outputs_count == 1 && node->outputs[0] == value) {
            value = node->inputs[0];
        }
    }
    return value;
}

void graph_compile(uint32_t device, const oarlock_graph *graph, const oarlock_attribute *const *, uint64_t,
    oarlock_executable *executable) {
    check(device);
    bool is_whole = graph->outputs_count == 1;
    for (uint64_t i = 0; i < graph->nodes_count; i++) {
        is_whole = is_whole && is_taken(graph, graph->nodes[i]);
    }
    if (!is_whole) {
        OARLOCK_THROW(OARLOCK_CODE_UNIMPLEMENTED, "expected nodes that were taken and one output");
    }
    for (uint64_t i = 0; i < graph->inputs_count; i++) {
        if (graph->inputs[i] == origin(graph, graph->outputs[0])) {
            *executable = programs.add(std::make_shared<Program>(Program{i}));
            return;
        }
    }
    OARLOCK_THROW(OARLOCK_CODE_INVALID_ARGUMENT, "expected an output that is made of an input");
}

/// In the stream of the call: a compiled graph runs as a kernel does.
void graph_run(oarlock_executable executable, const oarlock_call *call) {
    const uint64_t input = programs.find(executable)->input;
    if (input >= call->inputs_count) {
        OARLOCK_THROW(OARLOCK_CODE_INVALID_ARGUMENT, "expected the inputs of the compiled graph");
    }
    oarlock_call relu = *call;
    relu.inputs = call->inputs + input;
    relu.inputs_count = 1;
    run_relu(nullptr, &relu);
}

void graph_destroy(oarlock_executable executable) {
    programs.remove(executable);
}

constexpr oarlock_graph_table graph_table = [] {
    auto table = oarlock::make_table<oarlock_graph_table>();
    table.graph_supports = oarlock::slot<graph_supports>;
    table.graph_compile = oarlock::slot<graph_compile>;
    table.graph_run = oarlock::slot<graph_run>;
    table.graph_destroy = oarlock::slot<graph_destroy>;
    return table;
}();

} // namespace

const oarlock_draft_profile graph_draft = [] {
    auto draft = oarlock::make<oarlock_draft_profile>();
    draft.profile = oarlock::str("graph");
    draft.number = OARLOCK_GRAPH_DRAFT;
    draft.table = &graph_table;
    return draft;
}();

} // namespace sample_npu
