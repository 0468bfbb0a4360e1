//! `oarlock devices`: lists the devices.

use oarlock_host::DeviceReport;

use crate::CommandVerdict;
use crate::arguments::GlobalOptions;
use crate::output::{self, BAD_STYLE, CommandOutput, NAME_STYLE, NOTABLE_STYLE, PLAIN_STYLE, QUIET_STYLE};
use crate::render::{TableCell, TextTable};
use crate::session::HostSession;
use oarlock_report::text::format_bytes;

pub(crate) fn list_devices(global: &GlobalOptions, output: &mut CommandOutput) -> CommandVerdict {
    let session = HostSession::start_host(global)?;
    let devices = session.host.device_reports();
    if global.json {
        super::print_json(output, &devices)?;
    } else {
        let mut table = TextTable::new(1);
        devices.iter().for_each(|device| table.add_row(device_row(device)));
        table.print_table(output);
    }
    output.flush();
    for device in &devices {
        for problem in &device.problems {
            output::print_message(global.color, "warning", &format!("`{}`: {problem}", device.device), None);
        }
    }
    if devices.is_empty() {
        output::print_message(global.color, "warning", "there are no devices", None);
    }
    Ok(session.warn_about_missing(global, true))
}

fn device_row(device: &DeviceReport) -> [TableCell; 5] {
    let memory = match &device.memory {
        Some(memory) => {
            TableCell::new(format!("{} free of {}", format_bytes(memory.free), format_bytes(memory.total)))
        }
        None => TableCell::with_style("memory unknown", BAD_STYLE),
    };
    let support = match device.simulated {
        true => TableCell::with_style(format!("simulated, {}", device.support_level), NOTABLE_STYLE),
        false => TableCell::with_style(device.support_level.to_string(), PLAIN_STYLE),
    };
    let plugin = format!("{} {}", device.plugin, device.plugin_version);
    let plugin = match device.process {
        Some(number) => format!("{plugin}, isolated in process {number}"),
        None => plugin,
    };
    [
        TableCell::with_style(&device.device, NAME_STYLE),
        TableCell::new(&device.name),
        memory,
        support,
        TableCell::with_style(plugin, QUIET_STYLE),
    ]
}
