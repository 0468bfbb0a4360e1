//! Reads the parts of a message, and checks each.

use super::WireBreach;

/// The part of a message that is not read yet.
#[derive(Clone, Debug)]
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn take_raw(&mut self, count: usize) -> Result<&'a [u8], WireBreach> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let found = format!("the last {}", self.rest.len());
            return Err(WireBreach::new(format!("{count} more bytes of a message"), found));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], WireBreach> {
        let mut array = [0; N];
        array.copy_from_slice(self.take_raw(N)?);
        Ok(array)
    }

    pub(crate) fn take_u8(&mut self) -> Result<u8, WireBreach> {
        self.take_array().map(u8::from_ne_bytes)
    }

    pub(crate) fn take_u32(&mut self) -> Result<u32, WireBreach> {
        self.take_array().map(u32::from_ne_bytes)
    }

    pub(crate) fn take_u64(&mut self) -> Result<u64, WireBreach> {
        self.take_array().map(u64::from_ne_bytes)
    }

    pub(crate) fn take_i32(&mut self) -> Result<i32, WireBreach> {
        self.take_array().map(i32::from_ne_bytes)
    }

    pub(crate) fn take_i64(&mut self) -> Result<i64, WireBreach> {
        self.take_array().map(i64::from_ne_bytes)
    }

    /// The bytes behind a length.
    pub(crate) fn take_bytes(&mut self) -> Result<&'a [u8], WireBreach> {
        let length = self.take_u32()?;
        self.take_raw(length as usize)
    }

    /// A count of items of at least `least` bytes each, which must all be in the rest of the message.
    pub(crate) fn take_count(&mut self, least: usize) -> Result<usize, WireBreach> {
        let count = self.take_u32()? as usize;
        if count.checked_mul(least.max(1)).is_none_or(|size| size > self.rest.len()) {
            let found = format!("{count} in {} bytes", self.rest.len());
            return Err(WireBreach::new("a list that fits its message", found));
        }
        Ok(count)
    }

    pub(crate) fn take_text(&mut self) -> Result<&'a str, WireBreach> {
        let bytes = self.take_bytes()?;
        str::from_utf8(bytes).map_err(|error| WireBreach::new("UTF-8 text", error.to_string()))
    }

    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::byte_writer::ByteWriter;
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_prefix_of_it_is() {
        let mut bytes = Vec::new();
        let mut writer = ByteWriter::new(&mut bytes);
        writer.put_u32(7);
        writer.put_text("größer", 4);
        writer.put_i64(-1);
        let read = |bytes: &[u8]| {
            let mut reader = ByteReader::new(bytes);
            Ok::<_, WireBreach>((reader.take_u32()?, reader.take_text()?.to_owned(), reader.take_i64()?))
        };
        assert_eq!(read(&bytes), Ok((7, "grö".to_owned(), -1)), "a text is cut between characters");
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_length_that_exceeds_the_message_is_refused() {
        let huge = u32::MAX.to_ne_bytes();
        assert!(ByteReader::new(&huge).take_bytes().is_err());
        assert!(ByteReader::new(&huge).take_count(8).is_err());
        assert!(ByteReader::new(&[1, 0, 0, 0, 0xff]).take_text().is_err(), "not UTF-8");
    }
}
