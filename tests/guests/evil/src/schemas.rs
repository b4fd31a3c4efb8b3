//! Schemas that are too long, too deep or no schemas.

use crate::polite::{plan, variables};
use crate::{Attack, Failure, Plan};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { init: |_| variables(&columns(100_000)), ..Attack::polite("schema-wide") },
    Attack { init: |_| variables(&nested("ARRAY<", ">", 1_000)), ..Attack::polite("schema-deep") },
    Attack { init: |_| variables(&nested("STRUCT<a: ", ">", 1_000_000)), ..Attack::polite("schema-deepest") },
    Attack { init: |_| variables(&"x".repeat(32 << 20)), ..Attack::polite("schema-huge") },
    Attack { init: |_| variables("value STRING; DROP TABLE"), ..Attack::polite("schema-garbage") },
    Attack { init: |_| variables("value DECIMAL(99, 98)"), ..Attack::polite("schema-decimal") },
    Attack { init: |_| variables("value STRING, VALUE STRING"), ..Attack::polite("schema-twice") },
    Attack { init: |_| output(columns(100_000)), ..Attack::polite("output-wide") },
    Attack { init: |_| output("`".to_owned()), ..Attack::polite("output-garbage") },
];

fn columns(count: usize) -> String {
    (0..count).map(|n| format!("c{n} STRING")).collect::<Vec<_>>().join(", ")
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("value {}STRING{}", open.repeat(depth), close.repeat(depth))
}

fn output(output: String) -> Result<Plan, Failure> {
    Ok(Plan { output, ..plan() })
}
