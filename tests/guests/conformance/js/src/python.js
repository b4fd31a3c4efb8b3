// Values as Python prints them.

/** A row of values without names, or what Python has a tuple for. Rows are printed as tuples too. */
export const tuple = (...values) => ({ ...values });

/** A number that Python has a float for. */
export class Float {
  constructor(value) {
    this.value = value;
  }
}

/** What Python's `repr` says of a value. */
export function repr(value) {
  switch (typeof value) {
    case "undefined": return "None";
    case "boolean": return value ? "True" : "False";
    case "number": case "bigint": return String(value);
    case "string": return `'${value}'`;
  }
  if (value === null) return "None";
  if (value instanceof Float) return Number.isInteger(value.value) ? value.value.toFixed(1) : String(value.value);
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
  const items = Object.values(value).map(repr);
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
}

/** The entries of a map state, as tuples. */
export const entries = (map) => Array.from(map, ([key, value]) => tuple(key, value));
