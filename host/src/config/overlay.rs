//! A query as one table of settings, before its meaning is known: paths made relative to the file, flags laid over it, and
//! what is missing.

use std::path::Path;

use toml::{Table, Value};

use super::ConfigError;

/// Settings that hold paths, as (table, key). The table may be a list of tables.
const PATHS: [(&str, &str); 10] = [
    ("processor", "component"),
    ("step", "component"),
    ("source", "path"),
    ("initial_state", "path"),
    ("step.initial_state", "path"),
    ("sink", "path"),
    ("quarantine", "path"),
    ("dead_letters", "path"),
    ("query", "checkpoint"),
    ("query", "clock"),
];

/// Makes paths relative to the folder of the file.
pub(super) fn resolve_paths(table: &mut Table, folder: &Path) {
    for (sections, key) in PATHS {
        each_section(table, sections, &mut |section| {
            if let Some(Value::String(path)) = section.get_mut(key) {
                *path = folder.join(&*path).to_string_lossy().into_owned();
            }
        });
    }
}

/// An empty path is none: so a flag can take a path of the file away.
pub(super) fn drop_empty_paths(table: &mut Table) {
    for (sections, key) in PATHS {
        each_section(table, sections, &mut |section| {
            if section.get(key).and_then(Value::as_str).is_some_and(str::is_empty) {
                section.remove(key);
            }
        });
    }
}

/// The tables of a dotted name.
fn each_section(table: &mut Table, sections: &str, visit: &mut dyn FnMut(&mut Table)) {
    let (first, rest) = sections.split_once('.').map_or((sections, None), |(first, rest)| (first, Some(rest)));
    let mut enter = |section: &mut Table| match rest {
        Some(rest) => each_section(section, rest, visit),
        None => visit(section),
    };
    match table.get_mut(first) {
        Some(Value::Table(section)) => enter(section),
        Some(Value::Array(sections)) => sections.iter_mut().filter_map(Value::as_table_mut).for_each(enter),
        _ => {}
    }
}

/// Lays settings over others. In a list of tables, one is meant by its name.
///
/// # Errors
/// What is wrong, for people: no table of the list has that name.
pub(super) fn overlay(under: &mut Table, over: Table) -> Result<(), String> {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over)?,
            (Some(Value::Array(under)), Value::Table(over)) => {
                for (name, value) in over {
                    let name_of = |table: &Value| table.get("name").and_then(Value::as_str).map(str::to_owned);
                    let known: Vec<_> = under.iter().filter_map(name_of).collect();
                    let named = under.iter_mut().find(|table| name_of(table).as_ref() == Some(&name));
                    match (named, value) {
                        (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over)?,
                        _ => {
                            return Err(format!(
                                "{key}.{name} is no setting, as there are several [[{key}]]: {}; say which one is meant, \
                                 with --set {key}.NAME.SETTING=VALUE",
                                known.join(", ")
                            ));
                        }
                    }
                }
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
    Ok(())
}

/// `[[source]]` and `[source]` are read by two names.
pub(super) fn name_list_of_sources(table: &mut Table) {
    if table.get("source").is_some_and(Value::is_array)
        && let Some(list) = table.remove("source")
    {
        table.insert("sources".to_owned(), list);
    }
}

/// Settings of `[limits]` that a step may have of its own.
const STEP_LIMITS: [&str; 4] = ["output_rows", "output_bytes", "state", "sandbox"];

/// Gives each step the limits of the query, but for its own.
pub(super) fn inherit_limits(table: &mut Table) {
    let common = table.get("limits").and_then(Value::as_table).cloned().unwrap_or_default();
    let common: Table = common.into_iter().filter(|(key, _)| STEP_LIMITS.contains(&key.as_str())).collect();
    each_section(table, "step", &mut |step| {
        let mut limits = common.clone();
        match step.remove("limits") {
            // What is wrong in it is told when it is read.
            Some(Value::Table(own)) => drop(overlay(&mut limits, own)),
            Some(other) => drop(step.insert("limits".to_owned(), other)),
            None => {}
        }
        step.entry("limits").or_insert(Value::Table(limits));
    });
}

/// Settings that every query needs, any one of each line, with how to give them.
const REQUIRED: [(&str, &[&str], &str); 4] = [
    ("processor", &["component"], "what runs: a component as first argument, or component in [processor]"),
    ("source", &["path", "stdin"], "where rows come from: --input PATH (- for standard input), or path in [source]"),
    ("sink", &["path", "stdout"], "where rows go: --sink PATH (- for standard output), or path in [sink]"),
    ("query", &["key"], "by which columns rows are grouped: --key COLUMN, or key = [\"COLUMN\"] in [query]"),
];

/// Says how to give what is missing, which a parser of tables cannot.
pub(super) fn not_said(table: &Table) -> Option<ConfigError> {
    let steps = table.contains_key("step");
    let given = |section: &str, keys: &[&str]| {
        let section = table.get(section).and_then(Value::as_table);
        section.is_some_and(|section| keys.iter().any(|key| section.contains_key(*key)))
    };
    let (_, _, how) = REQUIRED
        .into_iter()
        .filter(|(section, ..)| !steps || ["source", "sink"].contains(section))
        .filter(|(section, ..)| *section != "source" || !table.contains_key("sources"))
        .find(|(section, keys, _)| !given(section, keys))?;
    Some(ConfigError::Missing(format!("the query does not say {how}")))
}
