//! `oarlock devices`: the devices there are.

use oarlock_host::DeviceReport;

use crate::Verdict;
use crate::arguments::Global;
use crate::output::{self, BAD, NAME, NOTABLE, Output, PLAIN, QUIET};
use crate::render::{Cell, Table, bytes};
use crate::session::Session;

pub(crate) fn run(global: &Global, output: &mut Output) -> Verdict {
    let session = Session::start(global)?;
    let devices = session.host.device_reports();
    if global.json {
        super::print_json(output, &devices)?;
    } else {
        let mut table = Table::new(1);
        devices.iter().for_each(|device| table.row(row(device)));
        table.print(output);
    }
    output.flush();
    for device in &devices {
        for problem in &device.problems {
            output::say(global.color, "warning", &format!("`{}`: {problem}", device.device), None);
        }
    }
    if devices.is_empty() {
        output::say(global.color, "warning", "there are no devices", None);
    }
    Ok(session.mention_what_is_missing(global, true))
}

fn row(device: &DeviceReport) -> [Cell; 5] {
    let memory = match &device.memory {
        Some(memory) => Cell::new(format!("{} free of {}", bytes(memory.free), bytes(memory.total))),
        None => Cell::styled("memory unknown", BAD),
    };
    let support = match device.simulated {
        true => Cell::styled(format!("simulated, {}", device.support_level), NOTABLE),
        false => Cell::styled(device.support_level.to_string(), PLAIN),
    };
    let plugin = format!("{} {}", device.plugin, device.plugin_version);
    [
        Cell::styled(&device.device, NAME),
        Cell::new(&device.name),
        memory,
        support,
        Cell::styled(plugin, QUIET),
    ]
}
