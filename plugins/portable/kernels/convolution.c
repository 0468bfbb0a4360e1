// Convolution in two dimensions: each work-item computes one element of the output.
struct shape {
    i64 count, channels, height, width, out_channels, out_height, out_width, group_in, group_out;
    i64 window_height, window_width, stride_y, stride_x, dilation_y, dilation_x, pad_y, pad_x;
};

KERNEL oarlock_kernel({{parameters}}struct shape shape) {
{{places}}
    INDEX i = FIRST_INDEX;
    // The last work-group is full, so it has work-items past the last element.
    if (i >= (INDEX)shape.count) return;
    // The column varies fastest: neighbors read neighboring columns of the image and share each weight.
    INDEX x = i % (INDEX)shape.out_width, rest = i / (INDEX)shape.out_width;
    INDEX row = rest % (INDEX)shape.out_height;
    rest /= (INDEX)shape.out_height;
    INDEX out = rest % (INDEX)shape.out_channels, image = rest / (INDEX)shape.out_channels;
    INDEX first = out / (INDEX)shape.group_out * (INDEX)shape.group_in;
    INDEX area = (INDEX)shape.height * (INDEX)shape.width;
    INDEX window = (INDEX)shape.window_height * (INDEX)shape.window_width;
    // Negative in the padding, so indices are signed.
    INDEX left = x * (INDEX)shape.stride_x - (INDEX)shape.pad_x;
    INDEX top = row * (INDEX)shape.stride_y - (INDEX)shape.pad_y;
    // One work-item adds up the whole window, so the order of the additions depends on the shape alone.
    T sum = 0;
    for (INDEX channel = 0; channel < (INDEX)shape.group_in; ++channel) {
        INDEX from = (image * (INDEX)shape.channels + first + channel) * area;
        INDEX weights = (out * (INDEX)shape.group_in + channel) * window;
        for (INDEX v = 0; v < (INDEX)shape.window_height; ++v) {
            INDEX at_y = top + v * (INDEX)shape.dilation_y;
            // What lies in the padding is 0 and adds nothing, so it is skipped and never read.
            if (at_y < 0 || at_y >= (INDEX)shape.height) continue;
            for (INDEX u = 0; u < (INDEX)shape.window_width; ++u) {
                INDEX at_x = left + u * (INDEX)shape.dilation_x;
                if (at_x < 0 || at_x >= (INDEX)shape.width) continue;
                sum += LOAD_A(a, from + at_y * (INDEX)shape.width + at_x)
                     * LOAD_B(b, weights + v * (INDEX)shape.window_width + u);
            }
        }
    }
#ifdef LOAD_C
    sum += LOAD_C(c, out);
#endif
    STORE_Y(y, i, sum);
}
