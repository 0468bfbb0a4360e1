// Each row is shifted and scaled to mean 0 and variance 1, then by `b` and, if it is there, `c`. Run for a statistic, the mean
// of each row or the inverse of its deviation is all that is written.
struct shape {
    i64 length, rows;
};

KERNEL oarlock_kernel({{parameters}}struct shape shape, F epsilon) {
    SCRATCH(T);
{{places}}
    STOP_BEHIND(shape.rows);
    INDEX length = (INDEX)shape.length, start = ROW * length;
    // Each loop reads the row again, because a row may be longer than local memory.
    T mean = 0;
    for (INDEX j = LANE; j < length; j += LANES) mean += LOAD_A(a, start + j);
    TREE(mean, plus)
    mean /= (T)shape.length;
    // From the differences. The mean of the squares minus the square of the mean would cancel most digits where the mean is large.
    T variance = 0;
    for (INDEX j = LANE; j < length; j += LANES) {
        T difference = LOAD_A(a, start + j) - mean;
        variance += difference * difference;
    }
    TREE(variance, plus)
    // One division and one root per row; the loop below only multiplies.
    T scale = 1 / sqrt(variance / (T)shape.length + epsilon);
#ifdef STORE_MEANS
    if (LANE == 0) STORE_MEANS(means, ROW, mean);
#elif defined STORE_SCALES
    if (LANE == 0) STORE_SCALES(scales, ROW, scale);
#else
    for (INDEX j = LANE; j < length; j += LANES) {
        T value = (LOAD_A(a, start + j) - mean) * scale * LOAD_B(b, j);
#ifdef LOAD_C
        value += LOAD_C(c, j);
#endif
        STORE_Y(y, start + j, value);
    }
#endif
}
