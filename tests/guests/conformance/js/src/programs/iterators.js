// Iterators over more than one page, two of them at a time, and with other calls between their steps.

import { ProcessorError } from "tidemill";

import { repr, tuple } from "../python.js";

/** A row of more than 100 bytes, so that some thousands are several pages. */
const padded = (x) => ({ x, pad: "-".repeat(100) });

export class Iterators {
  init(handle) {
    this.v = handle.valueState("v", "BIGINT");
    this.l = handle.listState("l", "x BIGINT, pad STRING");
    this.m = handle.mapState("m", "BIGINT", "x BIGINT, pad STRING");
  }

  *handleInputRows(key, rows) {
    for (const { op, b } of rows) yield { key, ev: op, out: repr(this.one(op, b)) };
  }

  one(op, n) {
    const { l, m } = this;
    switch (op) {
      case "l.fill": return l.put(Array.from(upTo(n), padded));
      case "m.fill":
        for (const x of upTo(n)) m.set(x, padded(x));
        return undefined;
      case "l.first": return l[Symbol.iterator]().next().value?.x;
      case "l.sum": return sum(l, ({ x }) => x);
      case "m.sum": return sum(m, ([key, { x }]) => key + x);
      case "m.sumKeys": return sum(m.keys(), (key) => key);
      case "m.sumValues": return sum(m.values(), ({ x }) => x);
      case "l.twice": return sum(pairs(l, l), ([one, other]) => one.x + other.x);
      case "l.andMap": return sum(pairs(l, m.values()), ([element, value]) => element.x + value.x);
      case "l.busy": return this.busyList();
      case "m.busy": return this.busyMap();
      default: throw new ProcessorError("NO_SUCH_OP", op);
    }
  }

  /** Writes to all kinds of state, and reads them, while a list is walked. */
  busyList() {
    const { v, l, m } = this;
    let seen = 0;
    for (const element of l) {
      seen += 1;
      v.update((v.get() ?? 0n) + element.x);
      m.set(element.x, element);
      l.append(padded(-element.x));
    }
    return tuple(seen, v.get(), [...m.keys()].length, l.get().length);
  }

  /** Removes the entries of a map while it is walked. */
  busyMap() {
    const { m } = this;
    let seen = 0;
    for (const key of m.keys()) {
      m.delete(key);
      if (!m.has(key)) seen += 1;
    }
    return tuple(seen, m.exists());
  }
}

function* upTo(n) {
  for (let x = 0n; x < n; x += 1n) yield x;
}

/** How many items there are, and the sum of their numbers. */
function sum(items, numberOf) {
  let [count, total] = [0, 0n];
  for (const item of items) {
    count += 1;
    total += numberOf(item);
  }
  return tuple(count, total);
}

/** Walks two iterables at once, step by step. */
function* pairs(ones, others) {
  const other = others[Symbol.iterator]();
  for (const one of ones) {
    const { done, value } = other.next();
    if (done) return;
    yield [one, value];
  }
}
