// The greatest element or the mean of a window in two dimensions. A mean counts what lies in the padding only if asked to,
// and what lies behind it never.
struct shape {
    i64 count, height, width, out_height, out_width, window_height, window_width;
    i64 stride_y, stride_x, dilation_y, dilation_x, pad_y, pad_x, end_y, end_x, counts_pads;
};

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
{{places}}
    INDEX i = FIRST_INDEX;
    if (i >= (INDEX)shape.count) return;
    INDEX x = i % (INDEX)shape.out_width, rest = i / (INDEX)shape.out_width;
    INDEX row = rest % (INDEX)shape.out_height, plane = rest / (INDEX)shape.out_height;
    INDEX left = x * (INDEX)shape.stride_x - (INDEX)shape.pad_x;
    INDEX top = row * (INDEX)shape.stride_y - (INDEX)shape.pad_y;
    T result = IS_MAX ? -INFINITE : (T)0;
    // No row of the window is skipped as a whole: elements outside of the image may count.
    INDEX counted = 0;
    for (INDEX v = 0; v < (INDEX)shape.window_height; ++v) {
        INDEX at_y = top + v * (INDEX)shape.dilation_y;
        for (INDEX u = 0; u < (INDEX)shape.window_width; ++u) {
            INDEX at_x = left + u * (INDEX)shape.dilation_x;
            int inside = at_y >= 0 && at_y < (INDEX)shape.height && at_x >= 0 && at_x < (INDEX)shape.width;
            counted += inside || (shape.counts_pads && at_y < (INDEX)shape.end_y && at_x < (INDEX)shape.end_x);
            if (inside) {
                T value = LOAD_A(a, (plane * (INDEX)shape.height + at_y) * (INDEX)shape.width + at_x);
                // Not `maximum`, which keeps NaN: a pool skips it, as on the CPU and in onnxruntime.
                result = !IS_MAX ? plus(result, value) : value > result ? value : result;
            }
        }
    }
    // A window may lie in the padding alone. Its mean is 0 then, and not 0 / 0.
    STORE_Y(y, i, IS_MAX ? result : (T)(result / (T)(counted > 0 ? counted : 1)));
}
