//! Flags: settings of the runtime, in one typed table from which the environment variables, the API, the
//! documentation and `oarlock flags` are all derived.
//!
//! The value of a flag comes from the first of these that provides one: the program ([`Flags::set`]), the environment
//! (`OARLOCK_` and the name in capitals, or an alias), and the built-in default. Aliases are names of
//! PaddlePaddle's flags that have an equivalent here. Its flags without an equivalent are in a separate table, `paddle`,
//! and the runtime tells users who set one what to use instead.
//!
//! Flags are set before a runtime starts and are fixed from then on. Pools, the random generator and the kernels of
//! call sites are built from them and would not follow a change, so there is no API to change one.

mod ignored_variables;
mod paddle;
mod table;
mod value;

use std::ffi::OsString;

pub use ignored_variables::{
    IgnoredVariable, concerns_oarlock, has_effect, ignored_variable, take_ignored_variables,
};
pub use paddle::{PaddleEffect, PaddleVariable, paddle_variables};
pub use table::{AllocatorStrategy, FLAG_TABLE, FallbackScope};
pub use value::{FlagKind, FlagValue};

use crate::{Error, Result};

/// One row of the table of flags.
#[derive(Debug)]
pub struct FlagDefinition {
    /// The name, as in [`Flags::set`] and the documentation.
    pub name: &'static str,
    /// The values that it accepts.
    pub kind: FlagKind,
    /// The default, in the form that users write.
    pub default: &'static str,
    /// Its effect, in one sentence.
    pub meaning: &'static str,
    /// Other environment variables that set it.
    pub aliases: &'static [&'static str],
}

impl FlagDefinition {
    /// The environment variable that sets it, such as `OARLOCK_CHECK_NAN_INF`.
    pub fn variable_name(&self) -> String {
        format!("OARLOCK_{}", self.name.to_uppercase())
    }
}

/// The origin of a flag's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagSource {
    /// The built-in default.
    Default,
    /// This environment variable.
    Environment(String),
    /// A call of [`Flags::set`].
    Program,
}

/// The values of all flags. Each access looks a flag up by name, so hot paths keep a copy of what they need.
#[derive(Debug)]
pub struct Flags {
    values: Vec<(FlagValue, FlagSource)>,
}

impl Flags {
    /// Starts from the defaults and applies the environment. `variable` looks a variable up; an empty value counts as unset.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let read = |flag: &'static FlagDefinition| -> Result<(FlagValue, FlagSource)> {
            let own = flag.variable_name();
            let names = std::iter::once(own.as_str()).chain(flag.aliases.iter().copied());
            for name in names {
                let Some(text) = variable(name).filter(|text| !text.is_empty()) else { continue };
                let wrong = |expected: &str, found: &str| {
                    Error::invalid_argument(format!("expected `{name}` to be {expected}, found `{found}`"))
                };
                let text =
                    text.into_string().map_err(|text| wrong("text in UTF-8", &text.to_string_lossy()))?;
                let value = parse_flag(flag, name, &text).map_err(|expected| wrong(&expected, &text))?;
                return Ok((value, FlagSource::Environment(name.to_owned())));
            }
            Ok((default_value(flag)?, FlagSource::Default))
        };
        let values: Result<Vec<_>> = FLAG_TABLE.iter().map(read).collect();
        Ok(Self { values: values? })
    }

    /// Sets a flag to a value in the form that users write. The flags of a running runtime cannot be changed:
    ///
    /// ```compile_fail,E0596
    /// fn change(runtime: &oarlock_core::Runtime) -> oarlock_core::Result<()> {
    ///     runtime.flags().set("check_nan_inf", "true")
    /// }
    /// ```
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let at = flag_index(name)?;
        let flag = &FLAG_TABLE[at];
        let value = parse_flag(flag, name, text).map_err(|expected| {
            Error::invalid_argument(format!("expected the flag `{name}` to be {expected}, found `{text}`"))
        })?;
        self.values[at] = (value, FlagSource::Program);
        Ok(())
    }

    /// The value of a flag, and its origin.
    pub fn get(&self, name: &str) -> Result<(FlagValue, FlagSource)> {
        let at = flag_index(name)?;
        Ok(self.values[at].clone())
    }

    /// All flags with their values and origins, in the order of the table.
    pub fn list_flags(&self) -> Vec<(&'static FlagDefinition, FlagValue, FlagSource)> {
        FLAG_TABLE
            .iter()
            .zip(&self.values)
            .map(|(flag, (value, source))| (flag, value.clone(), source.clone()))
            .collect()
    }

    fn flag_value(&self, name: &str) -> FlagValue {
        // Only accessors call this, with names that are in the table; a test checks that.
        self.get(name).map_or(FlagValue::Bool(false), |(value, _)| value)
    }
}

/// Parses the value of a variable that sets a flag. If its name ends in `_mb`, a number without a unit counts mebibytes.
fn parse_flag(flag: &FlagDefinition, name: &str, text: &str) -> std::result::Result<FlagValue, String> {
    let is_number = text.trim().bytes().all(|byte| byte.is_ascii_digit());
    if name.ends_with("_mb") && is_number {
        return flag.kind.parse_value(&format!("{} MiB", text.trim()));
    }
    flag.kind.parse_value(text)
}

fn default_value(flag: &FlagDefinition) -> Result<FlagValue> {
    flag.kind.parse_value(flag.default).map_err(|expected| {
        Error::fatal(format!("expected the default of the flag `{}` to be {expected}", flag.name))
    })
}

/// Finds a flag by its name or an alias.
fn flag_index(name: &str) -> Result<usize> {
    let is_named = |flag: &FlagDefinition| {
        flag.name == name
            || flag.aliases.iter().any(|alias| *alias == name || alias.strip_prefix("FLAGS_") == Some(name))
    };
    FLAG_TABLE.iter().position(is_named).ok_or_else(|| {
        let error = Error::not_found(format!("expected the name of a flag, found `{name}`"));
        // PaddlePaddle accepts the names of its flags with and without `FLAGS_`.
        let without_prefix = || ignored_variables::find_ineffective(&format!("FLAGS_{name}"));
        let advice = ignored_variables::advice_for_paddle(name)
            .or_else(|| without_prefix().map(|variable| variable.instead.to_owned()));
        if let Some(advice) = advice {
            return error.with_advice(format!("it has no effect here; {advice}"));
        }
        match oarlock_host::nearest_name(name, FLAG_TABLE.iter().map(|flag| flag.name)) {
            Some(nearest) => {
                error.with_advice(format!("did you mean `{nearest}`? `oarlock flags` lists them"))
            }
            None => error.with_advice("`oarlock flags` lists them"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_variable(_: &str) -> Option<OsString> {
        None
    }

    #[test]
    fn every_default_is_a_value_of_its_flag_and_every_name_is_one_flags() {
        let flags = Flags::from_environment(no_variable).unwrap();
        for (flag, _, source) in flags.list_flags() {
            assert_eq!(source, FlagSource::Default, "{}", flag.name);
            assert!(
                std::ptr::eq(&FLAG_TABLE[flag_index(flag.name).unwrap()], flag),
                "{} is there twice",
                flag.name
            );
        }
    }

    #[test]
    fn the_environment_is_under_the_program_and_own_names_are_over_aliases() {
        let variable = |name: &str| match name {
            "OARLOCK_CHECK_NAN_INF" => Some("1".into()),
            "FLAGS_check_nan_inf" => Some("false".into()),
            "FLAGS_cpu_deterministic" => Some("True".into()),
            _ => None,
        };
        let mut flags = Flags::from_environment(variable).unwrap();
        assert_eq!(flags.get("check_nan_inf").unwrap().0, FlagValue::Bool(true));
        assert!(flags.is_deterministic());
        flags.set("FLAGS_check_nan_inf", "off").unwrap();
        assert_eq!(flags.get("check_nan_inf").unwrap(), (FlagValue::Bool(false), FlagSource::Program));
    }

    #[test]
    fn an_unknown_flag_is_an_error_with_the_nearest_name() {
        let mut flags = Flags::from_environment(no_variable).unwrap();
        let error = flags.set("determinstic", "1").unwrap_err();
        assert!(error.advice().unwrap().contains("`deterministic`"), "{error:?}");
    }

    #[test]
    fn a_flag_of_paddle_without_effect_is_an_error_that_says_what_to_use() {
        let mut flags = Flags::from_environment(no_variable).unwrap();
        let advice = |error: &Error| error.advice().unwrap().to_owned();
        for name in ["FLAGS_selected_gpus", "selected_gpus"] {
            let errors = [flags.set(name, "0").unwrap_err(), flags.get(name).unwrap_err()];
            for error in errors {
                assert_eq!(error.message(), format!("expected the name of a flag, found `{name}`"));
                let told = advice(&error);
                assert!(told.starts_with("it has no effect here; choose devices with `-d cuda:0`"), "{told}");
            }
        }
        let slip = flags.set("FLAGS_chek_nan_inf", "1").unwrap_err();
        assert_eq!(advice(&slip), "it has no effect here; did you mean `FLAGS_check_nan_inf`?");
    }

    #[test]
    fn an_alias_counts_in_its_own_unit() {
        let variable = |name: &str| (name == "FLAGS_initial_gpu_memory_in_mb").then(|| "500".into());
        let flags = Flags::from_environment(variable).unwrap();
        assert_eq!(flags.nonzero_count("device_memory_initial"), Some(500 << 20));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let variable = |name: &str| match name {
            "OARLOCK_DETERMINISTIC" | "OARLOCK_CHECK_NAN_INF" => Some("".into()),
            "FLAGS_check_nan_inf" => Some("1".into()),
            _ => None,
        };
        let flags = Flags::from_environment(variable).unwrap();
        assert_eq!(flags.get("deterministic").unwrap(), (FlagValue::Bool(false), FlagSource::Default));
        assert!(flags.is_enabled("check_nan_inf"), "an alias counts where the own name is empty");
    }

    #[test]
    fn a_variable_that_is_not_utf8_is_an_error_that_names_it() {
        use std::os::unix::ffi::OsStringExt as _;
        let variable =
            |name: &str| (name == "OARLOCK_DEVICE").then(|| OsString::from_vec(b"cp\xff".to_vec()));
        let error = Flags::from_environment(variable).unwrap_err();
        assert_eq!(error.message(), "expected `OARLOCK_DEVICE` to be text in UTF-8, found `cp\u{fffd}`");
    }

    #[test]
    fn an_output_that_names_no_op_is_refused() {
        let wrong = |name: &str| (name == "PADDLE_INF_NAN_SKIP_VAR").then(|| "Div:C,D".into());
        let error = Flags::from_environment(wrong).unwrap_err();
        assert_eq!(
            error.message(),
            "expected `PADDLE_INF_NAN_SKIP_VAR` to be pairs such as `Div:C` with commas between them, found `Div:C,D`"
        );
    }

    #[test]
    fn an_invalid_flag_value_reports_the_expected_values() {
        let wrong = |name: &str| (name == "FLAGS_allocator_strategy").then(|| "greedy".into());
        let error = Flags::from_environment(wrong).unwrap_err();
        assert_eq!(
            error.message(),
            "expected `FLAGS_allocator_strategy` to be `auto_growth`, `best_fit` or `naive_best_fit`, found `greedy`"
        );
    }
}
