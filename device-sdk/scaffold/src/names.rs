//! The names of a new plugin, and how the sample's become those: by replacing whole words, which occur nowhere else.

/// What the plugin of the templates is called.
const SAMPLE: PluginNames<'static> =
    PluginNames { name: "sample-npu", device_type: "SampleNpu", vendor: "Sample Vendor" };

/// The longest name: a host takes 64 bytes, and packages put `oarlock-` before it.
const MAX_NAME_BYTES: usize = 48;

const MAX_VENDOR_BYTES: usize = 100;

/// Words that C, C++ or Rust do not take as the name of a namespace, a crate or a function, and `std` and `oarlock`, which are
/// taken.
const RESERVED_WORDS: &str = "abstract alignas alignof and as asm async atomic auto await become bitand bitor bool box break \
    case catch char class compl concept const constexpr continue core crate default define delete do double dyn else enum \
    explicit export extern false final float fn for friend gen goto if impl import in inline int let long loop macro main match \
    mod module move mut mutable namespace new noexcept not nullptr oarlock operator or override package priv private protected \
    pub public ref register requires restrict return self short signed sizeof static std struct super switch template test this \
    throw trait true try type typedef typeid typename typeof union unix unsafe unsigned unsized use using virtual void volatile \
    where while xor yield";

/// Device types that Oarlock itself provides.
const RESERVED_DEVICE_TYPES: [&str; 4] = ["cpu", "cuda", "opencl", "sim"];

/// The names of a plugin.
#[derive(Clone, Copy, Debug)]
pub struct PluginNames<'a> {
    /// The plugin's name, such as `acme-npu`.
    pub name: &'a str,
    /// The device type that users type, such as `AcmeNpu`.
    pub device_type: &'a str,
    /// The author or company.
    pub vendor: &'a str,
}

impl PluginNames<'_> {
    /// The name as a word of C and Rust, such as `acme_npu`.
    #[must_use]
    pub fn identifier(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Replaces the names of the sample in a template.
    pub(crate) fn fill_template(&self, text: &str) -> String {
        text.replace(SAMPLE.name, self.name)
            .replace(&SAMPLE.identifier(), &self.identifier())
            .replace(&SAMPLE.identifier().to_uppercase(), &self.identifier().to_uppercase())
            .replace(SAMPLE.device_type, self.device_type)
            .replace(SAMPLE.vendor, self.vendor)
    }
}

/// The device type of a plugin that states none: the words of its name, each with a capital, such as `AcmeNpu`.
#[must_use]
pub fn default_device_type(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').filter(|word| !word.is_empty()).map(capital).collect()
}

/// Checks the name of a new plugin.
///
/// # Errors
///
/// A sentence that says what a name is.
pub fn check_plugin_name(name: &str) -> Result<(), String> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_plain = name.len() >= 2
        && name.len() <= MAX_NAME_BYTES
        && name.as_bytes()[0].is_ascii_lowercase()
        && name.split('-').all(|word| !word.is_empty() && word.bytes().all(is_letter));
    if !is_plain {
        return Err(format!(
            "expected a name of 2 to {MAX_NAME_BYTES} lower-case letters, digits and single `-`, with a letter first, such as \
             `acme-npu`; found `{}`",
            name.escape_debug()
        ));
    }
    if RESERVED_WORDS.split_whitespace().any(|word| word == name) {
        return Err(format!(
            "expected a name that is no word of C, C++ or Rust, such as `{name}-npu`; found `{name}`"
        ));
    }
    Ok(())
}

/// Checks a device type.
///
/// # Errors
///
/// A sentence that says what a device type is.
pub fn check_device_type(device_type: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_valid = device_type.len() <= MAX_NAME_BYTES
        && device_type.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && device_type.bytes().all(is_plain);
    if !is_valid {
        return Err(format!(
            "expected a device type of 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`, with a letter first, such as \
             `AcmeNpu`; found `{}`",
            device_type.escape_debug()
        ));
    }
    match RESERVED_DEVICE_TYPES.iter().find(|taken| taken.eq_ignore_ascii_case(device_type)) {
        Some(taken) => Err(format!(
            "expected a device type of your own, found `{device_type}`: Oarlock has a device `{taken}`"
        )),
        None => Ok(()),
    }
}

/// Checks the name of a vendor, which stands in sources, in TOML and in packages.
///
/// # Errors
///
/// A sentence that says what is not possible there.
pub fn check_vendor(vendor: &str) -> Result<(), String> {
    let is_plain = |c: char| !c.is_control() && !"\"\\<>%{}".contains(c);
    if vendor.trim() == vendor
        && !vendor.is_empty()
        && vendor.len() <= MAX_VENDOR_BYTES
        && vendor.chars().all(is_plain)
    {
        return Ok(());
    }
    Err(format!(
        "expected the name of a vendor, of at most {MAX_VENDOR_BYTES} bytes and without quotes, brackets, `\\` and `%`; found `{}`",
        vendor.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_name_is_replaced() {
        let names = PluginNames { name: "acme-x1", device_type: "ACME.X1", vendor: "Acme & Sons" };
        let text = "sample-npu sample_npu_core SAMPLE_NPU_H SampleNpu:0 Sample Vendor";
        assert_eq!(names.fill_template(text), "acme-x1 acme_x1_core ACME_X1_H ACME.X1:0 Acme & Sons");
    }

    #[test]
    fn the_words_of_a_name_make_the_device_type() {
        assert_eq!(default_device_type("acme-npu-2"), "AcmeNpu2");
    }

    #[test]
    fn names_that_a_compiler_a_package_or_a_host_refuses_are_refused() {
        for name in ["acme", "acme-npu", "a1", "acme-2"] {
            assert_eq!(check_plugin_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "a",
            "Acme",
            "acme_npu",
            "-acme",
            "acme-",
            "acme--npu",
            "1acme",
            "é1",
            "class",
            "std",
            "oarlock",
        ] {
            assert!(check_plugin_name(name).is_err(), "{name}");
        }
        assert!(check_plugin_name(&"a".repeat(MAX_NAME_BYTES + 1)).is_err());
        for device_type in ["ACME", "acme.x", "A"] {
            assert_eq!(check_device_type(device_type), Ok(()), "{device_type}");
        }
        for device_type in ["", "1", "acme npu", "acme:0", "CPU", "é"] {
            assert!(check_device_type(device_type).is_err(), "{device_type}");
        }
        assert_eq!(check_vendor("Acme & Sons, Inc."), Ok(()));
        for vendor in ["", " x", "a\"b", "a\\b", "a\nb", "100 %", "<a>"] {
            assert!(check_vendor(vendor).is_err(), "{vendor}");
        }
    }
}
