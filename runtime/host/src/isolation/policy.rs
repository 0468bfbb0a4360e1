//! Which plugins run in a process of their own.

use serde::Deserialize;

use crate::text::wildcard::matches_pattern;
use crate::{HostOptions, JudgedPlugin, LoadReport};

/// The plugins to isolate, besides those that are named. In the order of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationPolicy {
    /// None.
    #[default]
    Never,
    /// Those that are neither signed by a trusted key nor among the trusted files.
    Unknown,
    /// All that can be isolated.
    Always,
}

impl IsolationPolicy {
    /// True if a plugin is to run in a process of its own. `name` is what its manifest or its probe says.
    pub(crate) fn isolates(options: &HostOptions, judged: &JudgedPlugin, name: &str) -> bool {
        let plugins = &options.config.plugins;
        let patterns = options.isolate.iter().chain(&options.environment.isolate).chain(&plugins.isolate);
        if patterns.into_iter().any(|pattern| matches_pattern(pattern, name)) {
            return true;
        }
        match plugins.isolation {
            Self::Never => judged.manifest.as_ref().is_some_and(|manifest| manifest.isolated),
            Self::Unknown => {
                let is_known = judged.signed_by.is_some() || plugins.trusted_files.contains(&judged.digest);
                !is_known || judged.manifest.as_ref().is_some_and(|manifest| manifest.isolated)
            }
            Self::Always => true,
        }
    }
}

/// Notes about plugins that were named but do not run in a process of their own. Patterns may stand for none.
pub(crate) fn unmet_requests(options: &HostOptions, report: &LoadReport) -> Vec<String> {
    let named = options.isolate.iter().chain(&options.environment.isolate).filter(|name| !name.contains('*'));
    let unmet = named.filter_map(|name| {
        let loaded = report.loaded_plugins().map(|(_, loaded)| loaded).find(|loaded| loaded.info.name == *name);
        let found = match loaded {
            Some(loaded) if loaded.process.is_some() => return None,
            Some(_) => "one that is part of the program, which cannot be isolated",
            None => "none that works",
        };
        Some(format!("expected a plugin called `{name}` to isolate, found {found}"))
    });
    unmet.collect()
}
