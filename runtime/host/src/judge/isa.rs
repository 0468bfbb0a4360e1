//! The instruction sets that a plugin needs, evaluated by the host without running any code of the plugin.
//!
//! A predicate combines features with `&`, `|`, `!` and parentheses: `avx512f & avx512vl & os_zmm | avx2`. The names are those
//! of [`crate::judge::features`], operating system state included.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::judge::features::{Feature, IsaFeatures, feature_names, features_of_architecture};
use crate::text::suggestion::did_you_mean;

/// A predicate on the machine that a variant needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IsaPredicate {
    text: String,
    any_of: FeatureExpression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FeatureExpression {
    Has(String),
    Not(Box<FeatureExpression>),
    All(Vec<FeatureExpression>),
    Any(Vec<FeatureExpression>),
}

impl IsaPredicate {
    /// The fit of the variant to the machine, or `None` if the predicate does not hold.
    ///
    /// The rank is the number of different features that the predicate needs, implied features included, in the alternative
    /// that needs the most: `avx512f` outranks `avx2 & fma`, which outranks no predicate at all (0).
    pub fn rank(&self, features: &IsaFeatures) -> Option<u32> {
        let table = features_of_architecture(std::env::consts::ARCH).unwrap_or(&[]);
        let needed = self.any_of.needed_features(features, table)?;
        Some(u32::try_from(needed.len()).unwrap_or(u32::MAX))
    }

    /// Refuses names that the architecture does not have.
    pub(crate) fn check_names(&self, architecture: &str) -> Result<(), String> {
        let Some(table) = features_of_architecture(architecture) else { return Ok(()) };
        let mut used = Vec::new();
        self.any_of.collect_names(&mut used);
        match used.into_iter().find(|name| !feature_names(table).any(|known| known == *name)) {
            Some(unknown) => Err(format!(
                "unknown feature `{unknown}` for {architecture}{}",
                did_you_mean(unknown, feature_names(table))
            )),
            None => Ok(()),
        }
    }
}

impl FeatureExpression {
    /// The features that make the expression true, or `None` if it is false.
    fn needed_features<'a>(
        &'a self,
        features: &IsaFeatures,
        table: &'a [Feature],
    ) -> Option<BTreeSet<&'a str>> {
        match self {
            Self::Has(name) => features.has_feature(name).then(|| with_implied(name, table)),
            Self::Not(inner) => inner.needed_features(features, table).is_none().then(BTreeSet::new),
            Self::All(parts) => parts.iter().try_fold(BTreeSet::new(), |mut all, part| {
                all.extend(part.needed_features(features, table)?);
                Some(all)
            }),
            Self::Any(parts) => parts
                .iter()
                .filter_map(|part| part.needed_features(features, table))
                .max_by_key(BTreeSet::len),
        }
    }

    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Has(name) => names.push(name),
            Self::Not(inner) => inner.collect_names(names),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect_names(names)),
        }
    }
}

fn with_implied<'a>(name: &'a str, table: &[Feature]) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::from([name]);
    let mut unseen = vec![name];
    while let Some(name) = unseen.pop() {
        let implied = table.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, implied)| implied);
        unseen.extend(implied.iter().filter(|name| all.insert(name)));
    }
    all
}

impl FromStr for IsaPredicate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parser = PredicateParser { rest: text, depth: 0 };
        let any_of = parser.parse_any()?;
        match parser.peek() {
            None => Ok(Self { text: text.to_owned(), any_of }),
            Some(_) => Err(parser.expected_error("`&`, `|` or the end")),
        }
    }
}

impl fmt::Display for IsaPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for IsaPredicate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<IsaPredicate> for String {
    fn from(predicate: IsaPredicate) -> Self {
        predicate.text
    }
}

struct PredicateParser<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> PredicateParser<'a> {
    fn parse_any(&mut self) -> Result<FeatureExpression, String> {
        let parts = self.parse_separated('|', |parser| {
            parser.parse_separated('&', Self::parse_operand).map(FeatureExpression::All)
        });
        parts.map(FeatureExpression::Any)
    }

    fn parse_separated(
        &mut self,
        separator: char,
        part: impl Fn(&mut Self) -> Result<FeatureExpression, String>,
    ) -> Result<Vec<FeatureExpression>, String> {
        let mut parts = vec![part(self)?];
        while self.accept(separator) {
            parts.push(part(self)?);
        }
        Ok(parts)
    }

    fn parse_operand(&mut self) -> Result<FeatureExpression, String> {
        /// More than enough for real predicates, and shallow enough for the smallest stack.
        const MAX_DEPTH: u32 = 32;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("expected an ISA predicate at most {MAX_DEPTH} parentheses and `!` deep"));
        }
        let expression = if self.accept('!') {
            FeatureExpression::Not(Box::new(self.parse_operand()?))
        } else if self.accept('(') {
            let inner = self.parse_any()?;
            if !self.accept(')') {
                return Err(self.expected_error("`)`"));
            }
            inner
        } else {
            FeatureExpression::Has(self.parse_name()?)
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn parse_name(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !of_name(c)).unwrap_or(self.rest.len());
        let (name, rest): (&'a str, &'a str) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(self.expected_error("a feature name"));
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }

    fn expected_error(&mut self, what: &str) -> String {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |c| format!("`{}`", c.escape_default()));
        format!("expected {what} in the ISA predicate, found {found}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_of(predicate: &str, features: &[&'static str]) -> Option<u32> {
        predicate.parse::<IsaPredicate>().unwrap().rank(&features.iter().copied().collect())
    }

    #[test]
    fn and_binds_tighter_than_or_and_not_tightest() {
        assert!(rank_of("a & b | c", &["c"]).is_some());
        assert!(rank_of("a & (b | c)", &["c"]).is_none());
        assert!(rank_of("!a & b", &["b"]).is_some());
        assert!(rank_of("!(a & b)", &["a", "b"]).is_none());
        assert!(rank_of(" ( !!a ) ", &["a"]).is_some());
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_variant_that_needs_more_ranks_higher_whatever_it_spells_out() {
        let all: Vec<&str> = feature_names(features_of_architecture("x86_64").unwrap()).collect();
        let ranks: Vec<_> = ["!avx", "sse4.2", "avx2 & fma", "avx512f", "avx512f & avx512vl & os_zmm | avx2"]
            .map(|predicate| rank_of(predicate, &all))
            .into();
        assert_eq!(ranks[0], None);
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert_eq!(rank_of("avx2 & avx2", &all), rank_of("avx2", &all));
        assert_eq!(rank_of("!nothing", &all), Some(0));
    }

    #[test]
    fn text_that_is_no_predicate_is_an_error() {
        for text in [
            "",
            "a &",
            "| a",
            "(a",
            "a)",
            "a b",
            "a && b",
            "é",
            "!",
            &"(".repeat(60_000),
            &"!".repeat(60_000),
        ] {
            assert!(text.parse::<IsaPredicate>().is_err(), "{text:.20}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_one() {
        let check = |text: &str, arch| text.parse::<IsaPredicate>().unwrap().check_names(arch);
        assert_eq!(
            check("avx2 & !avx512vm", "x86_64").unwrap_err(),
            "unknown feature `avx512vm` for x86_64; did you mean `avx512vl`"
        );
        assert!(check("neon & sve", "aarch64").is_ok());
        assert!(check("neon", "x86_64").is_err());
        assert!(check("anything", "riscv64").is_ok());
    }
}
