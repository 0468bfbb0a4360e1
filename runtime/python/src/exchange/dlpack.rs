//! Zero-copy exchange with other libraries: the DLPack protocol, with and without versions.

#![expect(unsafe_code, reason = "the protocol is structs behind pointers")]

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};

use bytes::Bytes;
use oarlock_core::{Device, Dtype, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::memory_import::{check_copy_allowed, tensor_from_memory};
use crate::convert::copy_tensor;
use crate::error::{OrRaise as _, type_name};
use crate::startup::host_memory_device;
use crate::trace::refuse_read;

/// DLPack's code for host memory.
const HOST_DEVICE: i32 = 1;
/// DLPack's codes for device types.
const DEVICE_KINDS: [(&str, i32); 4] = [("cuda", 2), ("opencl", 4), ("rocm", 10), ("xpu", 14)];
/// `kDLExtDev`, used for all other devices.
const OTHER_DEVICE: i32 = 12;
/// Newest supported version of the protocol.
const DLPACK_VERSION: (u32, u32) = (1, 1);
/// The consumer must not write.
const READ_ONLY_FLAG: u64 = 1;
/// The producer made a copy for this consumer.
const COPIED_FLAG: u64 = 2;

const CAPSULE_NAME: &CStr = c"dltensor";
const USED_CAPSULE_NAME: &CStr = c"used_dltensor";
const VERSIONED_CAPSULE_NAME: &CStr = c"dltensor_versioned";
const USED_VERSIONED_CAPSULE_NAME: &CStr = c"used_dltensor_versioned";

#[repr(C)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
}

#[repr(C)]
struct DlManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct DlManagedTensorVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// DLPack's type code and bits for each dtype.
const DTYPE_CODES: [(Dtype, u8, u8); 21] = [
    (Dtype::I8, 0, 8),
    (Dtype::I16, 0, 16),
    (Dtype::I32, 0, 32),
    (Dtype::I64, 0, 64),
    (Dtype::U8, 1, 8),
    (Dtype::U16, 1, 16),
    (Dtype::U32, 1, 32),
    (Dtype::U64, 1, 64),
    (Dtype::F16, 2, 16),
    (Dtype::F32, 2, 32),
    (Dtype::F64, 2, 64),
    (Dtype::BF16, 4, 16),
    (Dtype::C64, 5, 64),
    (Dtype::C128, 5, 128),
    (Dtype::Bool, 6, 8),
    (Dtype::F8E4M3, 10, 8),
    (Dtype::F8E4M3Fnuz, 11, 8),
    (Dtype::F8E5M2, 12, 8),
    (Dtype::F8E5M2Fnuz, 13, 8),
    (Dtype::F8E8M0, 14, 8),
    (Dtype::F4E2M1, 17, 4),
];

/// The keyword arguments of `__dlpack__`.
pub(crate) struct ExportRequest {
    pub(crate) max_version: Option<(u32, u32)>,
    pub(crate) device: Option<(i32, i32)>,
    pub(crate) copy: Option<bool>,
}

/// Extracts a keyword argument, which may be missing or `None`.
pub(crate) fn optional_argument<T: for<'a, 'py> FromPyObject<'a, 'py>>(
    given: Option<&Bound<'_, PyAny>>,
    name: &str,
    expected: &str,
) -> PyResult<Option<T>> {
    let Some(given) = given else { return Ok(None) };
    given.extract().map(Some).map_err(|_| {
        let found = given.repr().map_or_else(|_| type_name(given), |text| text.to_string());
        PyTypeError::new_err(format!("`__dlpack__` expected {expected} for `{name}`, found {found}"))
    })
}

/// DLPack's code and index of the tensor's device.
pub(crate) fn dlpack_device(tensor: &Tensor) -> PyResult<(i32, i32)> {
    if tensor.host_address().or_raise()?.is_some() {
        return Ok((HOST_DEVICE, 0));
    }
    let device = tensor.device();
    let kind = DEVICE_KINDS
        .iter()
        .find(|(name, _)| *name == device.device_type())
        .map_or(OTHER_DEVICE, |(_, kind)| *kind);
    Ok((kind, i32::try_from(device.id())?))
}

/// Libraries that write to elements even if they are flagged as read-only.
const WRITERS: [&str; 2] = ["torch", "paddle"];

/// True if the consumer may write to elements that it must only read: before version 1, the protocol has no flag for that, and some
/// libraries do not look at it. The consumer is known by the Python code that called.
fn may_write(py: Python<'_>, wish: &ExportRequest) -> PyResult<bool> {
    if wish.max_version.is_none_or(|(major, _)| major < DLPACK_VERSION.0) {
        return Ok(true);
    }
    let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    let module = frame.getattr("f_globals")?.get_item("__name__").and_then(|name| name.extract::<String>());
    Ok(module.is_ok_and(|module| WRITERS.contains(&module.split('.').next().unwrap_or_default())))
}

/// The tensor in memory that the consumer can access, and whether it is a copy: a consumer that may write, or that requests host
/// memory for a tensor on another device, gets one.
fn reachable_tensor(py: Python<'_>, tensor: &Tensor, wish: &ExportRequest) -> PyResult<(Tensor, bool)> {
    let own = dlpack_device(tensor)?;
    let wanted = wish.device.unwrap_or(own);
    let may_copy = wish.copy != Some(false);
    refuse_read(tensor)?;
    match (own.0, wanted) {
        (HOST_DEVICE, (HOST_DEVICE, 0)) => {
            let is_copied = wish.copy == Some(true) || may_write(py, wish)?;
            if is_copied && !may_copy {
                return Err(PyBufferError::new_err(
                    "expected a consumer that only reads elements without a copy of them, found one that may write\nhint: leave out \
                     `copy=False`",
                ));
            }
            Ok((if is_copied { copy_tensor(py, tensor)? } else { tensor.clone() }, is_copied))
        }
        (_, (HOST_DEVICE, 0)) if may_copy => {
            Ok((tensor.to_device(&host_memory_device(py)?).or_raise()?, true))
        }
        (kind, _) if kind != HOST_DEVICE && (wanted == own || wanted == (HOST_DEVICE, 0)) => {
            Err(PyBufferError::new_err(format!(
                "expected an array in the memory of the host, found one on {}\nhint: copy it with `to_device(\"cpu\")`, or ask for the \
             device of the host",
                tensor.device()
            )))
        }
        _ => Err(PyBufferError::new_err(format!("expected the device {own:?}, found {wanted:?} asked for"))),
    }
}

/// The owner behind an exported managed tensor.
struct DlpackExport<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _tensor: Tensor,
}

/// Exports a tensor in a capsule.
pub(crate) fn export_tensor<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    wish: &ExportRequest,
) -> PyResult<Bound<'py, PyCapsule>> {
    let Some((_, code, bits)) = DTYPE_CODES.iter().find(|(dtype, ..)| *dtype == tensor.dtype()) else {
        let found = tensor.dtype().numpy_name();
        return Err(PyBufferError::new_err(format!("expected a dtype that DLPack has, found {found}")));
    };
    let (tensor, is_copy) = reachable_tensor(py, tensor, wish)?;
    let address = tensor.host_address().or_raise()?.unwrap_or(ptr::null());
    let mut described = DlTensor {
        data: address.cast_mut().cast::<c_void>(),
        device: DlDevice { kind: HOST_DEVICE, id: 0 },
        rank: i32::try_from(tensor.dims().len()).unwrap_or(i32::MAX),
        code: *code,
        bits: *bits,
        lanes: 1,
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        offset: 0,
    };
    let (mut shape, mut strides) = (tensor.dims().to_vec(), tensor.strides().to_vec());
    (described.shape, described.strides) = (shape.as_mut_ptr(), strides.as_mut_ptr());
    if wish.max_version.is_some_and(|(major, _)| major >= DLPACK_VERSION.0) {
        let managed = DlManagedTensorVersioned {
            major: DLPACK_VERSION.0,
            minor: DLPACK_VERSION.1,
            context: ptr::null_mut(),
            deleter: Some(drop_export::<DlManagedTensorVersioned>),
            // A fresh copy has no other owner, so it may be written.
            flags: if is_copy { COPIED_FLAG } else { READ_ONLY_FLAG },
            tensor: described,
        };
        create_capsule(
            py,
            DlpackExport { managed, shape, strides, _tensor: tensor },
            VERSIONED_CAPSULE_NAME,
            free_versioned,
        )
    } else {
        let managed = DlManagedTensor {
            context: ptr::null_mut(),
            deleter: Some(drop_export::<DlManagedTensor>),
            tensor: described,
        };
        create_capsule(
            py,
            DlpackExport { managed, shape, strides, _tensor: tensor },
            CAPSULE_NAME,
            free_unversioned,
        )
    }
}

/// Puts an export into a capsule. The managed struct is the first field, so a pointer to it is a pointer to the whole.
fn create_capsule<'py, M>(
    py: Python<'py>,
    lent: DlpackExport<M>,
    name: &CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyCapsule>> {
    debug_assert!(lent.shape.len() == lent.strides.len());
    let lent = Box::into_raw(Box::new(lent));
    // SAFETY: the pointer to the managed struct is not null; the name is a constant; the destructor takes a capsule of it.
    let result = unsafe {
        ffi::PyCapsule_New((&raw mut (*lent).managed).cast::<c_void>(), name.as_ptr(), Some(destructor))
    };
    // SAFETY: the interpreter returned a new capsule, or null with an error set.
    let result = unsafe { Bound::from_owned_ptr_or_err(py, result) };
    match result {
        Ok(capsule) => Ok(capsule.cast_into::<PyCapsule>()?),
        Err(error) => {
            // SAFETY: the box was made above, and nothing else points to it.
            drop(unsafe { Box::from_raw(lent) });
            Err(error)
        }
    }
}

/// # Safety
///
/// `managed` is the first field of a boxed `DlpackExport` that is not used any more.
unsafe extern "C" fn drop_export<M>(managed: *mut M) {
    let lent = managed
        .cast::<u8>()
        .wrapping_sub(std::mem::offset_of!(DlpackExport<M>, managed))
        .cast::<DlpackExport<M>>();
    // SAFETY: the caller promises that this is the boxed export and that this is its last use.
    drop(unsafe { Box::from_raw(lent) });
}

/// # Safety
///
/// The interpreter calls this with a capsule made by `create_capsule`.
unsafe extern "C" fn free_unversioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as the caller promises. A consumed capsule has another name, and its consumer calls the deleter.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, CAPSULE_NAME.as_ptr()) != 0 {
            drop_export::<DlManagedTensor>(ffi::PyCapsule_GetPointer(capsule, CAPSULE_NAME.as_ptr()).cast());
        }
    }
}

/// # Safety
///
/// Same as [`free_unversioned`].
unsafe extern "C" fn free_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED_CAPSULE_NAME.as_ptr()) != 0 {
            drop_export::<DlManagedTensorVersioned>(
                ffi::PyCapsule_GetPointer(capsule, VERSIONED_CAPSULE_NAME.as_ptr()).cast(),
            );
        }
    }
}

/// A tensor of another library, released on drop.
enum ImportedTensor {
    Plain(NonNull<DlManagedTensor>),
    Versioned(NonNull<DlManagedTensorVersioned>),
}

// SAFETY: the protocol lets any thread call a deleter; the elements are only read.
unsafe impl Send for ImportedTensor {}
// SAFETY: as above.
unsafe impl Sync for ImportedTensor {}

impl Drop for ImportedTensor {
    fn drop(&mut self) {
        // SAFETY: this side owns the struct and releases it once; a producer with nothing to free has no deleter.
        unsafe {
            match self {
                Self::Plain(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
                Self::Versioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

impl ImportedTensor {
    fn dl_tensor(&self) -> &DlTensor {
        // SAFETY: the struct lives until it is released on drop.
        unsafe {
            match self {
                Self::Plain(managed) => &managed.as_ref().tensor,
                Self::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    /// True if the producer reports a copy.
    fn is_copied(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            // SAFETY: the struct lives until it is released on drop.
            Self::Versioned(managed) => unsafe { managed.as_ref().flags & COPIED_FLAG != 0 },
        }
    }

    /// Takes ownership of the tensor in a capsule by renaming it, as the protocol demands.
    fn from_capsule(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let take = |name: &CStr, used: &'static CStr| -> PyResult<Option<NonNull<c_void>>> {
            // SAFETY: the object is a capsule, and the pointer is requested only after its name was checked.
            unsafe {
                if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                    return Ok(None);
                }
                let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
                if ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
                    return Err(PyErr::fetch(capsule.py()));
                }
                Ok(NonNull::new(pointer))
            }
        };
        if let Some(versioned) = take(VERSIONED_CAPSULE_NAME, USED_VERSIONED_CAPSULE_NAME)? {
            let taken = Self::Versioned(versioned.cast());
            // SAFETY: every version of the struct begins with its version numbers.
            let major = unsafe { versioned.cast::<DlManagedTensorVersioned>().as_ref().major };
            if major != DLPACK_VERSION.0 {
                return Err(PyBufferError::new_err(format!(
                    "expected version {} of DLPack, found {major}",
                    DLPACK_VERSION.0
                )));
            }
            return Ok(taken);
        }
        take(CAPSULE_NAME, USED_CAPSULE_NAME)?.map(|plain| Self::Plain(plain.cast())).ok_or_else(|| {
            PyTypeError::new_err("expected a capsule of DLPack that nobody consumed, found another")
        })
    }
}

/// Elements read in place.
struct ImportedElements {
    taken: ImportedTensor,
    size: usize,
}

impl AsRef<[u8]> for ImportedElements {
    fn as_ref(&self) -> &[u8] {
        let tensor = self.taken.dl_tensor();
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the producer says that its elements lie there contiguously, which was checked from the strides; it keeps
        // them alive until they are released.
        unsafe {
            std::slice::from_raw_parts(
                tensor.data.cast::<u8>().wrapping_add(tensor.offset as usize),
                self.size,
            )
        }
    }
}

/// Imports an object through `__dlpack__`.
pub(crate) fn import_tensor(
    object: &Bound<'_, PyAny>,
    device: &Device,
    copy: Option<bool>,
) -> PyResult<Tensor> {
    let wish = PyDict::new(object.py());
    wish.set_item("max_version", DLPACK_VERSION)?;
    if copy == Some(false) {
        wish.set_item("copy", false)?;
    }
    if !object.hasattr("__dlpack__")? {
        let found = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "expected an array of another library, with `__dlpack__`, found {found}\nhint: make it an array with `oarlock.asarray`"
        )));
    }
    let capsule = match object.call_method("__dlpack__", (), Some(&wish)) {
        // Older producers do not take these keyword arguments.
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
            object.call_method0("__dlpack__")?
        }
        other => other?,
    };
    let taken = ImportedTensor::from_capsule(capsule.cast::<PyCapsule>()?)?;
    if taken.is_copied() {
        check_copy_allowed(copy, "a copy that its library made")?;
    }
    let (dtype, dims, order) = {
        let tensor = taken.dl_tensor();
        if tensor.device.kind != HOST_DEVICE {
            let found = tensor.device.kind;
            return Err(PyBufferError::new_err(format!(
                "expected elements in the memory of the host, found those of a device of DLPack's kind {found}\nhint: copy \
                 them to the host with the library they come from"
            )));
        }
        let dtype = DTYPE_CODES
            .iter()
            .find(|(_, code, bits)| (*code, *bits, 1) == (tensor.code, tensor.bits, tensor.lanes));
        let dtype = dtype.map(|(dtype, ..)| *dtype).ok_or_else(|| {
            let (code, bits, lanes) = (tensor.code, tensor.bits, tensor.lanes);
            PyTypeError::new_err(format!(
                "expected a dtype that arrays have, found code {code}, {bits} bits, {lanes} lanes"
            ))
        })?;
        let rank = usize::try_from(tensor.rank).unwrap_or(0);
        let list = |start: *mut i64| -> Option<Vec<i64>> {
            // SAFETY: the producer passes arrays of `rank` numbers, or null.
            (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, rank) }.to_vec())
        };
        let dims = if rank == 0 { Some(Vec::new()) } else { list(tensor.shape) };
        let dims = dims.ok_or_else(|| PyValueError::new_err("expected a shape, found none"))?;
        let strides = if rank == 0 { None } else { list(tensor.strides) };
        let order = strides.map_or(Some((0..rank).collect()), |strides| dense_order(&dims, &strides));
        (dtype, dims, order)
    };
    let Some(order) = order else {
        drop(taken);
        return import_strided(object, device, copy);
    };
    let laid: Vec<i64> = order.iter().map(|axis| dims[*axis]).collect();
    let size = oarlock_core::shape::size_in_bytes(dtype, &laid).or_raise()?;
    let elements = ImportedElements { taken, size: usize::try_from(size)? };
    let tensor = tensor_from_memory(device, dtype, &laid, Bytes::from_owner(elements), copy)?;
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, axis)| back[*axis] = place);
    tensor.transpose(&back).or_raise()
}

/// Asks the producer for a contiguous copy of elements with gaps.
fn import_strided(object: &Bound<'_, PyAny>, device: &Device, copy: Option<bool>) -> PyResult<Tensor> {
    check_copy_allowed(copy, "elements with gaps between them")?;
    let found = super::buffer::read_buffer(object, device, Some(true))?;
    found.ok_or_else(|| {
        PyBufferError::new_err(
            "expected elements without gaps, found some\nhint: make the array contiguous first",
        )
    })
}

/// The permutation that makes the elements contiguous; `None` if they have gaps.
fn dense_order(dims: &[i64], strides: &[i64]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..dims.len()).collect();
    if dims.contains(&0) {
        return Some(order);
    }
    order.sort_by_key(|axis| std::cmp::Reverse((strides[*axis], dims[*axis])));
    let mut expected = 1;
    for axis in order.iter().rev() {
        if dims[*axis] != 1 && strides[*axis] != expected {
            return None;
        }
        expected *= dims[*axis];
    }
    Some(order)
}
