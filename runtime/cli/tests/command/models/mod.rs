//! Tests of the model commands.

mod bench;
mod check;
mod devices;
mod explain;
mod feeds;
pub(crate) mod model_builder;
mod optimize;
mod precision;
mod results;
mod run;
mod trace;

use std::io::{Cursor, Write as _};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::user::TestUser;

/// A file in NumPy's `.npy` format.
fn npy_file(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat((10 + header.len() + 1).next_multiple_of(64) - 11 - header.len());
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), elements].concat()
}

fn float_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// An archive in NumPy's `.npz` format.
fn npz_file(arrays: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method).large_file(true);
        archive.start_file(format!("{name}.npy"), options).expect("memory takes everything");
        archive.write_all(bytes).expect("memory takes everything");
    }
    archive.finish().expect("memory takes everything").into_inner()
}

/// The names and bytes of the files in an archive.
fn read_npz(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).expect("a file")).expect("an archive");
    let count = archive.len();
    let read = |index| {
        let mut entry = archive.by_index(index).expect("an array");
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("its bytes");
        (entry.name().expect("a name").into_owned(), bytes)
    };
    (0..count).map(read).collect()
}

/// A user with all test models in the home directory.
fn user_with_models() -> TestUser {
    let user = TestUser::new();
    user.write_file("product.onnx", &model_builder::product_model());
    user.write_file("pair.onnx", &model_builder::pair_model());
    user.write_file("lookup.onnx", &model_builder::lookup_model());
    user.write_file("foreign.onnx", &model_builder::foreign_op_model());
    user
}
