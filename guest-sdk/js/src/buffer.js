// Bytes with a view for each width. Places are counted in words of 4 bytes; packed rows begin at even ones.
//
// Invariant of a buffer that is written: it is zero behind what was written. So what is zero in a row (most of its words)
// costs nothing, and whoever gives up half way through a row has to wipe it.

import { INVALID_ROW, ProcessorError } from "./errors.js";

const encoder = new TextEncoder();
/** Bytes of UTF-8 that one UTF-16 code unit can need. */
const UTF8_PER_UNIT_MAX = 3;

/** Bytes that are read, or a buffer that grows as it is written. */
export class Buffer {
  /** @param {Uint8Array} bytes at a multiple of 8 in their ArrayBuffer, else they are copied */
  constructor(bytes) {
    this.#view(bytes.byteOffset % 8 === 0 ? bytes : bytes.slice());
    /** Words that have been written. */
    this.end = 0;
  }

  static ofCapacity(bytes) {
    return new Buffer(new Uint8Array(bytes));
  }

  #view(bytes) {
    const { buffer, byteOffset, byteLength } = bytes;
    this.u8 = bytes;
    this.u32 = new Uint32Array(buffer, byteOffset, byteLength >> 2);
    this.i32 = new Int32Array(buffer, byteOffset, byteLength >> 2);
    this.f64 = new Float64Array(buffer, byteOffset, byteLength >> 3);
    this.i64 = new BigInt64Array(buffer, byteOffset, byteLength >> 3);
    this.capacity = byteLength;
  }

  /** Makes room for so many bytes in all. Views taken before are void. */
  reserve(bytes) {
    if (bytes <= this.capacity) return;
    let capacity = this.capacity * 2;
    while (capacity < bytes) capacity *= 2;
    const grown = new Uint8Array(capacity);
    grown.set(this.u8);
    this.#view(grown);
  }

  /** Begins anew. */
  clear() {
    this.u8.fill(0, 0, this.end << 2);
    this.end = 0;
  }

  /** Gives up what was begun behind `end`. */
  discard() {
    this.u8.fill(0, this.end << 2);
  }

  /** What has been written. */
  written() {
    return this.u8.subarray(0, this.end << 2);
  }

  /** Writes text at word `at`, and its length in bytes at word `length`; answers where it ends, padded. */
  putText(at, length, text) {
    const start = at << 2;
    const units = text.length;
    if (start + UTF8_PER_UNIT_MAX * units + 8 > this.capacity) this.reserve(start + UTF8_PER_UNIT_MAX * units + 8);
    const bytes = encoder.encodeInto(text, this.u8.subarray(start)).written;
    this.i32[length] = bytes;
    if (bytes !== units) checkUnits(text);
    return at + (((bytes + 7) >> 3) << 1);
  }

  /** Writes bytes at word `at`, and their length at word `length`; answers where they end, padded. */
  putBytes(at, length, bytes) {
    const start = at << 2;
    const aligned = (start + bytes.length + 7) & ~7;
    this.reserve(aligned);
    this.u8.set(bytes, start);
    this.i32[length] = bytes.length;
    return aligned >> 2;
  }
}

/** Text of other characters than ASCII has to be whole: half of a surrogate pair has no UTF-8. */
function checkUnits(text) {
  if (text.isWellFormed()) return;
  throw new ProcessorError(INVALID_ROW, "a text has half a surrogate pair, which UTF-8 cannot hold; `toWellFormed()` replaces it");
}
