// State variables and timers of all keys, in plain maps. Keys and rows are packed, as texts of their bytes.

import { ProcessorError } from "../errors.js";

/** Bytes as a text with a character for each, so that they can be keys of a Map, and sort as bytes do. */
export function textOf(bytes) {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

export function bytesOf(text) {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** What a query keeps from batch to batch. A stored row is { row, expiryMs }, the time from which it is not seen. */
export class State {
  constructor() {
    this.kinds = new Map();
    /** By variable and key: a stored row, an array of them, or a Map of them by entry. */
    this.held = new Map();
    /** By key: a set of bigints. */
    this.timers = new Map();
  }

  copy() {
    return structured(this);
  }

  declare(name, kind) {
    const before = this.kinds.get(name);
    if (before !== undefined && before !== kind) {
      throw new ProcessorError("STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE", `\`${name}\` was a ${before} state and is declared as a ${kind} state`);
    }
    this.kinds.set(name, kind);
  }

  drop(name) {
    this.kinds.delete(name);
    for (const [place, { variable }] of this.held) {
      if (variable === name) this.held.delete(place);
    }
  }

  value(name, key, nowMs) {
    const stored = this.#get(name, key);
    return stored !== undefined && isAlive(stored, nowMs) ? stored.row : undefined;
  }

  list(name, key, nowMs) {
    return (this.#get(name, key) ?? []).filter((stored) => isAlive(stored, nowMs)).map(({ row }) => row);
  }

  /** Entries in the order of their packed keys. */
  map(name, key, nowMs) {
    const entries = [...(this.#get(name, key) ?? new Map())].filter(([, stored]) => isAlive(stored, nowMs));
    return entries.map(([entry, { row }]) => [entry, row]).sort(([left], [right]) => (left < right ? -1 : 1));
  }

  timersOf(key) {
    return [...(this.timers.get(key) ?? [])].sort((left, right) => (left < right ? -1 : 1));
  }

  putValue(name, key, stored) {
    this.#set(name, key, stored);
  }

  append(name, key, elements) {
    this.#set(name, key, [...(this.#get(name, key) ?? []), ...elements]);
  }

  putEntry(name, key, entry, stored) {
    const map = this.#get(name, key) ?? new Map();
    map.set(entry, stored);
    this.#set(name, key, map);
  }

  removeEntry(name, key, entry) {
    this.#get(name, key)?.delete(entry);
  }

  clear(name, key) {
    this.held.delete(placeOf(name, key));
  }

  registerTimer(key, expiryMs) {
    if (!this.timers.has(key)) this.timers.set(key, new Set());
    this.timers.get(key).add(expiryMs);
  }

  deleteTimer(key, expiryMs) {
    this.timers.get(key)?.delete(expiryMs);
  }

  /** The timers that are due, by key in the order of their earliest, a key's timers in order. */
  dueTimers(thresholdMs) {
    return [...this.timers.keys()]
      .map((key) => [key, this.timersOf(key).filter((expiry) => expiry <= thresholdMs)])
      .filter(([, due]) => due.length > 0)
      .sort(([leftKey, [left]], [rightKey, [right]]) => (left !== right ? (left < right ? -1 : 1) : leftKey < rightKey ? -1 : 1));
  }

  #get(name, key) {
    return this.held.get(placeOf(name, key))?.held;
  }

  #set(name, key, held) {
    this.held.set(placeOf(name, key), { variable: name, held });
  }
}

function placeOf(name, key) {
  return JSON.stringify([name, key]);
}

function isAlive({ expiryMs }, nowMs) {
  return expiryMs === undefined || nowMs < expiryMs;
}

function structured({ kinds, held, timers }) {
  const copy = new State();
  copy.kinds = new Map(kinds);
  copy.held = structuredClone(held);
  copy.timers = structuredClone(timers);
  return copy;
}
