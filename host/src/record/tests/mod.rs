//! Specification of rows, by example and by property.
