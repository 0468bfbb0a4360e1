// The index of the greatest or smallest element of each row. The first NaN is greater and smaller than all.
struct shape {
    i64 length, inner, rows;
};

INLINE int is_better(T x, i64 x_at, T y, i64 y_at) {
    if (IS_NAN(x) || IS_NAN(y)) return IS_NAN(x) && (!IS_NAN(y) || x_at < y_at);
    // Ties go by position, so the result does not depend on which work-item saw an element first.
    if (x == y) return IS_LAST ? x_at > y_at : x_at < y_at;
    return IS_MAX ? x > y : x < y;
}

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
    SCRATCH(T);
#if COOPERATIVE
    LOCAL i64 places[BLOCK_X];
#endif
{{places}}
    STOP_BEHIND(shape.rows);
    INDEX length = (INDEX)shape.length, inner = (INDEX)shape.inner;
    // A row lies along the middle of three dimensions; its elements are `inner` apart.
    INDEX start = ROW / inner * length * inner + ROW % inner;
    // Work-items without an element repeat one that counts anyway.
    INDEX first = LANE < length ? LANE : 0;
    T best = LOAD_A(a, start + first * inner);
    i64 best_at = first;
    for (INDEX j = first + LANES; j < length; j += LANES) {
        T value = LOAD_A(a, start + j * inner);
        if (is_better(value, j, best, best_at)) {
            best = value;
            best_at = j;
        }
    }
#if COOPERATIVE
    scratch[LANE] = best;
    places[LANE] = best_at;
    BARRIER;
    // A tree of its own: it carries a position with each element, and TREE carries one value.
    for (int width = LANES / 2; width > 0; width /= 2) {
        if (LANE < width && is_better(scratch[LANE + width], places[LANE + width], scratch[LANE], places[LANE])) {
            scratch[LANE] = scratch[LANE + width];
            places[LANE] = places[LANE + width];
        }
        BARRIER;
    }
    best_at = places[0];
#endif
    if (LANE == 0) STORE_Y(y, ROW, best_at);
}
