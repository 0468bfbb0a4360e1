//! A block of tiles: what the matrix unit multiplies at once.

/// Bytes of a cache line. Rows are whole lines.
pub const LINE_BYTES: usize = 64;
/// Lines of a tile: rows on the left, and columns on the right, each of which has four bytes of a line.
pub const TILE_LINES: usize = 16;
/// The maximum number of rows and columns of a block: two tiles, so that each loaded tile is used twice.
pub const BLOCK_LINES: usize = 2 * TILE_LINES;

/// The operands of a block.
pub struct BlockOperands {
    /// The address of the rows, their number, and their distance in bytes. Whole tiles of rows are read, and the sums of excess
    /// rows are not used.
    pub left: *const u8,
    pub rows: usize,
    pub stride: usize,
    /// For each four bytes of a row, those of all columns, which are one tile or two.
    pub right: *const u8,
    pub tiles: usize,
    /// Cache lines per row.
    pub lines: usize,
    /// The memory to prefetch, and how many bytes of it with each line.
    pub soon: *const u8,
    pub share: usize,
}
