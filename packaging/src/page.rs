//! Pages of links, such as `pip install --find-links` reads.

use std::fmt::Write as _;

use crate::matrix::{Matrix, Page};

/// A page as HTML: one link a line, in the order of the matrix.
#[must_use]
pub fn html(matrix: &Matrix, page: &Page) -> String {
    let mut text =
        "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"><title>Links</title></head>\n<body>\n"
            .to_owned();
    for wheel in page.wheels.iter().map(|place| &matrix.wheels[*place]) {
        // No part of a path needs to be escaped but `+`, which some servers take for a space.
        let address = format!("{}{}", matrix.host, wheel.path().replace('+', "%2B"));
        // Writing to a text cannot fail.
        _ = writeln!(text, "<a href=\"{address}\">{}</a><br>", wheel.name);
    }
    text + "</body>\n</html>\n"
}
