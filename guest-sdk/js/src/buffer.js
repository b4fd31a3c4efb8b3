// Bytes with a view for each width. Places are counted in words of 4 bytes; packed rows begin at even ones.

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

  /** What has been written. */
  written() {
    return this.u8.subarray(0, this.end << 2);
  }

  /** Writes text at word `at`, padded with zeros, and its length in bytes at word `length`; answers where it ends. */
  putText(at, length, text) {
    const units = text.length;
    const start = at << 2;
    if (start + UTF8_PER_UNIT_MAX * units + 8 > this.capacity) this.reserve(start + UTF8_PER_UNIT_MAX * units + 8);
    const { i32 } = this;
    // The padding, if every unit is a byte.
    const last = at + ((units >> 3) << 1);
    i32[last] = 0;
    i32[last + 1] = 0;
    const bytes = encoder.encodeInto(text, this.u8.subarray(start)).written;
    i32[length] = bytes;
    if (bytes !== units) this.#padText(start + bytes, text);
    return at + (((bytes + 7) >> 3) << 1);
  }

  #padText(end, text) {
    this.u8.fill(0, end, (end + 7) & ~7);
    if (!text.isWellFormed()) {
      throw new ProcessorError(INVALID_ROW, "a text has half a surrogate pair, which UTF-8 cannot hold; `toWellFormed()` replaces it");
    }
  }

  /** Writes bytes at word `at`, padded with zeros, and their length at word `length`; answers where they end. */
  putBytes(at, length, bytes) {
    const start = at << 2;
    const end = start + bytes.length;
    const aligned = (end + 7) & ~7;
    this.reserve(aligned);
    this.u8.set(bytes, start);
    this.u8.fill(0, end, aligned);
    this.i32[length] = bytes.length;
    return aligned >> 2;
  }
}
