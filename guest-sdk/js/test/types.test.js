// Timestamp, PlainDate and Decimal.

import assert from "node:assert/strict";
import test from "node:test";

import { Decimal, PlainDate, Timestamp } from "../index.js";

test("timestamps print as ISO 8601, and read what they print", () => {
  const printed = [[0n, "1970-01-01T00:00:00Z"], [-1n, "1969-12-31T23:59:59.999999Z"], [1_357_034_400_000_000n, "2013-01-01T10:00:00Z"]];
  for (const [micros, text] of printed) {
    assert.equal(String(new Timestamp(micros)), text);
    assert.equal(Timestamp.parse(text).micros, micros);
  }
  assert.equal(JSON.stringify({ at: new Timestamp(0n) }), '{"at":"1970-01-01T00:00:00Z"}');
});

test("timestamps are read with an offset, with a blank, and as a day", () => {
  const noon = Timestamp.parse("2013-01-31T12:00:00Z").micros;
  for (const text of ["2013-01-31T14:00:00+02:00", "2013-01-31T06:30:00-05:30", "2013-01-31 12:00"]) {
    assert.equal(Timestamp.parse(text).micros, noon);
  }
  assert.equal(Timestamp.parse("2013-01-31").micros, noon - 12n * 3_600_000_000n);
});

test("milliseconds are rounded down, also before the epoch", () => {
  assert.deepEqual([1999n, -1n, -1000n, -1001n].map((micros) => new Timestamp(micros).ms), [1, -1, -1, -2]);
  assert.equal(Timestamp.fromMs(-1).micros, -1000n);
  assert.equal(Timestamp.fromMs(5n).toDate().getTime(), 5);
});

test("timestamps and dates are compared by < and >", () => {
  assert.ok(new Timestamp(1n) < new Timestamp(2n));
  assert.ok(PlainDate.parse("2024-03-01") > PlainDate.parse("2024-02-29"));
});

test("dates print and read every day of the calendar", () => {
  const days = [[11_016, "2000-02-29"], [-719_162, "0001-01-01"], [0, "1970-01-01"], [-719_528, "0000-01-01"], [-719_529, "-0001-12-31"]];
  for (const [count, text] of days) {
    assert.equal(String(new PlainDate(count)), text);
    assert.equal(PlainDate.parse(text).days, count);
  }
  for (let count = -200_000; count <= 200_000; count += 733) assert.equal(PlainDate.parse(String(new PlainDate(count))).days, count);
});

test("a decimal prints what it parses", () => {
  for (const text of ["0.00", "-12.50", "99999999.99", "-0.01", "7"]) assert.equal(String(Decimal.parse(text)), text);
  assert.deepEqual([Decimal.parse("-12.50").unscaled, Decimal.parse("-12.50").scale], [-1250n, 2]);
  assert.equal(Decimal.parse("12.50").toNumber(), 12.5);
});

test("a decimal is rescaled where no digit is lost", () => {
  assert.equal(String(Decimal.parse("1.5").rescale(3)), "1.500");
  assert.equal(String(Decimal.parse("1.500").rescale(1)), "1.5");
  assert.throws(() => Decimal.parse("1.55").rescale(1), { code: "NUMERIC_VALUE_OUT_OF_RANGE" });
});

test("what is no value of a type is refused", () => {
  const code = /INVALID_ROW|NUMERIC_VALUE_OUT_OF_RANGE/;
  const refused = [
    () => Timestamp.parse("yesterday"), () => Timestamp.parse("2013-01-31T25:00:00Z"), () => Timestamp.parse("2013-02-30T00:00:00Z"),
    () => new Timestamp(1), () => new Timestamp(2n ** 63n), () => Timestamp.fromMs(0.5), () => Timestamp.fromMs(Number.NaN),
    () => PlainDate.parse("2023-02-29"), () => PlainDate.parse("2023-13-01"), () => new PlainDate(0.5), () => new PlainDate(2 ** 31),
    () => Decimal.parse("1,5"), () => Decimal.parse(""), () => new Decimal(1), () => new Decimal(1n, 39),
  ];
  for (const make of refused) assert.throws(make, { code });
});
