// Schemas: what is read, and what is printed for the host.

import assert from "node:assert/strict";
import test from "node:test";

import { parseSchema, printColumns } from "../src/ddl.js";

const printed = (ddl, options) => printColumns(parseSchema(ddl).columns, options);

test("columns are printed as the host prints them, whatever their case and blanks", () => {
  assert.equal(printed("key string not null,n  bigint"), "key STRING NOT NULL, n BIGINT");
  assert.equal(printed("a long, b integer, c short, d byte, e real, f dec"), "a BIGINT, b INT, c SMALLINT, d TINYINT, e FLOAT, f DECIMAL(10,0)");
  assert.equal(printed("m map<string,array<int>>, s struct<x:int not null,`y z` decimal(5,2)>"), "m MAP<STRING, ARRAY<INT>>, s STRUCT<x: INT NOT NULL, `y z`: DECIMAL(5,2)>");
  assert.equal(printed("`a``b, c` INT, é STRING COMMENT 'a, b', date DATE"), "`a``b, c` INT, `é` STRING, date DATE");
  assert.equal(printed(""), "");
});

test("state is declared without NOT NULL at any depth", () => {
  assert.equal(printed("a INT NOT NULL, s STRUCT<x: INT NOT NULL>", { stored: true }), "a INT, s STRUCT<x: INT>");
});

test("a single type is a row of one column without a name", () => {
  for (const [ddl, column] of [
    ["BIGINT", "value BIGINT"], ["string not null", "value STRING NOT NULL"], ["ARRAY<STRUCT<a: INT>>", "value ARRAY<STRUCT<a: INT>>"],
    ["decimal(5, 2)", "value DECIMAL(5,2)"], [" DATE ", "value DATE"],
  ]) {
    assert.equal(parseSchema(ddl).single, true);
    assert.equal(printed(ddl), column);
  }
  for (const ddl of ["date DATE", "string STRING", "map: INT", "`BIGINT` INT"]) assert.equal(parseSchema(ddl).single, false);
});

test("what is no schema is told with the place", () => {
  const wrong = [
    ["n BIGINTT", /no such type, before `BIGINTT`/], ["n", /no such type, at its end/], ["a INT b INT", /`,` is missing, before `b INT`/],
    ["a INT, A STRING", /`A` stands there twice/], ["a ARRAY<INT", /`>` is missing, at its end/], ["a INT NOT", /NULL must follow/],
    ["a DECIMAL(39)", /no values/], ["a DECIMAL(3, 4)", /no values/], ["a DECIMAL(x)", /a number is missing/], ["a INT,", /the name of a column is missing/],
    [`a ${"ARRAY<".repeat(17)}INT${">".repeat(17)}`, /more than 16 deep/],
  ];
  for (const [ddl, message] of wrong) assert.throws(() => parseSchema(ddl), { code: "INVALID_SCHEMA", message });
  assert.throws(() => parseSchema(undefined), { code: "INVALID_SCHEMA" });
});
