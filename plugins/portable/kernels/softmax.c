// Each row is scaled so that its exponentials sum up to 1.
struct shape {
    i64 length, inner, rows;
};

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
    SCRATCH(T);
{{places}}
    STOP_BEHIND(shape.rows);
    INDEX length = (INDEX)shape.length, inner = (INDEX)shape.inner;
    INDEX start = ROW / inner * length * inner + ROW % inner;
    // The greatest element is subtracted, because `exp` overflows for large numbers. The quotient stays the same.
    T greatest = -INFINITE;
    for (INDEX j = LANE; j < length; j += LANES) greatest = maximum(greatest, LOAD_A(a, start + j * inner));
    TREE(greatest, maximum)
    T sum = 0;
    for (INDEX j = LANE; j < length; j += LANES) sum += exp(LOAD_A(a, start + j * inner) - greatest);
    TREE(sum, plus)
    T log_sum = log(sum);
    for (INDEX j = LANE; j < length; j += LANES) {
        // Safe in place: each work-item overwrites only elements that no other will read again.
        INDEX at = start + j * inner;
        T value = LOAD_A(a, at) - greatest;
        STORE_Y(y, at, IS_LOG ? value - log_sum : exp(value) / sum);
    }
}
