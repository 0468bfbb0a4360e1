//! An input of a call: its elements and its view.

use oarlock_core::{Constant, Device, Dtype, Result, Tensor};

/// A tensor as text can describe it.
#[derive(Clone, Debug)]
pub(crate) struct CallInput {
    pub(crate) dtype: Dtype,
    pub(crate) dims: Vec<i64>,
    /// Elements; missing ones get defaults.
    pub(crate) elements: Vec<ElementValue>,
    pub(crate) texts: Vec<String>,
    pub(crate) views: Vec<InputView>,
    /// True if the tensor is a constant, so that a kernel may prepare for it.
    pub(crate) is_constant: bool,
}

/// An element, for integer and float dtypes alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementValue {
    pub(crate) int: i64,
    pub(crate) float: f64,
}

/// A view of a tensor.
#[derive(Clone, Debug)]
pub(crate) enum InputView {
    Transpose(Vec<usize>),
    Slice(i64, u64, u64, u64),
    Expand(Vec<i64>),
}

impl ElementValue {
    fn to_element_bytes(self, dtype: Dtype) -> Vec<u8> {
        let Self { int, float } = self;
        match dtype {
            Dtype::Bool => vec![u8::from(int & 1 == 1)],
            Dtype::I2
            | Dtype::U2
            | Dtype::I4
            | Dtype::U4
            | Dtype::F4E2M1
            | Dtype::I8
            | Dtype::U8
            | Dtype::F8E4M3
            | Dtype::F8E4M3Fnuz
            | Dtype::F8E5M2
            | Dtype::F8E5M2Fnuz
            | Dtype::F8E8M0 => vec![int as u8],
            Dtype::I16 | Dtype::U16 => (int as i16).to_ne_bytes().to_vec(),
            Dtype::I32 | Dtype::U32 => (int as i32).to_ne_bytes().to_vec(),
            Dtype::F16 => half::f16::from_f64(float).to_ne_bytes().to_vec(),
            Dtype::BF16 => half::bf16::from_f64(float).to_ne_bytes().to_vec(),
            Dtype::F32 => (float as f32).to_ne_bytes().to_vec(),
            Dtype::F64 => float.to_ne_bytes().to_vec(),
            Dtype::C64 => [float as f32, int as f32].into_iter().flat_map(f32::to_ne_bytes).collect(),
            Dtype::C128 => [float, int as f64].into_iter().flat_map(f64::to_ne_bytes).collect(),
            Dtype::I64 | Dtype::U64 | Dtype::String => int.to_ne_bytes().to_vec(),
        }
    }

    /// The default of an element.
    fn default_element(at: usize) -> Self {
        Self { int: [1, 0, 2][at % 3], float: (at * 7 % 11) as f64 / 4.0 - 1.25 }
    }
}

impl CallInput {
    /// A tensor with default elements.
    pub(crate) fn new(dtype: Dtype, dims: Vec<i64>) -> Self {
        Self { dtype, dims, elements: Vec::new(), texts: Vec::new(), views: Vec::new(), is_constant: false }
    }

    /// Number of elements; shapes here are small.
    pub(crate) fn element_count(&self) -> usize {
        self.dims.iter().map(|dim| *dim as usize).product()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let shared = (8 / self.dtype.bits()).max(1) as usize;
        let count = self.element_count().div_ceil(shared);
        let number = |at: usize| self.elements.get(at).copied().unwrap_or(ElementValue::default_element(at));
        (0..count).flat_map(|at| number(at).to_element_bytes(self.dtype)).collect()
    }

    /// The tensor, and its view. An impossible view is skipped.
    pub(crate) fn to_tensors(&self, device: &Device) -> Result<(Tensor, Tensor)> {
        let base = if self.dtype == Dtype::String {
            let text = |at: usize| self.texts.get(at).cloned().unwrap_or_else(|| at.to_string());
            Tensor::from_strings(device, &self.dims, (0..self.element_count()).map(text).collect())?
        } else {
            Tensor::from_bytes(device, self.dtype, &self.dims, &self.to_bytes())?
        };
        let mut seen = base.clone();
        for view in &self.views {
            let next = match view {
                InputView::Transpose(order) => seen.transpose(order),
                InputView::Slice(axis, begin, end, step) => seen.slice(*axis, *begin, *end, *step),
                InputView::Expand(dims) => seen.expand(dims),
            };
            seen = next.unwrap_or(seen);
        }
        Ok((base, seen))
    }

    /// The tensor as an attribute.
    pub(crate) fn to_constant(&self) -> Result<Constant> {
        Constant::new(self.dtype, &self.dims, self.to_bytes())
    }
}
