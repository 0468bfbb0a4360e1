//! Pages of links, for `pip install --find-links`.

use crate::html;
use crate::{LinkPage, WheelMatrix};

/// Renders a page as HTML, with one link per line in the order of the matrix.
#[must_use]
pub fn render_link_page(matrix: &WheelMatrix, page: &LinkPage) -> String {
    let wheels = page.wheels.iter().map(|place| &matrix.wheels[*place]);
    let links: String = wheels
        .map(|wheel| {
            let address = format!("{}{}", matrix.host, html::encode_path(&wheel.file_path()));
            format!("<a href=\"{address}\">{}</a><br>\n", wheel.name)
        })
        .collect();
    html::render_page("Links", "", &links)
}
