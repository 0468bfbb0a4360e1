// Reading and writing elements. Each dtype has a type it is stored in and a type it is computed in; where both are one,
// an element is read as it is. `INDEX` is the type of indices, `AT` the place of an operand in its block.
// An offset counts bytes, so the sum is taken on a pointer to bytes.
#define AT(type, block, offset) ((GLOBAL type *)((GLOBAL u8 *)(block) + (offset)))

#define PLAIN(type)                                                                             \
    INLINE type load_##type(GLOBAL const type *data, INDEX at) { return data[at]; }             \
    INLINE void store_##type(GLOBAL type *data, INDEX at, type value) { data[at] = value; }

PLAIN(i8)
PLAIN(u8)
PLAIN(i16)
PLAIN(u16)
PLAIN(i32)
PLAIN(u32)
PLAIN(i64)
PLAIN(u64)
PLAIN(f32)
#ifdef HAS_F64
PLAIN(f64)
#endif

// Any byte but 0 is true. Made 1 here, it can be compared and added.
INLINE u8 load_bool(GLOBAL const u8 *data, INDEX at) { return data[at] != 0; }
INLINE void store_bool(GLOBAL u8 *data, INDEX at, u8 value) { data[at] = value != 0; }

// By address: without an extension, OpenCL converts f16 only on the way from and to memory.
INLINE f32 load_f16(GLOBAL const u16 *data, INDEX at) { return f32_of_f16(data + at); }
INLINE void store_f16(GLOBAL u16 *data, INDEX at, f32 value) { f16_of_f32(data + at, value); }

// The upper half of an f32, so shifts convert it and no device needs support for it.
INLINE f32 load_bf16(GLOBAL const u16 *data, INDEX at) { return F32_OF_BITS((u32)data[at] << 16); }
INLINE void store_bf16(GLOBAL u16 *data, INDEX at, f32 value) {
    u32 bits = BITS_OF_F32(value);
    // Rounds to nearest, ties to even; a NaN stays one.
    u32 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    data[at] = (u16)(value != value ? (bits >> 16) | 0x40u : rounded);
}

#define FIRST_INDEX ((INDEX)GROUP * BLOCK_X + LOCAL_X)
