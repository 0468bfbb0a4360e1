//! Writes the parts of a message.

/// A message that is being written.
#[derive(Debug)]
pub(crate) struct ByteWriter<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'a> ByteWriter<'a> {
    /// Starts a message in `bytes`, whose allocation is used again.
    pub(crate) fn new(bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes }
    }

    /// What was written so far.
    pub(crate) fn written(&self) -> &[u8] {
        self.bytes
    }

    pub(crate) fn put_u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn put_i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn put_i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn put_raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A length and the bytes.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).expect("texts and lists are shorter than 4 GiB"));
        self.put_raw(bytes);
    }

    /// A text, cut to `most` bytes at the end of a character.
    pub(crate) fn put_text(&mut self, text: &str, most: usize) {
        let mut end = text.len().min(most);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.put_bytes(&text.as_bytes()[..end]);
    }
}
