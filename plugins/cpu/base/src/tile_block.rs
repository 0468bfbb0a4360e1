//! A block of AMX tiles, which are multiplied together.

/// Bytes of a cache line. Rows are padded to whole lines.
pub const TILE_ROW_BYTES: usize = 64;
/// Lines of a tile: rows on the left and columns on the right. A 64-byte line of a right tile has four bytes of each column.
pub const TILE_ROWS: usize = 16;
/// The maximum number of rows and columns of a block: two tiles, so that each loaded tile is used twice.
pub const BLOCK_ROWS: usize = 2 * TILE_ROWS;

/// The operands of a block.
pub struct BlockOperands {
    /// The address of the rows, their number, and their distance in bytes. Whole tiles of rows are read, and the sums of excess
    /// rows are not used.
    pub left: *const u8,
    pub rows: usize,
    pub stride: usize,
    /// For each four bytes of a row, the matching four bytes of all columns, one or two tiles wide.
    pub right: *const u8,
    pub tiles: usize,
    /// Cache lines per row.
    pub lines: usize,
    /// The address to prefetch from, and the bytes to prefetch with each line.
    pub soon: *const u8,
    pub share: usize,
}
