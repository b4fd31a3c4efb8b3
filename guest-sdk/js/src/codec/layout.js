// What the code that reads packed rows and the code that writes them share.

/** Words of 8 bytes of the null bitmap. */
export function bitmapWords(columns) {
  return (columns + 63) >> 6;
}

/** A column as a property of an object literal. In brackets, `__proto__` is a name like any other. */
export function property(name) {
  return /^[A-Za-z_]\w*$/.test(name) && name !== "__proto__" ? name : `[${JSON.stringify(name)}]`;
}

/** A column's value of `row`. */
export function access(row, name) {
  return /^[A-Za-z_]\w*$/.test(name) ? `${row}.${name}` : `${row}[${JSON.stringify(name)}]`;
}

/** The word after that of a slot, counted now where it can be. */
export function next(slot) {
  const [, words] = /^r \+ (\d+)$/.exec(slot) ?? [];
  return words === undefined ? `${slot} + 1` : `r + ${Number(words) + 1}`;
}
