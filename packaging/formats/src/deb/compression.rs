//! Compression of the archives in a `.deb`.

use std::io::{self, Read};

use crate::error::Error;
use flate2::read::MultiGzDecoder;
use liblzma::read::{XzDecoder, XzEncoder};
use liblzma::stream::{CONCATENATED, Check, Filters, LzmaOptions, PRESET_EXTREME, Stream};

/// The strongest preset, always on a single thread, so that the output does not depend on the number of cores.
const XZ_PRESET: u32 = 9 | PRESET_EXTREME;

/// Largest input for which several encodings are tried. Only debug symbols are larger, and few users install those.
const MAX_BYTES_TO_TRY: usize = 24 << 20;

/// Memory limit for decompression; the strongest of the usual presets needs a fourteenth of it.
const MAX_UNPACK_MEMORY: u64 = 1 << 30;

/// Compresses to `.xz`, and keeps the smallest of three encodings: a general one and two for machine code.
pub fn compress_xz(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let usual = LzmaOptions::new_preset(XZ_PRESET).map_err(compression_error)?;
    if bytes.len() > MAX_BYTES_TO_TRY {
        return compress_with(bytes, Filters::new().lzma2(&usual));
    }
    let mut of_programs = LzmaOptions::new_preset(XZ_PRESET).map_err(compression_error)?;
    // The preset assumes aligned data, which machine code is not. Calls have relative targets; the x86 filter makes them
    // absolute, so that calls to the same function look alike.
    of_programs.literal_context_bits(4).position_bits(0);
    let packed = compress_with(bytes, Filters::new().lzma2(&usual))?;
    let other = compress_with(bytes, Filters::new().x86().lzma2(&of_programs))?;
    let third = compress_with(bytes, Filters::new().lzma2(&of_programs))?;
    Ok([packed, other, third].into_iter().min_by_key(Vec::len).unwrap_or_default())
}

fn compress_with(bytes: &[u8], filters: &Filters) -> Result<Vec<u8>, Error> {
    let stream = Stream::new_stream_encoder(filters, Check::Crc64).map_err(compression_error)?;
    let mut packed = Vec::new();
    XzEncoder::new_stream(bytes, stream).read_to_end(&mut packed)?;
    Ok(packed)
}

fn compression_error(error: liblzma::stream::Error) -> Error {
    Error::new(format!("packing failed: {error}"))
}

/// Decompresses by the suffix of a name, such as `.xz`, to at most `largest` bytes.
pub fn decompress_by_name(name: &str, bytes: &[u8], largest: u64) -> Result<Vec<u8>, Error> {
    let mut reader: Box<dyn Read + '_> = match name.rsplit_once(".tar").map(|(_, end)| end) {
        Some("") => Box::new(bytes),
        Some(".gz") => Box::new(MultiGzDecoder::new(bytes)),
        Some(".xz") => {
            let stream =
                Stream::new_stream_decoder(MAX_UNPACK_MEMORY, CONCATENATED).map_err(io::Error::from)?;
            Box::new(XzDecoder::new_stream(bytes, stream))
        }
        _ => {
            return Err(Error::new(
                "expected an archive that is plain, `.gz` or `.xz`, the others are not read here; \
                 `dpkg-deb --raw-extract` and `dpkg-deb --build -Zxz` pack it anew",
            ));
        }
    };
    let mut unpacked = Vec::new();
    let read = (&mut reader).take(largest + 1).read_to_end(&mut unpacked);
    read.map_err(|error| Error::new(format!("unpacking failed: {error}")))?;
    if unpacked.len() as u64 > largest {
        return Err(Error::new(format!("expected at most {largest} bytes, found more")));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn compress_gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn every_compression_is_decompressed_even_in_several_members() {
        let text = b"words ".repeat(1000);
        let largest = text.len() as u64;
        let (one, other) = text.split_at(1234);
        for (name, packed) in [
            ("data.tar", text.clone()),
            ("data.tar.gz", compress_gzip(&text)),
            ("data.tar.gz", [compress_gzip(one), compress_gzip(other)].concat()),
            ("data.tar.xz", compress_xz(&text).expect("packed")),
            ("data.tar.xz", [compress_xz(one), compress_xz(other)].map(|it| it.expect("packed")).concat()),
        ] {
            assert_eq!(decompress_by_name(name, &packed, largest).expect(name), text);
            let error = decompress_by_name(name, &packed, largest - 1).expect_err("too much").to_string();
            assert!(error.contains("expected at most 5999 bytes"), "{error}");
            if name != "data.tar" {
                let error =
                    decompress_by_name(name, &packed[..packed.len() - 3], largest).expect_err("cut short");
                assert!(error.to_string().contains("unpacking failed"), "{error}");
            }
        }
    }

    #[test]
    fn what_is_packed_otherwise_is_refused_with_what_to_do() {
        let error = decompress_by_name("data.tar.zst", b"", 9).expect_err("another way").to_string();
        assert!(error.starts_with("expected an archive that is plain, `.gz` or `.xz`"), "{error}");
    }
}
