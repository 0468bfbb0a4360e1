//! The matrix in the book is the one that there is.

use std::path::Path;

use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::show;

const BEGIN: &str = "<!-- matrix: `OARLOCK_WRITE=1 cargo test -p oarlock-pack --test book` writes it -->\n";
const END: &str = "<!-- end of the matrix -->\n";

#[test]
fn the_table_of_wheels_in_the_book_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/contributor/wheels.md");
    let page = std::fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where the table ends");
    let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
    let table = show::markdown(&show::rows(&matrix, None));
    let fresh = format!("{before}{BEGIN}\n{table}\n{END}{after}");
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        std::fs::write(file, fresh).expect("the page is writable");
        return;
    }
    assert!(
        page == fresh,
        "the table is stale; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-pack --test book`"
    );
}
