//! The documentation shows the current matrix.

use std::path::Path;

use oarlock_matrix::matrix_table;
use oarlock_matrix::{OWN_MATRIX, WheelMatrix};

const MATRIX_BEGIN: &str =
    "<!-- matrix: `OARLOCK_WRITE=1 cargo test -p oarlock-pack --test book` writes it -->\n";
const MATRIX_END: &str = "<!-- end of the matrix -->\n";

#[test]
fn the_table_of_wheels_in_the_book_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/contributor/wheels.md");
    let page = std::fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once(MATRIX_BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(MATRIX_END).expect("where the table ends");
    let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
    let table = matrix_table::render_markdown(&matrix_table::table_rows(&matrix, None));
    let fresh = format!("{before}{MATRIX_BEGIN}\n{table}\n{MATRIX_END}{after}");
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        std::fs::write(file, fresh).expect("the page is writable");
        return;
    }
    assert!(
        page == fresh,
        "the table is stale; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-pack --test book`"
    );
}
