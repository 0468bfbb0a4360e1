// Reductions. Where work-items work together (`COOPERATIVE`), a work-group has a row of elements: each work-item takes
// every LANES-th, and a tree in local memory makes one of what they have found, always in the same order. Where they do
// not, each work-item has a row for itself.
#if COOPERATIVE
#define ROW ((INDEX)GROUP)
#define LANE LOCAL_X
#define LANES BLOCK_X
#define SCRATCH(type) LOCAL type scratch[BLOCK_X]
// Empty: there are as many work-groups as rows, and a work-item that returned would be missing at the barriers.
#define STOP_BEHIND(rows)
// BLOCK_X is a power of two, so halving leaves nobody out. Everyone reaches each barrier; only the combining is conditional. The last
// barrier protects scratch[0] from the next tree until all have read it.
#define TREE(value, combine)                                                                    \
    scratch[LANE] = value;                                                                      \
    BARRIER;                                                                                    \
    for (int width = LANES / 2; width > 0; width /= 2) {                                        \
        if (LANE < width) scratch[LANE] = combine(scratch[LANE], scratch[LANE + width]);        \
        BARRIER;                                                                                \
    }                                                                                           \
    value = scratch[0];                                                                         \
    BARRIER;
#else
#define ROW FIRST_INDEX
#define LANE 0
#define LANES 1
#define SCRATCH(type)
#define STOP_BEHIND(rows) if (ROW >= (INDEX)(rows)) return
#define TREE(value, combine)
#endif
