//! Which plugins run in a process of their own.

use crate::text::wildcard::matches_pattern;
use crate::{HostOptions, IsolationPolicy, JudgedPlugin, LoadReport};

/// True if a plugin is to run in a process of its own. `name` is what its manifest or its probe says.
pub(crate) fn is_to_be_isolated(options: &HostOptions, judged: &JudgedPlugin, name: &str) -> bool {
    let plugins = &options.config.plugins;
    let patterns = options.isolate.iter().chain(&options.environment.isolate).chain(&plugins.isolate);
    if patterns.into_iter().any(|pattern| matches_pattern(pattern, name)) {
        return true;
    }
    let is_asked_for = judged.manifest.as_ref().is_some_and(|manifest| manifest.isolated);
    match plugins.isolation {
        IsolationPolicy::Never => is_asked_for,
        IsolationPolicy::Unknown => {
            is_asked_for || (judged.signed_by.is_none() && !plugins.trusted_files.contains(&judged.digest))
        }
        IsolationPolicy::Always => true,
    }
}

/// Notes about plugins that were named but do not run in a process of their own. Patterns may stand for none.
pub(crate) fn unmet_requests(options: &HostOptions, report: &LoadReport) -> Vec<String> {
    let named = options.isolate.iter().chain(&options.environment.isolate).filter(|name| !name.contains('*'));
    let unmet = named.filter_map(|name| {
        let loaded =
            report.loaded_plugins().map(|(_, loaded)| loaded).find(|loaded| loaded.info.name == *name);
        let found = match loaded {
            Some(loaded) if loaded.process.is_some() => return None,
            Some(_) => "one that is part of the program, which cannot be isolated",
            None => "none that works",
        };
        Some(format!("expected a plugin called `{name}` to isolate, found {found}"))
    });
    unmet.collect()
}
