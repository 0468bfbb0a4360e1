//! Matrix products by cuBLASLt, in place of the portable ones where the library is there.
//!
//! Products of 32-bit numbers are computed with 32 bits; TF32, which is faster and drops bits, is not used.

#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cudarc::cublaslt::{result, sys};
use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, Result, Tensor, dtype_set};

use crate::context::{Context, Handle};
use crate::error::blas_failed;
use crate::product::Product;
use crate::state::Cuda;

/// More than the 100 of the portable row.
const SCORE: i32 = 200;

/// How much scratch memory a product gets, in bytes. It is what NVIDIA recommends for the newest chips.
const WORKSPACE: u64 = 32 << 20;

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

/// The rows. They are not marked as deterministic, since NVIDIA does not promise that for all algorithms.
pub(crate) fn kernels() -> Vec<Kernel<Cuda>> {
    let matrix = |name| Operand::new(FLOATS).group(1).named(name).rank(2, u32::MAX);
    let row = Kernel::new("MatMul", multiply)
        .score(SCORE)
        .flags(KernelFlags::ASYNCHRONOUS)
        .inputs([matrix("A"), matrix("B")])
        .outputs([matrix("Y")])
        .supports(|_, call| product(call).and_then(|_| check()))
        .workspace(|_, _| Ok(WORKSPACE));
    vec![row]
}

/// Refuses to go on without cuBLASLt.
fn check() -> Result<()> {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    // SAFETY: opening cuBLASLt runs nothing but its own start.
    if *IS_THERE.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Ok(());
    }
    Err(Error::unimplemented(
        "expected the library `libcublasLt.so.12`, found none; install cuBLAS of CUDA 12 for faster matrix products",
    ))
}

fn product(call: &Call<'_>) -> Result<Product> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    Product::new(y.dtype(), a.dims(), b.dims(), y.dims())
}

/// Where an operand of a call starts on the device.
fn address(session: &crate::session::Session, tensor: &Tensor<'_>) -> Result<u64> {
    let (block, offset) = tensor.place();
    session.blocks.sized(block, offset, tensor.size_in_bytes())
}

fn multiply(cuda: &Cuda, call: &Call<'_>) -> Result<()> {
    let product = product(call)?;
    let session = cuda.session(call.device())?;
    let queue = session.queue(call.stream())?;
    let operands = Operands {
        a: address(&session, &call.input(0)?)?,
        b: address(&session, &call.input(1)?)?,
        y: address(&session, &call.output(0)?)?,
        workspace: {
            let (block, offset, size) = call.workspace();
            (session.blocks.sized(block, offset, size)?, size)
        },
    };
    let blas = session.blas()?;
    queue.run(|_, stream| blas.multiply(&product, &operands, stream.cast()))
}

/// Where the operands of a product lie on the device. The scratch memory comes with its size.
pub(crate) struct Operands {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) y: u64,
    pub(crate) workspace: (u64, u64),
}

/// The library for one device.
pub(crate) struct Blas {
    handle: Handle<sys::cublasLtHandle_t>,
    context: Arc<Context>,
}

impl Blas {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        check()?;
        let _entered = context.enter()?;
        let handle = result::create_handle().map_err(|error| blas_failed("cublasLtCreate", error))?;
        Ok(Self { handle: Handle(handle), context: Arc::clone(context) })
    }

    /// Puts a product into a stream of the context, which is the current one.
    pub(crate) fn multiply(
        &self,
        product: &Product,
        operands: &Operands,
        stream: sys::cudaStream_t,
    ) -> Result<()> {
        let (kind, compute, scale) = types(product.dtype)?;
        let Product { rows, columns, depth, batch, steps, .. } = *product;
        let description = Description::new(compute, scale)?;
        let [a_step, b_step] = steps;
        let a = Layout::new(kind, depth, rows, (batch, a_step))?;
        let b = Layout::new(kind, columns, depth, (batch, b_step))?;
        let y = Layout::new(kind, columns, rows, (batch, (rows * columns).cast_signed()))?;
        let preference = Preference::new(operands)?;
        // SAFETY: all of these are alive. The factors change places, as the header of `product` says.
        let found = unsafe {
            result::get_matmul_algo_heuristic(self.handle.0, description.0, b.0, a.0, y.0, y.0, preference.0)
        };
        let found = found.map_err(|error| blas_failed("cublasLtMatmulAlgoGetHeuristic", error))?;
        let (one, nothing) = (Scale::new(scale, 1.0), Scale::new(scale, 0.0));
        let pointer = |address: u64| std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        let (workspace, workspace_size) = operands.workspace;
        // SAFETY: all of these are alive and the addresses lie in blocks with room for the matrices. `y` is read by nobody,
        // since it is scaled by 0.
        let code = unsafe {
            sys::cublasLtMatmul(
                self.handle.0,
                description.0,
                one.pointer(),
                pointer(operands.b),
                b.0,
                pointer(operands.a),
                a.0,
                nothing.pointer(),
                pointer(operands.y),
                y.0,
                pointer(operands.y),
                y.0,
                &raw const found.algo,
                pointer(workspace),
                workspace_size as usize,
                stream,
            )
        };
        code.result().map_err(|error| blas_failed("cublasLtMatmul", error))
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // There is nobody to tell of a failure, and on a device that is lost nothing is left to give back.
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the handle is alive and not used after this.
            let _ = unsafe { result::destroy_handle(self.handle.0) };
        }
    }
}

/// The dtype of the operands, of the sums, and of the scales.
fn types(dtype: Dtype) -> Result<(sys::cudaDataType, sys::cublasComputeType_t, sys::cudaDataType)> {
    use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F};
    use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F, CUDA_R_64F};
    match dtype {
        Dtype::F16 => Ok((CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        Dtype::BF16 => Ok((CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        Dtype::F32 => Ok((CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        Dtype::F64 => Ok((CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F)),
        other => Err(Error::unimplemented(format!(
            "expected a dtype of floating point, found {}",
            other.name().unwrap_or("an unknown one")
        ))),
    }
}

/// A number by which a product is scaled.
enum Scale {
    Single(f32),
    Double(f64),
}

impl Scale {
    fn new(kind: sys::cudaDataType, value: f64) -> Self {
        if kind == sys::cudaDataType_t::CUDA_R_64F { Self::Double(value) } else { Self::Single(value as f32) }
    }

    fn pointer(&self) -> *const c_void {
        match self {
            Self::Single(value) => (&raw const *value).cast(),
            Self::Double(value) => (&raw const *value).cast(),
        }
    }
}

/// What is computed: neither factor is transposed.
struct Description(sys::cublasLtMatmulDesc_t);

impl Description {
    fn new(compute: sys::cublasComputeType_t, scale: sys::cudaDataType) -> Result<Self> {
        let made = result::create_matmul_desc(compute, scale);
        Ok(Self(made.map_err(|error| blas_failed("cublasLtMatmulDescCreate", error))?))
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: it is alive and not used after this. There is nobody to tell of a failure, as below.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

/// How one operand lies in memory.
struct Layout(sys::cublasLtMatrixLayout_t);

impl Layout {
    /// Matrices whose columns, as the library counts, lie one after the other.
    fn new(kind: sys::cudaDataType, height: u64, width: u64, (batch, step): (i32, i64)) -> Result<Self> {
        use sys::cublasLtMatrixLayoutAttribute_t::{
            CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        };
        let made = result::create_matrix_layout(kind, height, width, height.cast_signed());
        let layout = Self(made.map_err(|error| blas_failed("cublasLtMatrixLayoutCreate", error))?);
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the layout is alive, and the value is of the type that the attribute has.
            unsafe { result::set_matrix_layout_attribute(layout.0, attribute, value, size) }
                .map_err(|error| blas_failed("cublasLtMatrixLayoutSetAttribute", error))
        };
        set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (&raw const batch).cast(), size_of::<i32>())?;
        set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, (&raw const step).cast(), size_of::<i64>())?;
        Ok(layout)
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

/// What an algorithm may count on.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    /// An algorithm that gets along with the scratch memory, and with where the operands start.
    fn new(operands: &Operands) -> Result<Self> {
        use sys::cublasLtMatmulPreferenceAttributes_t::{
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        };
        let made = result::create_matmul_pref();
        let preference = Self(made.map_err(|error| blas_failed("cublasLtMatmulPreferenceCreate", error))?);
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the preference is alive, and the value is of the type that the attribute has.
            unsafe { result::set_matmul_pref_attribute(preference.0, attribute, value, size) }
                .map_err(|error| blas_failed("cublasLtMatmulPreferenceSetAttribute", error))
        };
        let size = operands.workspace.1 as usize;
        set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (&raw const size).cast(), size_of::<usize>())?;
        // The factors change places, as in the product itself.
        for (attribute, address) in [
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, operands.b),
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, operands.a),
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, operands.y),
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, operands.y),
        ] {
            let alignment = 1u32 << address.trailing_zeros().min(8);
            set(attribute, (&raw const alignment).cast(), size_of::<u32>())?;
        }
        Ok(preference)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
