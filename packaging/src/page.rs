//! Pages of links, such as `pip install --find-links` reads.

use crate::html;
use crate::matrix::{Matrix, Page};

/// A page as HTML: one link a line, in the order of the matrix.
#[must_use]
pub fn html(matrix: &Matrix, page: &Page) -> String {
    let wheels = page.wheels.iter().map(|place| &matrix.wheels[*place]);
    let links: String = wheels
        .map(|wheel| {
            let address = format!("{}{}", matrix.host, html::address(&wheel.path()));
            format!("<a href=\"{address}\">{}</a><br>\n", wheel.name)
        })
        .collect();
    html::page("Links", "", &links)
}
