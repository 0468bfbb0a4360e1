//! The plain values that kernels read and write.

/// A value with a fixed size whose bytes may be anything; the bytes are in the order of this machine.
pub trait SimElement: Copy {
    /// How many bytes one value has.
    const SIZE: usize;

    /// The value that `SIZE` bytes stand for.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Writes the value into `SIZE` bytes.
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
