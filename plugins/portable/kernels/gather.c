// Takes parts of `a` by the indices in `b`. An index outside gives zeros: it is known on the device alone, and nothing
// outside is read.
struct shape {
    i64 axis, indices, inner, count;
};

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
{{places}}
    INDEX i = FIRST_INDEX;
    if (i >= (INDEX)shape.count) return;
    INDEX inner = i % (INDEX)shape.inner, rest = i / (INDEX)shape.inner;
    INDEX outer = rest / (INDEX)shape.indices;
    i64 index = (i64)LOAD_B(b, rest % (INDEX)shape.indices);
    if (index < 0) index += shape.axis;
    int inside = index >= 0 && index < shape.axis;
    STORE_Y(y, i, inside ? LOAD_A(a, (outer * (INDEX)shape.axis + (INDEX)index) * (INDEX)shape.inner + inner) : 0);
}
