// Builds chunks and lists of rows, as `wit/README.md` lays them out.

import { bytesOf } from "./state.js";

/** Value states that a chunk carries at most. */
const PREFETCHED_MAX = 8;
const CONTINUED = 1;
const CONTINUES = 2;
const UNKNOWN = 2;

/** What a phase has left to feed, and the groups of the chunk in hand. */
export class Groups {
  #left;
  #handedOut = 0;
  /** Keys of the groups of the chunk in hand. */
  keys = new Map();

  /** @param groups pairs of a packed key and its packed rows, as texts */
  constructor(groups) {
    this.#left = groups.map(([key, rows]) => ({ key, rows: [...rows], group: undefined }));
  }

  /**
   * The next chunk. `limits`: where it ends; a host counts bytes, but so few rows that a test can reach them say the same.
   * `value(variable, key)`: what a value state holds.
   */
  nextChunk({ groupsPerChunk, rowsPerChunk }, variables, value) {
    this.keys.clear();
    if (this.#left.length === 0) return undefined;
    const prefetched = variables.slice(0, PREFETCHED_MAX);
    const body = [];
    let rowsLeft = rowsPerChunk;
    while (this.keys.size < groupsPerChunk && rowsLeft > 0 && this.#left.length > 0) {
      const waiting = this.#left[0];
      const continued = waiting.group !== undefined;
      if (!continued) waiting.group = this.#handedOut += 1;
      const rows = waiting.rows.splice(0, rowsLeft);
      const continues = waiting.rows.length > 0;
      rowsLeft -= rows.length;

      const key = bytesOf(waiting.key);
      const content = [...key];
      for (const variable of prefetched) {
        const row = continued ? undefined : value(variable, waiting.key);
        pushRow(content, row ?? "", row !== undefined ? 1 : continued ? UNKNOWN : 0);
      }
      for (const row of rows) pushRow(content, row, 0);
      const flags = (continued ? CONTINUED : 0) | (continues ? CONTINUES : 0);
      pushWords(body, [waiting.group, flags, rows.length, key.length, content.length, 0]);
      body.push(...content);
      this.keys.set(waiting.group, waiting.key);
      if (continues) break;
      this.#left.shift();
    }
    const chunk = [];
    pushWords(chunk, [this.keys.size, prefetched.length, 0, 0, ...prefetched, ...(prefetched.length % 2 === 1 ? [0] : [])]);
    return Uint8Array.from([...chunk, ...body]);
  }
}

/** Adds a row with its length and a second word before it. */
export function pushRow(bytes, row, word) {
  pushWords(bytes, [row.length, word]);
  for (const byte of bytesOf(row)) bytes.push(byte);
}

function pushWords(bytes, words) {
  for (const word of words) bytes.push(word & 255, (word >>> 8) & 255, (word >>> 16) & 255, word >>> 24);
}
