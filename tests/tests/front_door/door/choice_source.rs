//! Choices decoded from bytes.

/// Decodes bytes as choices. When they run out, every choice is the first one.
pub(crate) struct ChoiceSource<'a>(&'a [u8]);

impl<'a> ChoiceSource<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// A number below `limit`.
    pub(crate) fn choose_below(&mut self, limit: usize) -> usize {
        let needed = if limit > 256 { 2 } else { 1 };
        let (read, rest) = self.0.split_at(needed.min(self.0.len()));
        self.0 = rest;
        read.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % limit.max(1)
    }

    /// One of several.
    pub(crate) fn choose_from<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.choose_below(choices.len())]
    }

    /// True about once in `times`, and never after the bytes run out.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.choose_below(times) == times - 1 && times > 1
    }

    /// An integer that an op can use, or one that it must refuse.
    pub(crate) fn choose_int(&mut self) -> i64 {
        const USUAL_INTS: [i64; 12] = [1, 0, 2, -1, 3, 4, -2, 5, 7, 8, 64, -3];
        const EXTREME_INTS: [i64; 16] = [
            i64::MIN,
            i64::MAX,
            i64::MIN + 1,
            i64::MAX - 1,
            i64::MAX / 2,
            1 << 62,
            1 << 61,
            -(1 << 62),
            1 << 40,
            -(1 << 40),
            1 << 32,
            (1 << 31) - 1,
            -(1 << 31),
            (1 << 32) - 1,
            1 << 24,
            -100,
        ];
        if self.choose_below(3) == 2 {
            self.choose_from(&EXTREME_INTS)
        } else {
            self.choose_from(&USUAL_INTS)
        }
    }

    /// A float of any kind.
    pub(crate) fn choose_float(&mut self) -> f64 {
        self.choose_from(&[
            1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            0.5,
            -1.0,
            1e300,
            -1e300,
            1e-300,
            3e38,
            9.3e18,
            -9.3e18,
            2147483648.0,
            100.0,
        ])
    }

    /// The size of a dimension, usually small.
    pub(crate) fn choose_size(&mut self) -> i64 {
        self.choose_from(&[1, 2, 0, 3, 4, 5, 7, 9])
    }
}
