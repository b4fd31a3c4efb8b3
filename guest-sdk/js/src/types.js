// Column types that JavaScript has no type of its own for.

import { INVALID_ROW, OUT_OF_RANGE, ProcessorError } from "./errors.js";

const DAY_MICROS = 86_400_000_000n;
const SECOND_MICROS = 1_000_000n;

/** A point in time: a TIMESTAMP column. */
export class Timestamp {
  /** @param {bigint} micros microseconds since 1970-01-01T00:00:00Z */
  constructor(micros) {
    if (typeof micros !== "bigint" || BigInt.asIntN(64, micros) !== micros) {
      throw new ProcessorError(OUT_OF_RANGE, `a Timestamp counts microseconds in a bigint of 64 bits, not ${String(micros)}`);
    }
    this.micros = micros;
  }

  /** The point in time so many milliseconds after the epoch, as timers and watermarks count. */
  static fromMs(ms) {
    if (typeof ms === "number" && !Number.isSafeInteger(ms)) {
      throw new ProcessorError(OUT_OF_RANGE, `${ms} is no whole number of milliseconds that a number holds exactly`);
    }
    return new Timestamp(BigInt(ms) * 1000n);
  }

  /** Reads `2013-01-31T05:06:07.5Z`; also with an offset such as `+02:00`, with a blank for `T`, and as a day alone. */
  static parse(text) {
    const parts = /^([+-]?\d{4,}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(Z|[+-]\d\d:\d\d)?)?$/i.exec(text);
    if (parts === null) throw new ProcessorError(INVALID_ROW, `\`${text}\` is no point in time: write 2013-01-31T05:06:07.5Z`);
    const [, day, hour = "0", minute = "0", second = "0", fraction = "", zone = "Z"] = parts;
    if (hour > 23 || minute > 59 || second > 59) throw new ProcessorError(INVALID_ROW, `\`${text}\` has no such time of day`);
    const seconds = BigInt(hour) * 3600n + BigInt(minute) * 60n + BigInt(second) - offsetSeconds(zone);
    const micros = seconds * SECOND_MICROS + BigInt(fraction.padEnd(6, "0"));
    return new Timestamp(BigInt(PlainDate.parse(day).days) * DAY_MICROS + micros);
  }

  /** Milliseconds since the epoch, rounded down. */
  get ms() {
    return Number((this.micros - modulo(this.micros, 1000n)) / 1000n);
  }

  toDate() {
    return new Date(this.ms);
  }

  /** For `<`, `>` and sorting. */
  valueOf() {
    return this.micros;
  }

  /** `2013-01-31T05:06:07Z`, with six digits of a second where it is not whole. */
  toString() {
    const ofDay = modulo(this.micros, DAY_MICROS);
    const day = new PlainDate(Number((this.micros - ofDay) / DAY_MICROS));
    const seconds = Number(ofDay / SECOND_MICROS);
    const micros = Number(ofDay % SECOND_MICROS);
    const time = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) => digits(Math.floor(part), 2)).join(":");
    return `${day}T${time}${micros === 0 ? "" : `.${digits(micros, 6)}`}Z`;
  }

  toJSON() {
    return this.toString();
  }
}

/** A calendar day: a DATE column. */
export class PlainDate {
  /** @param {number} days days since 1970-01-01 */
  constructor(days) {
    if (days !== (days | 0)) throw new ProcessorError(OUT_OF_RANGE, `a PlainDate counts days in 32 bits, not ${String(days)}`);
    this.days = days;
  }

  /** Reads `2024-02-29`. */
  static parse(text) {
    const parts = /^([+-]?\d{4,})-(\d\d)-(\d\d)$/.exec(text);
    const date = parts && fromCivil(Number(parts[1]), Number(parts[2]), Number(parts[3]));
    const [year, month, day] = date ? toCivil(date.days) : [];
    if (!date || year !== Number(parts[1]) || month !== Number(parts[2]) || day !== Number(parts[3])) {
      throw new ProcessorError(INVALID_ROW, `\`${text}\` is no day: write 2024-02-29`);
    }
    return date;
  }

  /** For `<`, `>` and sorting. */
  valueOf() {
    return this.days;
  }

  toString() {
    const [year, month, day] = toCivil(this.days);
    return `${year < 0 ? "-" : ""}${digits(Math.abs(year), 4)}-${digits(month, 2)}-${digits(day, 2)}`;
  }

  toJSON() {
    return this.toString();
  }
}

/** A decimal number: a DECIMAL(p, s) column. */
export class Decimal {
  /** The number `unscaled / 10^scale`. */
  constructor(unscaled, scale = 0) {
    if (typeof unscaled !== "bigint" || !Number.isInteger(scale) || scale < 0 || scale > 38) {
      throw new ProcessorError(OUT_OF_RANGE, `a Decimal is a bigint and a scale of 0 to 38, not ${String(unscaled)} and ${String(scale)}`);
    }
    this.unscaled = unscaled;
    this.scale = scale;
  }

  /** Reads `-12.50`; as many digits after the point as there are become the scale. */
  static parse(text) {
    const parts = /^([+-]?)(\d+)(?:\.(\d{1,38}))?$/.exec(text);
    if (parts === null) throw new ProcessorError(INVALID_ROW, `\`${text}\` is no decimal: write -12.50`);
    const [, sign, whole, fraction = ""] = parts;
    const unscaled = BigInt(whole + fraction);
    return new Decimal(sign === "-" ? -unscaled : unscaled, fraction.length);
  }

  /** The same number with so many digits after the point; an error if some would be lost. */
  rescale(scale) {
    if (scale >= this.scale) return new Decimal(this.unscaled * 10n ** BigInt(scale - this.scale), scale);
    const factor = 10n ** BigInt(this.scale - scale);
    if (this.unscaled % factor !== 0n) throw new ProcessorError(OUT_OF_RANGE, `${this} has more than ${scale} digits after the point`);
    return new Decimal(this.unscaled / factor, scale);
  }

  toNumber() {
    return Number(this.toString());
  }

  toString() {
    const text = (this.unscaled < 0n ? -this.unscaled : this.unscaled).toString().padStart(this.scale + 1, "0");
    const sign = this.unscaled < 0n ? "-" : "";
    return this.scale === 0 ? sign + text : `${sign}${text.slice(0, -this.scale)}.${text.slice(-this.scale)}`;
  }

  toJSON() {
    return this.toString();
  }
}

function offsetSeconds(zone) {
  if (zone.toUpperCase() === "Z") return 0n;
  const seconds = BigInt(zone.slice(1, 3)) * 3600n + BigInt(zone.slice(4)) * 60n;
  return zone.startsWith("-") ? -seconds : seconds;
}

function modulo(value, divisor) {
  const rest = value % divisor;
  return rest < 0n ? rest + divisor : rest;
}

function digits(number, count) {
  return String(number).padStart(count, "0");
}

// Days of the proleptic Gregorian calendar, in eras of 400 years that begin on the first of March.
const ERA_DAYS = 146_097;
const EPOCH_IN_ERAS = 719_468;

function fromCivil(year, month, day) {
  const fromMarch = month <= 2 ? year - 1 : year;
  const era = Math.floor(fromMarch / 400);
  const yearOfEra = fromMarch - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return new PlainDate(era * ERA_DAYS + dayOfEra - EPOCH_IN_ERAS);
}

function toCivil(days) {
  const shifted = days + EPOCH_IN_ERAS;
  const era = Math.floor(shifted / ERA_DAYS);
  const dayOfEra = shifted - era * ERA_DAYS;
  const yearOfEra = Math.floor((dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  return [yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day];
}
