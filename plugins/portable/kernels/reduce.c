// Reduces: a row is one element of the output, or one of several parts of it that are reduced again later.
{{walks}}
struct shape {
    i64 rows, reduced, parts, total;
};

INLINE T combine(T x, T y) { return {{combine}}; }
INLINE T transform(T x) { return {{transform}}; }

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
    SCRATCH(T);
{{places}}
    STOP_BEHIND(shape.rows);
    INDEX row = ROW / (INDEX)shape.parts, part = ROW % (INDEX)shape.parts;
{{kept}}
    // Rounded up, so the last parts are shorter or empty. An empty part gives the initial value, which changes nothing.
    INDEX length = ((INDEX)shape.reduced + (INDEX)shape.parts - 1) / (INDEX)shape.parts;
    INDEX first = part * length, end = first + length;
    if (end > (INDEX)shape.reduced) end = (INDEX)shape.reduced;
    T result = {{initial}};
    // In each round the work-items of a group take adjacent elements. Where these are adjacent in memory too, the reads join.
    for (INDEX j = first + LANE; j < end; j += LANES) {
{{reduced}}
        result = combine(result, transform((T)LOAD_A(a, a_at + x_at)));
    }
    TREE(result, combine)
    if (LANE == 0) {
        T x = result;
        STORE_Y(y, ROW, (R)({{finish}}));
    }
}
