//! Where in the files each schema stands. The files are part of the program; the index is built when the first schema
//! is asked for, and a schema is read when it is first asked for itself, so that a program pays for what it uses.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use oarlock_host::did_you_mean;

use crate::schema::parse::{self, Domain, Heading, NamedSets, Paragraph};
use crate::schema::{ONNX, Schema};
use crate::{Error, Result};

const FILES: [&str; 2] =
    [include_str!("../../schemas/onnx.schemas"), include_str!("../../schemas/oarlock.schemas")];

static INDEX: LazyLock<Result<Index>> = LazyLock::new(|| Index::of(&FILES));

/// All schemas, by domain, name and version.
pub(super) struct Index {
    pub(super) domains: Vec<Domain>,
    pub(super) records: Vec<Record>,
    sets: NamedSets,
}

/// One schema, which may not have been read yet.
pub(super) struct Record {
    heading: Heading,
    text: &'static str,
    schema: OnceLock<Result<Schema>>,
}

/// The index of all files.
pub(super) fn index() -> Result<&'static Index> {
    INDEX.as_ref().map_err(Error::clone)
}

impl Record {
    /// The schema, read if this is the first time that it is asked for.
    pub(super) fn schema(&'static self, index: &Index) -> Result<&'static Schema> {
        let read = || parse::schema(self.heading, self.text, &index.sets);
        self.schema.get_or_init(read).as_ref().map_err(Error::clone)
    }

    fn cmp_name(&self, domain: &str, name: &str) -> Ordering {
        self.heading.domain.cmp(domain).then_with(|| self.heading.name.cmp(name))
    }
}

impl Index {
    fn of(files: &[&'static str]) -> Result<Self> {
        let mut index = Self { domains: Vec::new(), records: Vec::new(), sets: HashMap::new() };
        for text in files.iter().flat_map(|file| file.trim_end().split("\n\n")) {
            match parse::paragraph(text)? {
                Paragraph::Comment => {}
                Paragraph::Domain(domain) => {
                    index.records.reserve(domain.schema_count);
                    index.domains.push(domain);
                }
                Paragraph::Set { name, types } => _ = index.sets.insert(name, types),
                Paragraph::Op(heading, text) => {
                    index.records.push(Record { heading, text, schema: OnceLock::new() });
                }
            }
        }
        index
            .records
            .sort_by_key(|Record { heading, .. }| (heading.domain, heading.name, heading.since_version));
        Ok(index)
    }

    /// The domain of this name, where the empty name is that of ONNX.
    pub(super) fn domain(&self, name: &str) -> Result<&Domain> {
        let name = if name.is_empty() { ONNX } else { name };
        self.domains.iter().find(|domain| domain.name == name).ok_or_else(|| {
            let names = self.domains.iter().map(|domain| domain.name);
            let list: Vec<_> = names.clone().collect();
            let (list, suggestion) = (list.join(", "), did_you_mean(name, names));
            let name = oarlock_host::clean_text(name);
            Error::not_found(format!("expected a domain of ops ({list}), found `{name}`{suggestion}"))
        })
    }

    /// The schema of an op as of an opset.
    pub(super) fn find(&'static self, domain: &Domain, name: &str, opset: u32) -> Result<&'static Schema> {
        let Domain { name: domain, newest_opset, .. } = *domain;
        if opset > newest_opset {
            return Err(Error::out_of_range(format!(
                "expected an opset of `{domain}` up to {newest_opset}, found {opset}"
            ))
            .of_op(oarlock_host::clean_text(name)));
        }
        let versions = self.versions(domain, name);
        let Some(oldest) = versions.first() else { return Err(self.unknown_op(domain, name)) };
        let published = versions.partition_point(|record| record.heading.since_version <= opset);
        let Some(record) = versions[..published].last() else {
            let since = oldest.heading.since_version;
            return Err(Error::not_found(format!(
                "expected an op of opset {opset} of `{domain}`, found `{name}`, which came with opset {since}"
            )));
        };
        record.schema(self)
    }

    /// All versions of an op, the oldest first.
    fn versions(&self, domain: &str, name: &str) -> &[Record] {
        let begin = self.records.partition_point(|record| record.cmp_name(domain, name).is_lt());
        let later = &self.records[begin..];
        &later[..later.partition_point(|record| record.cmp_name(domain, name).is_eq())]
    }

    #[cold]
    fn unknown_op(&self, domain: &str, name: &str) -> Error {
        let known = self.records.iter().map(|record| &record.heading);
        let names = known.filter(|heading| heading.domain == domain).map(|heading| heading.name);
        let suggestion = did_you_mean(name, names);
        let name = oarlock_host::clean_text(name);
        Error::not_found(format!("expected an op of `{domain}`, found `{name}`{suggestion}"))
    }
}
