// Matrix products: a work-group computes a tile of TILE x TILE elements, each work-item EACH x EACH of them, and both
// factors pass through local memory in slices of DEPTH. Every factor has its own steps, so transposing costs nothing.
// Each slice is read from global memory once per work-group and then used TILE times. EACH x EACH sums fit into registers, and DEPTH
// keeps both slices small enough for several work-groups to share the local memory of a compute unit.
#define TILE 64
#define DEPTH 16
#define EACH 4
#define SIDE 16
#define ITEMS (SIDE * SIDE)

struct shape {
    i64 m, n, k;
    i64 a_row, a_column, b_row, b_column, c_row, c_column;
};

{{walk}}
KERNEL oarlock_kernel({{parameters}}struct shape shape) {
    // One element more than TILE: with rows of 64, items that store along the depth would all hit one bank of local memory.
    LOCAL A tile_a[DEPTH][TILE + 1];
    LOCAL A tile_b[DEPTH][TILE + 1];
{{places}}
    INDEX m = (INDEX)shape.m, n = (INDEX)shape.n, k = (INDEX)shape.k;
    INDEX across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    INDEX group = (INDEX)GROUP;
    // Columns vary fastest, so work-groups with adjacent numbers read the same rows of `a`.
    INDEX first_column = group % across * TILE;
    group /= across;
    INDEX first_row = group % down * TILE;
    INDEX i = group / down;
{{steps}}
    INDEX y_at = i * m * n;
    // No work-item returns early, even beyond the edge: all of them load, and all must reach the barriers.
    int lane = LOCAL_Y * SIDE + LOCAL_X;
    // All loops over EACH have constant bounds. Unrolled, they leave no index behind, and the arrays stay in registers.
    A sum[EACH][EACH];
    for (int row = 0; row < EACH; ++row)
        for (int column = 0; column < EACH; ++column) sum[row][column] = 0;

    for (INDEX slice = 0; slice < k; slice += DEPTH) {
        for (int part = 0; part < TILE * DEPTH / ITEMS; ++part) {
            int cell = part * ITEMS + lane;
            // Neighbors read neighbors, whichever way a factor lies.
            int deep_a = A_ALONG_DEPTH ? cell % DEPTH : cell / TILE, row = A_ALONG_DEPTH ? cell / DEPTH : cell % TILE;
            int deep_b = B_ALONG_DEPTH ? cell % DEPTH : cell / TILE, column = B_ALONG_DEPTH ? cell / DEPTH : cell % TILE;
            // Zeros fill up the slice. Beyond the depth both factors are 0, so the product is 0 whatever else they hold.
            int inside_a = first_row + row < m && slice + deep_a < k;
            int inside_b = first_column + column < n && slice + deep_b < k;
            tile_a[deep_a][row] = inside_a ? (A)LOAD_A(a, a_at + (first_row + row) * (INDEX)shape.a_row
                                                              + (slice + deep_a) * (INDEX)shape.a_column) : (A)0;
            tile_b[deep_b][column] = inside_b ? (A)LOAD_B(b, b_at + (slice + deep_b) * (INDEX)shape.b_row
                                                                 + (first_column + column) * (INDEX)shape.b_column) : (A)0;
        }
        // The slice is complete before anyone multiplies.
        BARRIER;
        for (int deep = 0; deep < DEPTH; ++deep) {
            // Elements are SIDE apart: neighbors read adjacent elements from local memory, and below they store adjacent ones.
            A left[EACH], right[EACH];
            for (int row = 0; row < EACH; ++row) left[row] = tile_a[deep][LOCAL_Y + row * SIDE];
            for (int column = 0; column < EACH; ++column) right[column] = tile_b[deep][LOCAL_X + column * SIDE];
            for (int row = 0; row < EACH; ++row)
                for (int column = 0; column < EACH; ++column) sum[row][column] += left[row] * right[column];
        }
        // Nobody loads the next slice while others still read this one.
        BARRIER;
    }
    for (int row = 0; row < EACH; ++row) {
        for (int column = 0; column < EACH; ++column) {
            INDEX at_row = first_row + LOCAL_Y + row * SIDE, at_column = first_column + LOCAL_X + column * SIDE;
            // Only the store has to stay inside.
            if (at_row < m && at_column < n) {
                A value = sum[row][column];
#ifdef SCALED
                value = alpha * value;
#endif
#ifdef LOAD_C
                value += beta * (A)LOAD_C(c, at_row * (INDEX)shape.c_row + at_column * (INDEX)shape.c_column);
#endif
                STORE_Y(y, y_at + at_row * n + at_column, (R)value);
            }
        }
    }
}
