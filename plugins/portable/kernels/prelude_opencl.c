// The dialect in OpenCL C 1.2.
#ifdef HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

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

#define KERNEL __kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void
#define INLINE static inline
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_X ((int)get_local_id(0))
#define LOCAL_Y ((int)get_local_id(1))
#define GROUP get_group_id(0)
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define BITS_OF_F32(value) as_uint(value)
#define F32_OF_BITS(bits) as_float(bits)

INLINE f32 f32_of_f16(GLOBAL const u16 *place) { return vload_half(0, (GLOBAL const half *)place); }
INLINE void f16_of_f32(GLOBAL u16 *place, f32 value) { vstore_half_rte(value, 0, (GLOBAL half *)place); }
