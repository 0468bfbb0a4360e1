//! Plain values that kernels read and write.

/// A fixed-size value for which every byte pattern is valid; bytes are in native order.
pub trait SimElement: Copy {
    /// Size of a value in bytes.
    const SIZE: usize;

    /// Decodes a value from `SIZE` bytes.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Encodes the value into `SIZE` bytes.
    fn to_bytes(self, bytes: &mut [u8]);
}

macro_rules! elements {
    ($($element:ty),*) => { $(
        impl SimElement for $element {
            const SIZE: usize = size_of::<$element>();

            fn from_bytes(bytes: &[u8]) -> Self {
                let mut value = [0; size_of::<$element>()];
                value.copy_from_slice(bytes);
                <$element>::from_ne_bytes(value)
            }

            fn to_bytes(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )* };
}

elements!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
