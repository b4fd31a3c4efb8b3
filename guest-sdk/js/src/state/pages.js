// Rows of a list or map, page by page. Layout: `wit/README.md`, "Lists of rows".

import { Buffer } from "../buffer.js";

/** The rows of a read whose first page is `page`. `readers` take turns: one for elements, two for entries. */
export function* rowsOf(host, page, read) {
  for (;;) {
    const buffer = new Buffer(page.rows);
    const words = page.rows.length >> 2;
    for (let at = 0; at < words; at += 2 + (buffer.u32[at] >> 2)) yield read(buffer, at + 2);
    if (page.rest === undefined) return;
    page = host.nextPage(page.rest);
  }
}

/** The entries of a read whose first page is `page`: key row, value row, key row ... An entry is never cut. */
export function* entriesOf(host, page, readKey, readValue) {
  for (;;) {
    const buffer = new Buffer(page.rows);
    const { u32 } = buffer;
    const words = page.rows.length >> 2;
    for (let at = 0; at < words; ) {
      const value = at + 2 + (u32[at] >> 2);
      yield [readKey(buffer, at + 2), readValue(buffer, value + 2)];
      at = value + 2 + (u32[value] >> 2);
    }
    if (page.rest === undefined) return;
    page = host.nextPage(page.rest);
  }
}

/** All rows of a read, `readAll` taking a page at a time. */
export function allRowsOf(host, page, read) {
  const rows = [];
  for (;;) {
    const buffer = new Buffer(page.rows);
    const { u32 } = buffer;
    const words = page.rows.length >> 2;
    for (let at = 0; at < words; at += 2 + (u32[at] >> 2)) rows.push(read(buffer, at + 2));
    if (page.rest === undefined) return rows;
    page = host.nextPage(page.rest);
  }
}
