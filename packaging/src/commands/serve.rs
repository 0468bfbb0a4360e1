//! `oarlock-pack serve`.

use std::error::Error;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;

use oarlock_pack::serve::{self, ServedKind};

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The index from `oarlock-pack index`, or the repository from `apt-repo`
    #[arg(value_name = "DIRECTORY", default_value = "dist/index")]
    index: PathBuf,
    /// The address to listen on; the default only accepts connections from this machine
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// The port to listen on; 0 selects a free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// Log each request with its status, as `GET /simple/oarlock/ 200`
    #[arg(long)]
    log: bool,
}

pub(crate) fn run(call: &ServeArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let kind = serve::detect_kind(&call.index)?;
    let place = (call.address, call.port);
    let listener = TcpListener::bind(place)
        .map_err(|error| format!("`{}`, port {}: {error}", call.address, call.port))?;
    let address = format!("http://{}", listener.local_addr()?);
    let address = match kind {
        ServedKind::Index => format!("{address}/simple/"),
        ServedKind::Repository => address,
    };
    let mut output = io::stdout();
    if json {
        writeln!(output, "{}", serde_json::json!({ "address": address }))?;
    } else {
        let verb = if dry_run { "would serve" } else { "serving" };
        let place = call.index.display();
        match kind {
            ServedKind::Index => {
                writeln!(output, "{verb} `{place}`; install from it with\n")?;
                writeln!(output, "    pip install --index-url {address} oarlock")?;
            }
            ServedKind::Repository => {
                writeln!(output, "{verb} `{place}`; apt installs from it with its `oarlock.sources`\n")?;
                writeln!(output, "    URIs: {address}")?;
            }
        }
    }
    output.flush()?;
    if dry_run {
        return Ok(());
    }
    // The reader of the log may close the pipe; serving continues.
    let report: fn(&str) = if call.log { |line| _ = writeln!(io::stderr(), "{line}") } else { |_| () };
    Ok(serve::serve_directory(&call.index, listener, report)?)
}
