// The dialect in OpenCL C 1.2.
#ifdef HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// OpenCL C fixes the sizes: `char` is signed, and `long` has 64 bits on every device.
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
#ifdef HAS_F64
typedef double f64;
#endif

// With the exact size the compiler can plan registers, and a launch of another size is an error.
#define KERNEL __kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void
#define INLINE static inline
#define GLOBAL __global
#define LOCAL __local
// OpenCL numbers work-items by `size_t`, which would make indices unsigned and 64 bits wide.
#define LOCAL_X ((int)get_local_id(0))
#define LOCAL_Y ((int)get_local_id(1))
#define GROUP get_group_id(0)
// Work-items exchange values through local memory only, so only its writes must be visible.
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define BITS_OF_F32(value) as_uint(value)
#define F32_OF_BITS(bits) as_float(bits)

// Both functions take `half` by pointer, which is allowed without cl_khr_fp16. `_rte` names the rounding.
INLINE f32 f32_of_f16(GLOBAL const u16 *place) { return vload_half(0, (GLOBAL const half *)place); }
INLINE void f16_of_f32(GLOBAL u16 *place, f32 value) { vstore_half_rte(value, 0, (GLOBAL half *)place); }
