// Takes parts of `a` by the indices in `b`. Nothing outside of `a` is read: an index that leads there gives zeros,
// and the host is told through `fault`.
struct shape {
    i64 axis, indices, inner, count;
};

KERNEL oarlock_kernel({{parameters}}struct shape shape, GLOBAL u32 *fault) {
{{places}}
    INDEX i = FIRST_INDEX;
    if (i >= (INDEX)shape.count) return;
    INDEX inner = i % (INDEX)shape.inner, rest = i / (INDEX)shape.inner;
    INDEX outer = rest / (INDEX)shape.indices;
    // In 64 bits whatever INDEX is: the index is data and may be any number.
    i64 index = (i64)LOAD_B(b, rest % (INDEX)shape.indices);
    if (index < 0) index += shape.axis;
    int inside = index >= 0 && index < shape.axis;
    // No atomic: all work-items that write here write the same number.
    if (!inside) *fault = 1;
    STORE_Y(y, i, inside ? LOAD_A(a, (outer * (INDEX)shape.axis + (INDEX)index) * (INDEX)shape.inner + inner) : 0);
}
