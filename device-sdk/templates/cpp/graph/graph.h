// What the profile `graph` shares with the other sources.
#ifndef SAMPLE_NPU_GRAPH_H
#define SAMPLE_NPU_GRAPH_H

#include "oarlock/contract_draft.h"
#include "sample_npu.h"

namespace sample_npu {

extern const oarlock_draft_profile graph_draft;

} // namespace sample_npu

#endif
