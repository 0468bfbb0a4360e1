// Copies `a` into a larger box. What lies outside of `a` is taken from inside of it.
#define EDGE 0
#define REFLECT 1
#define WRAP 2

struct shape {
    i64 count, dims[RANK], sizes[RANK], begins[RANK], steps[RANK];
};

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
{{places}}
    INDEX i = FIRST_INDEX;
    if (i >= (INDEX)shape.count) return;
    INDEX rest = i, a_at = 0;
    // RANK is a constant, so the compiler can unroll the loop.
    for (int axis = RANK - 1; axis >= 0; --axis) {
        i64 size = shape.sizes[axis];
        // In 64 bits: pads are numbers of the model, and a reflection doubles a size.
        i64 at = (i64)(rest % (INDEX)shape.dims[axis]) - shape.begins[axis];
        rest /= (INDEX)shape.dims[axis];
        if (MODE == EDGE) {
            at = at < 0 ? 0 : at < size ? at : size - 1;
        } else {
            // There and back, without the ends twice, or from the start again.
            i64 period = MODE == WRAP ? size : size > 1 ? 2 * (size - 1) : 1;
            at %= period;
            if (at < 0) at += period;
            if (at >= size) at = period - at;
        }
        a_at += (INDEX)at * (INDEX)shape.steps[axis];
    }
    STORE_Y(y, i, LOAD_A(a, a_at));
}
