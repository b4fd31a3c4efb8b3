// What generated codecs call where a value is not the usual one: conversions that take several steps, and faults.

import { INVALID_ROW, NULL_VALUE, OUT_OF_RANGE, ProcessorError } from "../errors.js";
import { Decimal, Timestamp } from "../types.js";

/** Digits of the largest decimals whose unscaled value fits a slot. */
export const SLOT_DECIMAL_DIGITS = 18;
/** The upper half of the one NaN of packed rows. */
export const NAN_HIGH = 0x7ff80000;

/** A BIGINT of two halves as a number. */
export function wide(high, low, column) {
  const number = high * 4_294_967_296 + low;
  if (Number.isSafeInteger(number)) return number;
  throw new ProcessorError(
    OUT_OF_RANGE,
    `column \`${column}\`: ${(BigInt(high) << 32n) + BigInt(low)} is beyond 2^53, more than a number holds exactly; ` +
      `export the processor with \`bigint: "bigint"\``,
  );
}

/** Writes a BIGINT that is no number of 32 bits at word `slot`. */
export function putBigint(buffer, slot, value, column) {
  if (typeof value === "number") {
    if (!Number.isInteger(value)) wrong(value, column, "BIGINT");
    if (!Number.isSafeInteger(value)) {
      throw new ProcessorError(OUT_OF_RANGE, `column \`${column}\`: ${value} is beyond 2^53, where numbers are not exact; give a bigint`);
    }
    buffer.i32[slot] = value;
    buffer.i32[slot + 1] = Math.floor(value / 4_294_967_296);
  } else {
    if (typeof value !== "bigint") wrong(value, column, "BIGINT");
    putInt64(buffer, slot, value, column, "BIGINT");
  }
}

export function putTimestamp(buffer, slot, value, column) {
  if (value instanceof Timestamp) buffer.i64[slot >> 1] = value.micros;
  else if (value instanceof Date && !Number.isNaN(value.getTime())) putInt64(buffer, slot, BigInt(value.getTime()) * 1000n, column, "TIMESTAMP");
  else wrong(value, column, "TIMESTAMP (a Timestamp or a Date)");
}

export function putDecimal(buffer, slot, value, precision, scale, column) {
  buffer.i64[slot >> 1] = unscaled(value, precision, scale, column);
}

/** Writes the bytes of a decimal of more than 18 digits at word `at`, its length at word `slot` + 1. */
export function putLargeDecimal(buffer, at, slot, value, precision, scale, column) {
  let rest = unscaled(value, precision, scale, column);
  const bytes = [];
  for (;;) {
    const byte = Number(BigInt.asIntN(8, rest));
    bytes.unshift(byte & 0xff);
    rest >>= 8n;
    // Done where the first bit is the sign of what is left.
    if (rest === (byte < 0 ? -1n : 0n)) return buffer.putBytes(at, slot + 1, Uint8Array.from(bytes));
  }
}

export function largeDecimal(buffer, start, length, scale) {
  let unscaled = BigInt(buffer.u8[start] << 24 >> 31);
  for (let at = start; at < start + length; at += 1) unscaled = (unscaled << 8n) | BigInt(buffer.u8[at]);
  return new Decimal(unscaled, scale);
}

function unscaled(value, precision, scale, column) {
  if (!(value instanceof Decimal)) wrong(value, column, `DECIMAL(${precision},${scale}) (a Decimal)`);
  const { unscaled } = value.rescale(scale);
  const limit = 10n ** BigInt(precision);
  if (unscaled >= limit || unscaled <= -limit) outOfRange(value, column, `DECIMAL(${precision},${scale})`);
  return unscaled;
}

function putInt64(buffer, slot, value, column, type) {
  if (BigInt.asIntN(64, value) !== value) outOfRange(value, column, type);
  buffer.i64[slot >> 1] = value;
}

/** The double that a FLOAT column holds for a number: the nearest that 32 bits represent. */
export function float(value, column) {
  const rounded = Math.fround(value);
  if (!Number.isFinite(rounded) && Number.isFinite(value)) outOfRange(value, column, "FLOAT");
  return rounded;
}

/** The order of packed rows: memcmp. */
export function compareBytes(left, right) {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    if (left[at] !== right[at]) return left[at] - right[at];
  }
  return left.length - right.length;
}

/** A whole number that is none of the type's, or no number at all. */
export function notInteger(value, column, type) {
  if (Number.isInteger(value) || typeof value === "bigint") outOfRange(value, column, type);
  wrong(value, column, type);
}

export function outOfRange(value, column, type) {
  throw new ProcessorError(OUT_OF_RANGE, `column \`${column}\`: ${value} is out of the range of ${type}`);
}

/** A value of another type than the column's. */
export function wrong(value, column, type) {
  if (value === undefined) {
    throw new ProcessorError(INVALID_ROW, `column \`${column}\` is missing; where it has no value, give null`);
  }
  throw new ProcessorError(INVALID_ROW, `column \`${column}\`: ${described(value)} is no ${type}`);
}

export function nullFault(column) {
  throw new ProcessorError(NULL_VALUE, `column \`${column}\` is null, which its type has not`);
}

export function nullKey(column) {
  throw new ProcessorError(NULL_VALUE, `column \`${column}\`: the key of a MAP is null`);
}

export function sameKeys(column) {
  throw new ProcessorError(INVALID_ROW, `column \`${column}\`: two keys of the MAP are equal`);
}

/** What is no object where a row is due. */
export function notRow(value, column) {
  const place = column === "" ? "a row is an object of its columns" : `column \`${column}\` is a STRUCT, an object of its fields`;
  throw new ProcessorError(INVALID_ROW, `${place}, not ${described(value)}`);
}

/** A value as an error message shows it. */
export function described(value) {
  if (typeof value === "string") return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value)}`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return `a ${value.constructor?.name ?? "plain"} object`;
  return typeof value === "bigint" ? `${value}n` : String(value);
}
