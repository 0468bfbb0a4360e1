//! Expands groups to wheels: all combinations with their names, checked for ambiguity.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_formats::error::Error;

use super::axis::{Combination, MatrixAxis};
use super::file::{
    AxisSelection, AxisSelector, ExcludedCombination, FileNameScope, MatrixFile, MatrixGroup, MatrixPart,
    NamingRule, PageGroup, PropertyRule, ReleaseChannel,
};
use super::wheel_name::{self, WheelName, WheelVersion};
use super::{LinkPage, MatrixRow, VariantProperty, WheelMatrix};

type Axes = BTreeMap<MatrixAxis, Vec<String>>;

/// Expands a file to its matrix.
pub(crate) fn expand_matrix(file: MatrixFile) -> Result<WheelMatrix, Error> {
    for python in file.axes.get(&MatrixAxis::Python).into_iter().flatten() {
        wheel_name::parse_python_tags(python)?;
    }
    let channels = channel_versions(&file.channels)?;
    let selections = file.exclude.iter().map(|it| &it.selection);
    for selection in selections.chain(file.properties.iter().map(|it| &it.selection)) {
        check_selection(selection, &file.axes)?;
    }
    let known = AxisSelector::Some(file.accelerators.keys().cloned().collect());
    selected_values(MatrixAxis::Accelerator, &known, &file.axes)?;
    let mut namespaces: Vec<String> = Vec::new();
    for need in &file.properties {
        let VariantProperty { namespace, .. } = need.property.parse()?;
        if !namespaces.contains(&namespace) {
            namespaces.push(namespace);
        }
    }
    let mut used = vec![false; file.exclude.len()];
    let mut wheels = Vec::new();
    for (channel, version) in &channels {
        for group in &file.wheels {
            if let Some(naming) = group.names.get(channel) {
                for combination in selected_combinations(&group.selection, &file.axes)? {
                    match file.exclude.iter().position(|it| is_excluded(&combination, it)) {
                        Some(place) => used[place] = true,
                        None => {
                            wheels.push(expand_wheel(&file, group, naming, channel, version, combination)?);
                        }
                    }
                }
            }
        }
    }
    for group in &file.wheels {
        if let Some(unknown) =
            group.names.keys().find(|name| !channels.iter().any(|(channel, _)| channel == *name))
        {
            return Err(unknown_channel(unknown, &channels));
        }
    }
    if let Some(place) = used.iter().position(|it| !it) {
        let because = &file.exclude[place].because;
        return Err(Error::new(format!(
            "expected each exclusion to exclude something; the one because “{because}” does not"
        )));
    }
    check_names(&wheels, file.file_names)?;
    check_labels(&wheels)?;
    check_parts(&wheels, &file.parts)?;
    let pages = expand_pages(&file, &channels, &wheels)?;
    Ok(WheelMatrix {
        pages_host: file.pages_host.as_ref().unwrap_or(&file.host).trim_end_matches('/').to_owned(),
        host: file.host.trim_end_matches('/').to_owned(),
        axes: file.axes,
        accelerators: file.accelerators,
        parts: file.parts,
        channels: channels.into_iter().map(|(name, _)| name).collect(),
        wheels,
        pages,
        namespaces,
    })
}

/// The versions of the channels.
fn channel_versions(channels: &[ReleaseChannel]) -> Result<Vec<(String, WheelVersion)>, Error> {
    let version = |channel: &ReleaseChannel| match (&channel.version, &channel.no_version) {
        (Some(version), None) => {
            wheel_name::parse_version(&fill_template(version, &Combination::new())?).map(WheelVersion::Valid)
        }
        (None, Some(word)) => Ok(WheelVersion::Word(word.clone())),
        _ => Err(Error::new(format!(
            "expected either `version` or `no_version` of channel `{}`",
            channel.name
        ))),
    };
    channels.iter().map(|channel| Ok((channel.name.clone(), version(channel)?))).collect()
}

fn unknown_channel(found: &str, channels: &[(String, WheelVersion)]) -> Error {
    let known = channels.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Error::new(format!("expected a channel, one of {known}; found `{found}`"))
}

/// The selected values of an axis, each of which must be declared.
fn selected_values(axis: MatrixAxis, values: &AxisSelector, axes: &Axes) -> Result<Vec<String>, Error> {
    let all = axes.get(&axis).map_or(&[][..], Vec::as_slice);
    let wanted = match values {
        AxisSelector::One(value) if value == "*" => return Ok(all.to_vec()),
        AxisSelector::One(value) => std::slice::from_ref(value),
        AxisSelector::Some(values) => values,
    };
    match wanted.iter().find(|value| !all.contains(value)) {
        None => Ok(wanted.to_vec()),
        Some(found) if all.is_empty() => Err(Error::new(format!(
            "expected `{axis}` in [axes] before it is used, found `{axis} = \"{found}\"`"
        ))),
        Some(found) => {
            let all = all.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
            Err(Error::new(format!("expected a value of the axis `{axis}`, one of {all}; found `{found}`")))
        }
    }
}

/// All combinations of the selected values, with the last axis changing fastest.
fn selected_combinations(selection: &AxisSelection, axes: &Axes) -> Result<Vec<Combination>, Error> {
    let mut found = vec![Combination::new()];
    for (axis, wanted) in selection {
        let values = selected_values(*axis, wanted, axes)?;
        let with = |before: &Combination, value: &String| {
            let mut combination = before.clone();
            combination.insert(*axis, value.clone());
            combination
        };
        found = found
            .iter()
            .flat_map(|before| values.iter().map(|value| with(before, value)).collect::<Vec<_>>())
            .collect();
    }
    Ok(found)
}

fn check_selection(selection: &AxisSelection, axes: &Axes) -> Result<(), Error> {
    selection.iter().try_for_each(|(axis, wanted)| selected_values(*axis, wanted, axes).map(drop))
}

/// True if a combination has a selected value on every axis of the selection.
fn matches_selection(combination: &Combination, selection: &AxisSelection) -> bool {
    selection.iter().all(|(axis, wanted)| {
        combination.get(axis).is_some_and(|value| match wanted {
            AxisSelector::One(one) => one == "*" || one == value,
            AxisSelector::Some(some) => some.contains(value),
        })
    })
}

fn is_excluded(combination: &Combination, exclusion: &ExcludedCombination) -> bool {
    matches_selection(combination, &exclusion.selection)
}

fn expand_wheel(
    file: &MatrixFile,
    group: &MatrixGroup,
    naming: &NamingRule,
    channel: &str,
    version: &WheelVersion,
    combination: Combination,
) -> Result<MatrixRow, Error> {
    let fill = |template: &str| fill_template(template, &combination);
    let label = fill(&naming.label)?;
    let of_wheel = |error: Error| Error::new(format!("wheel `{label}` of channel `{channel}`: {error}"));
    let suffix = fill(&naming.suffix)?;
    let version = match version {
        WheelVersion::Valid(version) => {
            wheel_name::parse_version(&format!("{version}{suffix}")).map(WheelVersion::Valid)
        }
        WheelVersion::Word(word) => Ok(WheelVersion::Word(format!("{word}{suffix}"))),
    };
    let name = WheelName {
        distribution: wheel_name::parse_distribution(&fill(&naming.distribution)?).map_err(of_wheel)?,
        version: version.map_err(of_wheel)?,
        python: combination.get(&MatrixAxis::Python).cloned().ok_or_else(|| {
            of_wheel(Error::new("expected a value of the axis `python`, which its name needs; found none"))
        })?,
        platform: wheel_name::parse_platform_tag(&fill(
            platform_tag(file, group, &combination).map_err(of_wheel)?,
        )?)
        .map_err(of_wheel)?,
    };
    Ok(MatrixRow {
        channel: channel.to_owned(),
        directory: checked_path(fill(&naming.directory)?).map_err(of_wheel)?,
        name,
        parts: group.parts.iter().map(|part| fill(part)).collect::<Result<_, _>>()?,
        planned: group.planned.clone(),
        note: group.note.clone(),
        budget: group.budget_mb.map(megabytes_to_bytes),
        installed_budget: group.installed_budget_mb.map(megabytes_to_bytes),
        properties: expand_properties(&file.properties, &combination)?,
        label,
        combination,
    })
}

fn megabytes_to_bytes(megabytes: u32) -> u64 {
    u64::from(megabytes) * 1_000_000
}

/// The requirements of a wheel on a machine.
fn expand_properties(
    needs: &[PropertyRule],
    combination: &Combination,
) -> Result<Vec<VariantProperty>, Error> {
    needs
        .iter()
        .filter(|it| matches_selection(combination, &it.selection))
        .map(|it| it.property.parse())
        .collect()
}

/// The platform tag of a wheel.
fn platform_tag<'a>(
    file: &'a MatrixFile,
    group: &'a MatrixGroup,
    combination: &Combination,
) -> Result<&'a str, Error> {
    if let Some(tag) = &group.tag {
        return Ok(tag);
    }
    let platform = combination.get(&MatrixAxis::Platform);
    let tag = platform.and_then(|platform| file.tags.get(platform));
    let found = platform.map_or_else(|| "no platform".to_owned(), |it| format!("no `{it}`"));
    tag.map(String::as_str)
        .ok_or_else(|| Error::new(format!("expected a tag in [tags] or of the group, found {found}")))
}

/// Replaces placeholders such as `{device}`; `{oarlock}` is the version of this program.
fn fill_template(template: &str, combination: &Combination) -> Result<String, Error> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Error::new(format!("expected `}}` after `{{` in `{template}`")))?;
        let value = match MatrixAxis::ALL.iter().find(|axis| axis.name() == name) {
            Some(axis) => combination.get(axis).map(String::as_str),
            None if name == "oarlock" => Some(env!("CARGO_PKG_VERSION")),
            None => None,
        };
        filled += before;
        filled += value.ok_or_else(|| {
            Error::new(format!(
                "expected the name of an axis that has a value here, found `{{{name}}}` in `{template}`"
            ))
        })?;
        rest = after;
    }
    Ok(filled + rest)
}

/// Checks that a path stays below its host or directory.
fn checked_path(text: String) -> Result<String, Error> {
    let is_plain = |part: &str| {
        let mut letters = part.bytes();
        !part.starts_with('.')
            && letters.len() > 0
            && letters.all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
    };
    if text.is_empty() || text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain)) {
        return Ok(text);
    }
    Err(Error::new(format!("expected nothing or a path such as `/linux/cpu`, found `{text}`")))
}

/// Checks that no two wheels have the same file name within the scope.
fn check_names(wheels: &[MatrixRow], file_names: FileNameScope) -> Result<(), Error> {
    let mut seen: BTreeMap<String, &MatrixRow> = BTreeMap::new();
    for wheel in wheels {
        let (key, kind) = match file_names {
            FileNameScope::Unique => (wheel.name.to_string(), "file name"),
            FileNameScope::UniqueInDirectory => (wheel.file_path(), "path"),
        };
        if let Some(other) = seen.insert(key.clone(), wheel) {
            let place = |wheel: &MatrixRow| format!("`{}` of channel `{}`", wheel.label, wheel.channel);
            return Err(Error::new(format!(
                "expected a {kind} for each wheel; {} and {} are both `{key}`",
                place(other),
                place(wheel)
            )));
        }
    }
    Ok(())
}

/// Checks that the labels of wheels to build are unique, since builds are requested by label. Historical matrices share a label
/// among all Python versions.
fn check_labels(wheels: &[MatrixRow]) -> Result<(), Error> {
    let mut seen: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
    for MatrixRow { channel, label, name, parts, .. } in wheels {
        let python = if parts.is_empty() { name.python.as_str() } else { "" };
        if !seen.insert((channel, label, python)) {
            return Err(Error::new(format!(
                "expected a label for each wheel of channel `{channel}`; two are `{label}`"
            )));
        }
    }
    Ok(())
}

/// Checks that all parts of wheels are defined.
fn check_parts(wheels: &[MatrixRow], parts: &BTreeMap<String, MatrixPart>) -> Result<(), Error> {
    for wheel in wheels.iter().filter(|wheel| wheel.planned.is_none()) {
        if let Some(unknown) = wheel.parts.iter().find(|part| !parts.contains_key(*part)) {
            let known = parts.keys().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
            return Err(Error::new(format!(
                "wheel `{}` of channel `{}`: expected parts of [parts], which has {known}; found `{unknown}`",
                wheel.label, wheel.channel
            )));
        }
    }
    Ok(())
}

fn expand_pages(
    file: &MatrixFile,
    channels: &[(String, WheelVersion)],
    wheels: &[MatrixRow],
) -> Result<Vec<LinkPage>, Error> {
    let mut found: Vec<LinkPage> = Vec::new();
    for group in &file.pages {
        let PageGroup { channel, path, selection } = group;
        if !channels.iter().any(|(name, _)| name == channel) {
            return Err(unknown_channel(channel, channels));
        }
        for combination in selected_combinations(selection, &file.axes)? {
            let is_on_page = |wheel: &MatrixRow| {
                wheel.channel == *channel
                    && combination.iter().all(|(axis, it)| wheel.combination.get(axis) == Some(it))
            };
            found.push(LinkPage {
                path: self::checked_path(fill_template(path, &combination)?)?,
                wheels: (0..wheels.len()).filter(|place| is_on_page(&wheels[*place])).collect(),
            });
        }
    }
    let mut paths = BTreeSet::new();
    match found.iter().find(|page| !paths.insert(&page.path)) {
        Some(twice) => Err(Error::new(format!("expected a path for each page; two are `{}`", twice.path))),
        None => Ok(found),
    }
}
