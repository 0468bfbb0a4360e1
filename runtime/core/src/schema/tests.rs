//! Tests of the embedded schemas.

use std::collections::BTreeMap;

use super::index::schema_index;
use super::*;

#[test]
fn every_schema_can_be_read_and_each_domain_has_as_many_as_its_file_says() {
    let mut counts = BTreeMap::new();
    for schema in all_schemas().unwrap() {
        let schema = schema.unwrap();
        *counts.entry(schema.domain).or_insert(0) += 1;
        let variadics = [&schema.inputs, &schema.outputs]
            .into_iter()
            .flat_map(|formals| formals.iter().rev().skip(1).filter(|formal| formal.arity.is_variadic()));
        assert_eq!(variadics.count(), 0, "{schema:?}");
        assert!(schema.types.iter().all(|ty| !ty.allowed.to_string().contains("nothing")), "{schema:?}");
    }
    let claimed: BTreeMap<_, _> =
        schema_index().unwrap().domains.iter().map(|domain| (domain.name, domain.schema_count)).collect();
    assert_eq!(counts, claimed);
    assert!(claimed[ONNX_DOMAIN] >= 629 && claimed["oarlock"] >= 1, "{claimed:?}");
}

#[test]
fn every_fact_is_about_an_op_of_onnx() {
    let ops: Vec<_> = schema_index().unwrap().facts.op_names().collect();
    assert!(ops.len() > 60, "{ops:?}");
    for op in ops {
        assert!(latest_schema("", op).is_ok(), "{op}");
    }
    assert!(has_fact("Add", OpFact::Elementwise) && !has_fact("MatMul", OpFact::Elementwise));
    assert!(has_fact("Dropout", OpFact::Random) && !has_fact("Relu", OpFact::Random));
    assert!(!has_fact("NoSuchOp", OpFact::Elementwise));
}
