//! Matrix products with cuBLASLt.
//!
//! `f32` products use full 32-bit arithmetic; TF32, which is faster and drops 13 bits of the mantissa, is not used.

#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cudarc::cublaslt::{result, sys};
use oarlock_sdk::{Dtype, PluginError, Result, ensure};

use crate::context::{DriverHandle, PrimaryContext};
use crate::error::cublas_error;
use crate::libraries;
use crate::matmul_shape::MatmulShape;

/// Workspace limit of a product, in bytes: 32 MiB, as NVIDIA recommends for its newest chips.
pub(crate) const WORKSPACE_SIZE: u64 = 32 << 20;

/// Largest alignment that matters, as a power of two: the driver aligns blocks to 256 bytes.
const MAX_ALIGNMENT: u32 = 8;

pub(crate) fn check_cublas_available() -> Result<()> {
    static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
    let is_there = IS_AVAILABLE.get_or_init(|| {
        libraries::open_library(libraries::CUBLAS_LIBRARY);
        // SAFETY: opening cuBLASLt runs nothing but its own initialization.
        unsafe { sys::is_culib_present() }
    });
    if *is_there {
        return Ok(());
    }
    let missing = libraries::missing_library_message(libraries::CUBLAS_LIBRARY);
    Err(PluginError::unimplemented(format!("matrix products are faster with cuBLAS: expected the {missing}")))
}

/// Device addresses of the operands of a product; the workspace comes with its size.
pub(crate) struct MatmulAddresses {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) y: u64,
    pub(crate) workspace: (u64, u64),
}

/// The library's handle for one device.
pub(crate) struct CublasHandle {
    handle: DriverHandle<sys::cublasLtHandle_t>,
    context: Arc<PrimaryContext>,
}

impl CublasHandle {
    pub(crate) fn new(context: &Arc<PrimaryContext>) -> Result<Self> {
        check_cublas_available()?;
        let _entered = context.enter_context()?;
        let handle = result::create_handle().map_err(|error| cublas_error("cublasLtCreate", error))?;
        Ok(Self { handle: DriverHandle(handle), context: Arc::clone(context) })
    }
}

impl Drop for CublasHandle {
    fn drop(&mut self) {
        // `drop` cannot report a failure, and on a lost device nothing is left to free.
        if let Ok(_entered) = self.context.enter_context() {
            // SAFETY: the handle is alive and not used after this.
            let _ = unsafe { result::destroy_handle(self.handle.0) };
        }
    }
}

/// The library's description of a product, and the algorithms found for it. Neither belongs to a device, so this may outlive one.
pub(crate) struct CublasMatmul {
    description: MatmulDescriptor,
    a: MatrixLayout,
    b: MatrixLayout,
    y: MatrixLayout,
    one: MatmulScale,
    nothing: MatmulScale,
    /// Algorithms by the operands' common alignment, as a power of two.
    algorithms: [OnceLock<MatmulAlgorithm>; MAX_ALIGNMENT as usize + 1],
}

/// An algorithm of the library, with its workspace size.
#[derive(Clone, Copy)]
struct MatmulAlgorithm {
    algo: sys::cublasLtMatmulAlgo_t,
    workspace: u64,
}

impl CublasMatmul {
    /// Describes a product. The library picks an algorithm when the product first runs.
    pub(crate) fn new(product: &MatmulShape) -> Result<Self> {
        check_cublas_available()?;
        let (kind, compute, scale) = cublas_types(product.dtype)?;
        let MatmulShape { rows, columns, depth, batch, steps: [a_step, b_step], .. } = *product;
        Ok(Self {
            description: MatmulDescriptor::new(compute, scale)?,
            a: MatrixLayout::new(kind, depth, rows, (batch, a_step))?,
            b: MatrixLayout::new(kind, columns, depth, (batch, b_step))?,
            y: MatrixLayout::new(kind, columns, rows, (batch, (rows * columns).cast_signed()))?,
            one: MatmulScale::new(scale, 1.0),
            nothing: MatmulScale::new(scale, 0.0),
            algorithms: Default::default(),
        })
    }

    /// The algorithm for operands at these addresses, looked up once per alignment. The context must be current.
    fn select_algorithm(&self, blas: &CublasHandle, operands: &MatmulAddresses) -> Result<MatmulAlgorithm> {
        let alignment = (operands.a | operands.b | operands.y).trailing_zeros().min(MAX_ALIGNMENT);
        let kept = &self.algorithms[alignment as usize];
        if let Some(algorithm) = kept.get() {
            return Ok(*algorithm);
        }
        let preference = AlgorithmPreference::new(1 << alignment)?;
        let (a, b, y) = (self.a.0.0, self.b.0.0, self.y.0.0);
        // SAFETY: all of these are alive. The factors are swapped, as the head of `matmul_shape` explains.
        let found = unsafe {
            result::get_matmul_algo_heuristic(blas.handle.0, self.description.0.0, b, a, y, y, preference.0)
        };
        let found = found.map_err(|error| cublas_error("cublasLtMatmulAlgoGetHeuristic", error))?;
        let algorithm = MatmulAlgorithm { algo: found.algo, workspace: found.workspaceSize as u64 };
        Ok(*kept.get_or_init(|| algorithm))
    }

    /// Enqueues the product on a stream of the context, which must be current.
    pub(crate) fn enqueue_matmul(
        &self,
        blas: &CublasHandle,
        operands: &MatmulAddresses,
        stream: sys::cudaStream_t,
    ) -> Result<()> {
        let algorithm = self.select_algorithm(blas, operands)?;
        let (workspace, size) = operands.workspace;
        ensure!(
            algorithm.workspace <= size,
            invalid_argument,
            "expected a workspace of {} bytes, found {size}",
            algorithm.workspace
        );
        let pointer = |address: u64| std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        let (a, b, y) = (self.a.0.0, self.b.0.0, self.y.0.0);
        // SAFETY: all of these are alive, and the addresses lie in blocks with room for the matrices. `y` is not read, since its
        // scale is 0.
        let code = unsafe {
            sys::cublasLtMatmul(
                blas.handle.0,
                self.description.0.0,
                self.one.as_pointer(),
                pointer(operands.b),
                b,
                pointer(operands.a),
                a,
                self.nothing.as_pointer(),
                pointer(operands.y),
                y,
                pointer(operands.y),
                y,
                &raw const algorithm.algo,
                pointer(workspace),
                size as usize,
                stream,
            )
        };
        code.result().map_err(|error| cublas_error("cublasLtMatmul", error))
    }
}

/// Library types of the operands, of the accumulator, and of the scales.
fn cublas_types(dtype: Dtype) -> Result<(sys::cudaDataType, sys::cublasComputeType_t, sys::cudaDataType)> {
    use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F};
    use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F, CUDA_R_64F};
    match dtype {
        Dtype::F16 => Ok((CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        Dtype::BF16 => Ok((CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        Dtype::F32 => Ok((CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        Dtype::F64 => Ok((CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F)),
        other => Err(PluginError::unimplemented(format!(
            "expected a dtype of floating point, found {}",
            other.name().unwrap_or("an unknown one")
        ))),
    }
}

/// A scale of a product, in the type that the library reads.
enum MatmulScale {
    Single(f32),
    Double(f64),
}

impl MatmulScale {
    fn new(kind: sys::cudaDataType, value: f64) -> Self {
        if kind == sys::cudaDataType_t::CUDA_R_64F { Self::Double(value) } else { Self::Single(value as f32) }
    }

    fn as_pointer(&self) -> *const c_void {
        match self {
            Self::Single(value) => (&raw const *value).cast(),
            Self::Double(value) => (&raw const *value).cast(),
        }
    }
}

/// Describes the computation: neither factor is transposed.
struct MatmulDescriptor(DriverHandle<sys::cublasLtMatmulDesc_t>);

impl MatmulDescriptor {
    fn new(compute: sys::cublasComputeType_t, scale: sys::cudaDataType) -> Result<Self> {
        let made = result::create_matmul_desc(compute, scale);
        Ok(Self(DriverHandle(made.map_err(|error| cublas_error("cublasLtMatmulDescCreate", error))?)))
    }
}

impl Drop for MatmulDescriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive and not used after this. `drop` cannot report a failure, here and below.
        let _ = unsafe { result::destroy_matmul_desc(self.0.0) };
    }
}

/// Memory layout of one operand.
struct MatrixLayout(DriverHandle<sys::cublasLtMatrixLayout_t>);

impl MatrixLayout {
    /// A batch of contiguous matrices, column-major as the library counts.
    fn new(kind: sys::cudaDataType, height: u64, width: u64, (batch, step): (i32, i64)) -> Result<Self> {
        use sys::cublasLtMatrixLayoutAttribute_t::{
            CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        };
        let made = result::create_matrix_layout(kind, height, width, height.cast_signed());
        let layout =
            Self(DriverHandle(made.map_err(|error| cublas_error("cublasLtMatrixLayoutCreate", error))?));
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the layout is alive, and the value has the type of the attribute.
            unsafe { result::set_matrix_layout_attribute(layout.0.0, attribute, value, size) }
                .map_err(|error| cublas_error("cublasLtMatrixLayoutSetAttribute", error))
        };
        set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (&raw const batch).cast(), size_of::<i32>())?;
        set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, (&raw const step).cast(), size_of::<i64>())?;
        Ok(layout)
    }
}

impl Drop for MatrixLayout {
    fn drop(&mut self) {
        // SAFETY: the layout is alive and not used after this.
        let _ = unsafe { result::destroy_matrix_layout(self.0.0) };
    }
}

/// Constraints on an algorithm.
struct AlgorithmPreference(sys::cublasLtMatmulPreference_t);

impl AlgorithmPreference {
    /// Limits the workspace, and states the alignment of the operands.
    fn new(alignment: u32) -> Result<Self> {
        use sys::cublasLtMatmulPreferenceAttributes_t::{
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        };
        let made = result::create_matmul_pref();
        let preference = Self(made.map_err(|error| cublas_error("cublasLtMatmulPreferenceCreate", error))?);
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the preference is alive, and the value has the type of the attribute.
            unsafe { result::set_matmul_pref_attribute(preference.0, attribute, value, size) }
                .map_err(|error| cublas_error("cublasLtMatmulPreferenceSetAttribute", error))
        };
        let size = WORKSPACE_SIZE as usize;
        set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (&raw const size).cast(), size_of::<usize>())?;
        for attribute in [
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        ] {
            set(attribute, (&raw const alignment).cast(), size_of::<u32>())?;
        }
        Ok(preference)
    }
}

impl Drop for AlgorithmPreference {
    fn drop(&mut self) {
        // SAFETY: the preference is alive and not used after this.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
