//! cuBLASLt, which multiplies matrices.
//!
//! Products of 32-bit numbers are computed with 32 bits; TF32, which is faster and drops bits, is not used.

#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cudarc::cublaslt::{result, sys};
use oarlock_sdk::{Dtype, PluginError, Result, ensure};

use crate::context::{DriverHandle, PrimaryContext};
use crate::error::cublas_error;
use crate::libraries;
use crate::matmul_shape::MatmulShape;

/// How much scratch memory a product may take, in bytes. It is what NVIDIA recommends for the newest chips.
pub(crate) const WORKSPACE_SIZE: u64 = 32 << 20;

/// The largest alignment that makes a difference, as a power of two: blocks of the driver have it.
const MAX_ALIGNMENT: u32 = 8;

/// Refuses to go on without cuBLASLt.
pub(crate) fn check_cublas_available() -> Result<()> {
    static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
    let is_there = IS_AVAILABLE.get_or_init(|| {
        libraries::open_library(libraries::CUBLAS_LIBRARY);
        // SAFETY: opening cuBLASLt runs nothing but its own start.
        unsafe { sys::is_culib_present() }
    });
    if *is_there {
        return Ok(());
    }
    let missing = libraries::missing_library_message(libraries::CUBLAS_LIBRARY);
    Err(PluginError::unimplemented(format!("matrix products are faster with cuBLAS: expected the {missing}")))
}

/// Where the operands of a product lie on the device. The scratch memory comes with its size.
pub(crate) struct MatmulAddresses {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) y: u64,
    pub(crate) workspace: (u64, u64),
}

/// The library for one device.
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
        // There is nobody to tell of a failure, and on a device that is lost nothing is left to give back.
        if let Ok(_entered) = self.context.enter_context() {
            // SAFETY: the handle is alive and not used after this.
            let _ = unsafe { result::destroy_handle(self.handle.0) };
        }
    }
}

/// What the library is told of a product, and the ways it found to compute it. Nothing of it belongs to a device, so that
/// it may outlive one.
pub(crate) struct CublasMatmul {
    description: MatmulDescriptor,
    a: MatrixLayout,
    b: MatrixLayout,
    y: MatrixLayout,
    one: MatmulScale,
    nothing: MatmulScale,
    /// The ways, by the alignment that all operands have, as a power of two.
    algorithms: [OnceLock<MatmulAlgorithm>; MAX_ALIGNMENT as usize + 1],
}

/// A way to compute a product, and the scratch memory it takes.
#[derive(Clone, Copy)]
struct MatmulAlgorithm {
    algo: sys::cublasLtMatmulAlgo_t,
    workspace: u64,
}

impl CublasMatmul {
    /// Describes a product. The library itself decides about it when it is first computed.
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

    /// The way for operands at these places. It is looked for once, with the context current.
    fn select_algorithm(&self, blas: &CublasHandle, operands: &MatmulAddresses) -> Result<MatmulAlgorithm> {
        let alignment = (operands.a | operands.b | operands.y).trailing_zeros().min(MAX_ALIGNMENT);
        let kept = &self.algorithms[alignment as usize];
        if let Some(algorithm) = kept.get() {
            return Ok(*algorithm);
        }
        let preference = AlgorithmPreference::new(1 << alignment)?;
        let (a, b, y) = (self.a.0.0, self.b.0.0, self.y.0.0);
        // SAFETY: all of these are alive. The factors change places, as the header of `product` says.
        let found = unsafe {
            result::get_matmul_algo_heuristic(blas.handle.0, self.description.0.0, b, a, y, y, preference.0)
        };
        let found = found.map_err(|error| cublas_error("cublasLtMatmulAlgoGetHeuristic", error))?;
        let algorithm = MatmulAlgorithm { algo: found.algo, workspace: found.workspaceSize as u64 };
        Ok(*kept.get_or_init(|| algorithm))
    }

    /// Puts the product into a stream of the context, which is the current one.
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
        // SAFETY: all of these are alive and the addresses lie in blocks with room for the matrices. `y` is read by nobody,
        // since it is scaled by 0.
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

/// The dtype of the operands, of the sums, and of the scales.
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

/// A number by which a product is scaled.
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

/// What is computed: neither factor is transposed.
struct MatmulDescriptor(DriverHandle<sys::cublasLtMatmulDesc_t>);

impl MatmulDescriptor {
    fn new(compute: sys::cublasComputeType_t, scale: sys::cudaDataType) -> Result<Self> {
        let made = result::create_matmul_desc(compute, scale);
        Ok(Self(DriverHandle(made.map_err(|error| cublas_error("cublasLtMatmulDescCreate", error))?)))
    }
}

impl Drop for MatmulDescriptor {
    fn drop(&mut self) {
        // SAFETY: it is alive and not used after this. There is nobody to tell of a failure, as below.
        let _ = unsafe { result::destroy_matmul_desc(self.0.0) };
    }
}

/// How one operand lies in memory.
struct MatrixLayout(DriverHandle<sys::cublasLtMatrixLayout_t>);

impl MatrixLayout {
    /// Matrices whose columns, as the library counts, lie one after the other.
    fn new(kind: sys::cudaDataType, height: u64, width: u64, (batch, step): (i32, i64)) -> Result<Self> {
        use sys::cublasLtMatrixLayoutAttribute_t::{
            CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        };
        let made = result::create_matrix_layout(kind, height, width, height.cast_signed());
        let layout =
            Self(DriverHandle(made.map_err(|error| cublas_error("cublasLtMatrixLayoutCreate", error))?));
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the layout is alive, and the value is of the type that the attribute has.
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
        // SAFETY: as above.
        let _ = unsafe { result::destroy_matrix_layout(self.0.0) };
    }
}

/// What an algorithm may count on.
struct AlgorithmPreference(sys::cublasLtMatmulPreference_t);

impl AlgorithmPreference {
    /// An algorithm that gets along with the scratch memory, and with where the operands start.
    fn new(alignment: u32) -> Result<Self> {
        use sys::cublasLtMatmulPreferenceAttributes_t::{
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        };
        let made = result::create_matmul_pref();
        let preference = Self(made.map_err(|error| cublas_error("cublasLtMatmulPreferenceCreate", error))?);
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the preference is alive, and the value is of the type that the attribute has.
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
        // SAFETY: as above.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
