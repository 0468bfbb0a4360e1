/* What the profile `graph` shares with the other sources. */
#ifndef SAMPLE_NPU_GRAPH_H
#define SAMPLE_NPU_GRAPH_H

#include "oarlock/contract_draft.h"
#include "sample_npu.h"

#pragma GCC visibility push(hidden)

extern const oarlock_draft_profile sample_npu_graph;

#pragma GCC visibility pop

#endif
