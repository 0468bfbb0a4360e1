//! `oarlock-pack pages`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_matrix::link_page;

use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct PagesArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// The directory to write to
    #[arg(long, value_name = "DIRECTORY", default_value = "dist")]
    out: PathBuf,
    /// The host of the wheels, such as a mirror, instead of the one in the matrix
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
}

pub(crate) fn run(call: &PagesArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let mut matrix = call.choice.read_matrix()?;
    if let Some(host) = &call.host {
        matrix.host = host.trim_end_matches('/').to_owned();
    }
    if matrix.pages.is_empty() {
        let instead = "`oarlock-pack index` makes those of wheels that are there";
        return Err(format!("expected a matrix with pages, found none in it; {instead}").into());
    }
    let mut written = Vec::new();
    for page in &matrix.pages {
        let file = call.out.join(page.path.trim_start_matches('/'));
        if !dry_run {
            oarlock_formats::file::write_file(&file, link_page::render_link_page(&matrix, page).as_bytes())?;
        }
        if !json {
            let verb = if dry_run { "would write " } else { "" };
            say!("{verb}{} ({})", file.display(), count_label(page.wheels.len(), "wheel"));
        }
        written.push(serde_json::json!({ "file": file, "wheels": page.wheels.len() }));
    }
    if json {
        say!("{:#}", serde_json::json!({ "pages": written }));
    }
    Ok(())
}
