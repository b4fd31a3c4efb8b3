//! The little of Spark's DDL that the SDK needs: names of columns.

/// A name as DDL takes it: bare where it is a plain identifier, else in backquotes.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

/// The names of the columns at the top level of a schema, unquoted.
pub(crate) fn column_names(schema: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = schema.trim_start();
    while !rest.is_empty() {
        let (name, after) = leading_name(rest);
        names.push(name);
        rest = after_column(after).trim_start();
    }
    names
}

fn leading_name(text: &str) -> (String, &str) {
    let Some(mut rest) = text.strip_prefix('`') else {
        let end = text.find(|c: char| c.is_whitespace() || c == ':' || c == ',').unwrap_or(text.len());
        let (name, after) = text.split_at(end);
        return (name.to_owned(), after);
    };
    let mut name = String::new();
    while let Some((part, after)) = rest.split_once('`') {
        name.push_str(part);
        match after.strip_prefix('`') {
            // A doubled backquote stands for one.
            Some(more) => {
                name.push('`');
                rest = more;
            }
            None => return (name, after),
        }
    }
    name.push_str(rest);
    (name, "")
}

/// What follows the comma that ends the column in hand; commas inside of types and quoted names do not.
fn after_column(text: &str) -> &str {
    let mut depth = 0usize;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '`' => quoted = !quoted,
            _ if quoted => {}
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return text.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_beside_nested_types_and_quotes() {
        assert_eq!(column_names("key STRING NOT NULL, n BIGINT"), ["key", "n"]);
        assert_eq!(
            column_names("a DECIMAL(10, 2), b MAP<STRING, ARRAY<INT>>, c STRUCT<x: INT, `y, z`: INT>"),
            ["a", "b", "c"]
        );
        assert_eq!(column_names("`a ``b``, c` INT, d INT"), ["a `b`, c", "d"]);
        assert_eq!(column_names(""), Vec::<String>::new());
    }

    #[test]
    fn only_names_that_are_no_identifiers_are_quoted() {
        assert_eq!(quoted("time_hour"), "time_hour");
        assert_eq!(quoted("2nd"), "`2nd`");
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
