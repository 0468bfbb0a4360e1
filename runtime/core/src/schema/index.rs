//! An index of the schemas in the embedded files. The index is built on the first lookup, and each schema is parsed
//! when it is first looked up, so a program pays only for the schemas that it uses.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use oarlock_host::did_you_mean;

use crate::schema::facts::{OpFact, OpFactIndex};
use crate::schema::parse::{self, NamedTypeSets, SchemaDomain, SchemaHeading, SchemaParagraph};
use crate::schema::{OpSchema, displayed_domain};
use crate::{Error, Result};

const SCHEMA_FILES: [&str; 2] =
    [include_str!("../../schemas/onnx.schemas"), include_str!("../../schemas/oarlock.schemas")];

static SCHEMA_INDEX: LazyLock<Result<SchemaIndex>> = LazyLock::new(|| SchemaIndex::from_files(&SCHEMA_FILES));

/// All schemas, sorted by domain, name and version.
pub(super) struct SchemaIndex {
    pub(super) domains: Vec<SchemaDomain>,
    pub(super) records: Vec<SchemaRecord>,
    pub(super) facts: OpFactIndex,
    sets: NamedTypeSets,
}

/// One schema, parsed on demand.
pub(super) struct SchemaRecord {
    heading: SchemaHeading,
    text: &'static str,
    schema: OnceLock<Result<OpSchema>>,
}

/// The index of all files, built on first use.
pub(super) fn schema_index() -> Result<&'static SchemaIndex> {
    SCHEMA_INDEX.as_ref().map_err(Error::clone)
}

impl SchemaRecord {
    /// Parses the schema on the first call.
    pub(super) fn read_schema(&'static self, index: &SchemaIndex) -> Result<&'static OpSchema> {
        let read = || parse::parse_schema(self.heading, self.text, &index.sets);
        self.schema.get_or_init(read).as_ref().map_err(Error::clone)
    }

    fn cmp_name(&self, domain: &str, name: &str) -> Ordering {
        self.heading.domain.cmp(domain).then_with(|| self.heading.name.cmp(name))
    }
}

impl SchemaIndex {
    fn from_files(files: &[&'static str]) -> Result<Self> {
        let mut index = Self {
            domains: Vec::new(),
            records: Vec::new(),
            facts: OpFactIndex::default(),
            sets: HashMap::new(),
        };
        for text in files.iter().flat_map(|file| file.trim_end().split("\n\n")) {
            match parse::parse_paragraph(text)? {
                SchemaParagraph::Comment => {}
                SchemaParagraph::Domain(domain) => {
                    index.records.reserve(domain.schema_count);
                    index.domains.push(domain);
                }
                SchemaParagraph::Set { name, types } => _ = index.sets.insert(name, types),
                SchemaParagraph::Fact(fact, names) => index.facts.add_ops(fact, names),
                SchemaParagraph::Op(heading, text) => {
                    index.records.push(SchemaRecord { heading, text, schema: OnceLock::new() });
                }
            }
        }
        index.records.sort_by_key(|SchemaRecord { heading, .. }| {
            (heading.domain, heading.name, heading.since_version)
        });
        Ok(index)
    }

    /// Finds a domain. The empty name means ONNX's own.
    pub(super) fn find_domain(&self, name: &str) -> Result<&SchemaDomain> {
        let name = displayed_domain(name);
        self.domains.iter().find(|domain| domain.name == name).ok_or_else(|| {
            let names = self.domains.iter().map(|domain| domain.name);
            let list: Vec<_> = names.clone().collect();
            let (list, suggestion) = (list.join(", "), did_you_mean(name, names));
            let name = oarlock_host::sanitize_text(name);
            Error::not_found(format!("expected a domain of ops ({list}), found `{name}`{suggestion}"))
        })
    }

    /// Finds the schema of an op in an opset: the newest that is not newer.
    pub(super) fn find_schema(
        &'static self,
        domain: &SchemaDomain,
        name: &str,
        opset: u32,
    ) -> Result<&'static OpSchema> {
        let SchemaDomain { name: domain, newest_opset, .. } = *domain;
        if opset > newest_opset {
            return Err(Error::out_of_range(format!(
                "expected an opset of `{domain}` up to {newest_opset}, found {opset}"
            ))
            .with_op(oarlock_host::sanitize_text(name)));
        }
        let versions = self.op_versions(domain, name);
        let Some(oldest) = versions.first() else { return Err(self.unknown_op(domain, name)) };
        let published = versions.partition_point(|record| record.heading.since_version <= opset);
        let Some(record) = versions[..published].last() else {
            let since = oldest.heading.since_version;
            return Err(Error::not_found(format!(
                "expected an op of opset {opset} of `{domain}`, found `{name}`, which came with opset {since}"
            )));
        };
        record.read_schema(self)
    }

    /// All versions of an op, the oldest first.
    fn op_versions(&self, domain: &str, name: &str) -> &[SchemaRecord] {
        let begin = self.records.partition_point(|record| record.cmp_name(domain, name).is_lt());
        let later = &self.records[begin..];
        &later[..later.partition_point(|record| record.cmp_name(domain, name).is_eq())]
    }

    #[cold]
    fn unknown_op(&self, domain: &str, name: &str) -> Error {
        let known = self.records.iter().map(|record| &record.heading);
        let names = known.filter(|heading| heading.domain == domain).map(|heading| heading.name);
        let suggestion = did_you_mean(name, names);
        let name = oarlock_host::sanitize_text(name);
        Error::not_found(format!("expected an op of `{domain}`, found `{name}`{suggestion}"))
    }
}

/// True if a fact holds for an op of ONNX.
pub fn has_fact(op: &str, fact: OpFact) -> bool {
    schema_index().is_ok_and(|index| index.facts.holds(op, fact))
}
