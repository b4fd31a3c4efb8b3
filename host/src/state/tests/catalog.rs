//! What a processor may declare, and how it may differ from what a checkpoint holds.

use super::super::keys::CATALOG;
use super::super::{
    Applied, Catalog, Changes, Dropped, Family, MemoryStore, Outlook, Resolution, StateError, StateLimits, Store,
    VARIABLES_MAX, VariableKind, VariableSpec,
};
use crate::record::Schema;

fn schema(ddl: &str) -> Schema {
    Schema::parse(ddl).unwrap()
}

fn value(name: &str, ddl: &str) -> VariableSpec {
    VariableSpec { name: name.into(), kind: VariableKind::Value, key: None, value: schema(ddl), ttl_ms: None }
}

fn map(name: &str, key: &str, ddl: &str) -> VariableSpec {
    VariableSpec { kind: VariableKind::Map, key: Some(schema(key)), ..value(name, ddl) }
}

fn resolve(catalog: &Catalog, specs: &[VariableSpec], deleted: &[&str]) -> Result<Resolution, StateError> {
    let deleted: Vec<_> = deleted.iter().map(|name| (*name).to_owned()).collect();
    catalog.resolve(0, specs, &deleted, &StateLimits::default())
}

fn after(catalog: &Catalog, specs: &[VariableSpec]) -> Catalog {
    resolve(catalog, specs, &[]).unwrap().catalog
}

fn resolved(specs: &[VariableSpec]) -> Catalog {
    after(&Catalog::default(), specs)
}

fn refusal(catalog: &Catalog, spec: VariableSpec) -> StateError {
    resolve(catalog, &[spec], &[]).unwrap_err()
}

fn code(catalog: &Catalog, spec: VariableSpec) -> &'static str {
    refusal(catalog, spec).code()
}

#[test]
fn ids_are_stable_whatever_the_order_of_declaration() {
    let catalog = resolved(&[value("a", "n BIGINT"), value("b", "n BIGINT")]);
    let again =
        resolve(&catalog, &[value("c", "n BIGINT"), value("b", "n BIGINT"), value("a", "n BIGINT")], &[]).unwrap();
    assert_eq!(again.variables.iter().map(|variable| variable.id).collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn steps_have_ids_of_their_own() {
    let catalog = resolved(&[value("a", "n BIGINT")]);
    assert_eq!(catalog.resolve(1, &[value("b", "n BIGINT")], &[], &StateLimits::default()).unwrap().variables[0].id, 1);
}

#[test]
fn a_catalog_in_the_store_is_read_back_and_an_unchanged_one_is_not_written_again() {
    let store = MemoryStore::new();
    let specs = [value("a", "n BIGINT"), map("m", "k STRING", "tags ARRAY<STRING>")];
    let first = resolve(&Catalog::load(&store).unwrap(), &specs, &[]).unwrap();
    store.apply(&[first.changes], Applied { batch: Some(0), generation: 0 }).unwrap();

    let read = Catalog::load(&store).unwrap();

    assert_eq!(read, first.catalog);
    assert!(resolve(&read, &specs, &[]).unwrap().changes.is_empty());
}

#[test]
fn a_dropped_variable_that_comes_back_has_a_new_id() {
    let catalog = resolved(&[value("a", "n BIGINT")]);
    let dropped = resolve(&catalog, &[], &["a", "unknown"]).unwrap();
    assert_eq!(dropped.dropped, [Dropped { id: 1, name: "a".into() }]);
    assert_eq!(resolve(&dropped.catalog, &[map("a", "k INT", "v INT")], &[]).unwrap().variables[0].id, 2);
}

#[test]
fn a_variable_no_longer_declared_keeps_its_id_and_is_marked() {
    let catalog = after(&resolved(&[value("a", "n BIGINT")]), &[value("b", "n INT")]);
    assert_eq!(catalog.variables(0).iter().map(|known| known.declared).collect::<Vec<_>>(), [false, true]);
    assert_eq!(resolve(&catalog, &[value("a", "n BIGINT")], &[]).unwrap().variables[0].id, 1);
}

#[test]
fn the_kind_of_a_variable_is_fixed_until_it_is_dropped() {
    let catalog = resolved(&[value("v", "n BIGINT")]);
    let list = VariableSpec { kind: VariableKind::List, ..value("v", "n BIGINT") };
    assert_eq!(code(&catalog, list.clone()), "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE");

    let catalog = resolve(&catalog, &[], &["v"]).unwrap().catalog;
    assert_eq!(resolve(&catalog, &[list], &[]).unwrap().variables[0].id, 2);
}

#[test]
fn the_keys_of_a_map_are_fixed_in_names_types_and_order() {
    let catalog = resolved(&[map("m", "a INT, s STRUCT<x: INT, y: INT> NOT NULL", "v INT")]);
    for key in [
        "a BIGINT, s STRUCT<x: INT, y: INT>",
        "b INT, s STRUCT<x: INT, y: INT>",
        "s STRUCT<x: INT, y: INT>, a INT",
        "a INT, s STRUCT<y: INT, x: INT>",
        "a INT NOT NULL, s STRUCT<x: INT, y: INT>",
        "a INT",
    ] {
        assert_eq!(code(&catalog, map("m", key, "v INT")), "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "{key}");
    }
    after(&catalog, &[map("m", "A INT, s STRUCT<x: INT, y: INT>", "v BIGINT")]);
}

#[test]
fn a_value_schema_that_may_follow_has_an_id_of_its_own_and_keeps_it() {
    let [first, second] = [value("v", "n INT"), value("v", "n INT, m STRING")];
    let catalog = resolved(std::slice::from_ref(&first));
    let catalog = after(&catalog, std::slice::from_ref(&second));
    let known = &catalog.variables(0)[0];
    assert_eq!((known.schema_id, &known.value, &known.other_values[&0]), (1, &second.value, &first.value));

    let back = resolve(&catalog, &[first], &[]).unwrap();
    assert_eq!(back.variables[0].schema_id, 0);
    let again = resolve(&back.catalog, &[second], &[]).unwrap();
    assert_eq!(again.catalog, catalog);
}

#[test]
fn a_refused_value_schema_is_told_with_variable_field_types_and_what_to_do() {
    let catalog = resolved(&[value("totals", "n BIGINT, s STRUCT<a: STRING>")]);
    let error = refusal(&catalog, value("totals", "n INT, s STRUCT<a: INT>"));
    assert_eq!(error.code(), "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION");
    assert_eq!(
        error.to_string(),
        "the value of state variable \"totals\" is <n BIGINT, s STRUCT<a: STRING>> in the checkpoint and \
         <n INT, s STRUCT<a: INT>> in the processor; \
         n from BIGINT to INT: values could be lost; keep the type, or give the field another name; \
         s.a from STRING to INT: values could be lost; keep the type, or give the field another name"
    );
    for ddl in ["n BIGINT NOT NULL, s STRUCT<a: STRING>", "n BIGINT, s STRUCT<a: STRING>, x INT NOT NULL"] {
        assert_eq!(code(&catalog, value("totals", ddl)), "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE", "{ddl}");
    }
}

#[test]
fn a_value_schema_must_read_every_earlier_one_not_only_the_last() {
    let catalog = after(&resolved(&[value("v", "a INT, n BIGINT")]), &[value("v", "a INT")]);

    let error = refusal(&catalog, value("v", "a INT, n INT"));

    assert_eq!(error.code(), "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION");
    assert!(error.to_string().contains("in an earlier version, of which rows may still be stored"), "{error}");
    after(&catalog, &[value("v", "a INT, n BIGINT")]);
}

#[test]
fn value_schemas_are_limited_in_number_and_known_ones_are_none_more() {
    let mut catalog = Catalog::default();
    let with_columns = |columns: u16| {
        let columns: Vec<_> = (0..=columns).map(|column| format!("c{column} INT")).collect();
        value("v", &columns.join(", "))
    };
    let most = StateLimits::default().value_schemas_max;
    for columns in 0..most {
        catalog = after(&catalog, &[with_columns(columns)]);
    }
    assert_eq!(code(&catalog, with_columns(most)), "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED");
    after(&catalog, &[with_columns(3)]);
}

#[test]
fn the_outlook_tells_what_becomes_of_each_variable() {
    let specs = [
        value("same", "n INT"),
        value("wider", "n INT"),
        value("narrower", "n INT"),
        value("gone", "n INT"),
        value("left", "n INT"),
    ];
    let declared = [
        value("same", "n INT"),
        value("wider", "n BIGINT, m INT"),
        value("narrower", "n TINYINT"),
        map("new", "k INT", "n INT"),
    ];
    let outlook = resolved(&specs).outlook(0, &declared, &["gone".into(), "unknown".into()], &StateLimits::default());
    let outlook: Vec<_> = outlook.unwrap().into_iter().map(|variable| (variable.name, variable.outlook)).collect();
    let told = outlook.iter().map(|(name, outlook)| match outlook {
        Outlook::New => format!("{name} new"),
        Outlook::Kept { differences, .. } => {
            format!("{name} {}", differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Outlook::Undeclared { before } => format!("{name} undeclared, {before}"),
        Outlook::Dropped => format!("{name} dropped"),
        Outlook::Refused(error) => format!("{name} {}", error.code()),
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "same ",
            "wider n widened from INT to BIGINT, m INT added",
            "narrower STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
            "new new",
            "gone dropped",
            "left undeclared, false",
        ]
    );
}

#[test]
fn a_ttl_may_come_change_and_go() {
    let ttl = |ttl_ms| VariableSpec { ttl_ms, ..value("v", "n BIGINT") };
    let mut catalog = resolved(&[ttl(None)]);
    for (ttl_ms, expires) in [(Some(5), true), (Some(50), true), (None, true)] {
        let resolution = resolve(&catalog, &[ttl(ttl_ms)], &[]).unwrap();
        assert_eq!((resolution.variables[0].spec.ttl_ms, resolution.variables[0].expires), (ttl_ms, expires));
        catalog = resolution.catalog;
        assert_eq!((catalog.variables(0)[0].ttl_ms, catalog.variables(0)[0].expires), (ttl_ms, expires));
    }
}

#[test]
fn a_ttl_duration_may_change_zero_means_none_and_a_negative_one_is_refused() {
    let ttl = |ttl_ms: i64| VariableSpec { ttl_ms: Some(ttl_ms.cast_unsigned()), ..value("v", "n BIGINT") };
    let catalog = resolved(&[ttl(5)]);
    let longer = resolve(&catalog, &[ttl(50)], &[]).unwrap();
    assert_eq!(longer.variables[0].spec.ttl_ms, Some(50));
    assert_eq!(longer.catalog.variables(0)[0].ttl_ms, Some(50));
    assert_eq!(code(&catalog, ttl(-1)), "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE");
    assert_eq!(resolve(&Catalog::default(), &[ttl(0)], &[]).unwrap().variables[0].spec.ttl_ms, None);
}

#[test]
fn names_follow_the_rules() {
    let none = Catalog::default();
    for name in ["", " a", "a ", "default", "a\u{7}", &"x".repeat(301)] {
        assert_eq!(code(&none, value(name, "n INT")), "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME");
    }
    assert_eq!(code(&none, value("$a", "n INT")), "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS");
    assert!(resolve(&none, &[value("_a", "n INT"), value(&"é".repeat(300), "n INT")], &[]).is_ok());
}

#[test]
fn one_name_for_two_variables_is_refused_also_over_kinds() {
    let twice = [value("a", "n INT"), map("a", "k INT", "v INT")];
    let error = resolve(&Catalog::default(), &twice, &[]).unwrap_err();
    assert_eq!(error.code(), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
    let error = resolve(&Catalog::default(), &[value("a", "n INT")], &["a"]).unwrap_err();
    assert_eq!(error.code(), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
}

#[test]
fn too_many_variables_are_refused() {
    let many: Vec<VariableSpec> = (0..=VARIABLES_MAX).map(|n| value(&format!("v{n}"), "n INT")).collect();
    assert_eq!(resolve(&Catalog::default(), &many, &[]).unwrap_err().code(), "STATE_VARIABLES_EXCEEDED");
}

#[test]
fn a_damaged_catalog_is_reported() {
    let store = MemoryStore::new();
    let mut changes = Changes::default();
    changes.push(Family::Meta, CATALOG, Some(b"{"));
    store.apply(&[changes], Applied::default()).unwrap();
    assert_eq!(Catalog::load(&store).unwrap_err().code(), "STATE_CORRUPT");
}
