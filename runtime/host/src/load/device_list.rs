//! The devices of a plugin, and the user's selection of them.

use crate::HostEnvironment;
use crate::foreign_struct::RuleBreach;
use crate::generated::CoreCalls;
use crate::services::errors::PluginFailure;

/// Limit on the devices of one plugin.
const MAX_DEVICES: u32 = 4096;
/// Guard space after the list, to catch a plugin that writes too many ids.
const GUARD_IDS: usize = 64;

/// Reads the ids of all devices and checks them against the count (rule D-1).
pub(crate) fn device_ids(core: &CoreCalls) -> Result<Result<Vec<u32>, RuleBreach>, PluginFailure> {
    let breach = |expected: String, found: String| Ok(Err(RuleBreach::new("D-1", expected, found)));
    let count = core.device_count()?;
    if count > MAX_DEVICES {
        return breach(format!("at most {MAX_DEVICES} devices"), format!("{count} from `device_count`"));
    }
    // Two different fill values distinguish an id that was written from one that was there before.
    let mut lists = [u32::MAX, u32::MAX - 1].map(|filling| vec![filling; count as usize + GUARD_IDS]);
    for list in &mut lists {
        let listed = core.device_list(&mut list[..count as usize])?;
        if listed != u64::from(count) {
            let found = format!("{listed} from `device_list`");
            return breach(format!("{count} devices, as reported by `device_count`"), found);
        }
    }
    let [mut ids, second] = lists;
    let untouched = ids.iter().zip(&second).position(|(one, other)| one != other).unwrap_or(ids.len());
    let overrun = ids[count as usize..].iter().any(|id| *id != u32::MAX);
    if untouched != count as usize || overrun {
        let found = if overrun { "more".to_owned() } else { format!("{untouched}") };
        return breach(format!("`device_list` to write {count} ids and the same each time"), found);
    }
    ids.truncate(count as usize);
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return breach("devices with different ids".to_owned(), format!("{} twice", pair[0]));
    }
    Ok(Ok(ids))
}

/// The visible devices, and notes about entries of the variable that have no effect.
pub(crate) fn visible_devices(
    all: &[u32],
    variable: Option<&str>,
    environment: &HostEnvironment,
) -> (Vec<u32>, Vec<String>) {
    let value = variable.and_then(|variable| Some((variable, environment.variable(variable)?)));
    match value {
        Some((variable, value)) => devices_in_list(all, variable, &value.to_string_lossy()),
        None => (all.to_vec(), Vec::new()),
    }
}

/// The devices that `value` lists, in its order. An empty value hides all; an entry that is no device is skipped.
fn devices_in_list(all: &[u32], variable: &str, value: &str) -> (Vec<u32>, Vec<String>) {
    let (mut shown, mut notes) = (Vec::new(), Vec::new());
    for entry in value.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry.parse() {
            Ok(id) if shown.contains(&id) => {}
            Ok(id) if all.contains(&id) => shown.push(id),
            _ => {
                let ids: Vec<String> = all.iter().map(u32::to_string).collect();
                let entry = entry.escape_debug();
                let has = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
                notes.push(format!(
                    "`{variable}`: expected ids of devices ({has}), found `{entry}`; it is left out"
                ));
            }
        }
    }
    (shown, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_orders_devices_and_bad_entries_are_reported() {
        assert_eq!(devices_in_list(&[0, 1, 5], "V", "5, 0,5"), (vec![5, 0], vec![]));
        assert_eq!(devices_in_list(&[0, 1], "V", ""), (vec![], vec![]));
        let (shown, notes) = devices_in_list(&[0, 1], "V", "1,7,x");
        assert_eq!((shown, notes.len()), (vec![1], 2));
        assert!(notes[0].contains("`V`") && notes[0].contains("`7`"), "{}", notes[0]);
    }
}
