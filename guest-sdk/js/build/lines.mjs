// Where each line of a bundle came from, out of its source map, for stacks with the author's own lines (`src/stack.js`).

import { dirname, relative, resolve } from "node:path";

import { SDK } from "./tools.mjs";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const INLINE_MAP = /\n\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/;

/** Splits a bundle into its code and its inline source map. */
export function withoutMap(bundle) {
  const [comment, map] = INLINE_MAP.exec(bundle) ?? [];
  if (comment === undefined) return { code: bundle, map: undefined };
  return { code: bundle.slice(0, -comment.length), map: JSON.parse(Buffer.from(map, "base64").toString("utf8")) };
}

/** Code that leaves the table: `lines[n]` is [source, line] of line n + 1, or 0. Sources of the SDK begin with `tidemill/`. */
export function tableOf(map, file, bundlePath, project) {
  const sources = map.sources.map((source) => nameOf(resolve(dirname(bundlePath), source), project));
  return `globalThis.tidemillLines = ${JSON.stringify({ file, sources, lines: linesOf(map.mappings) })};\n`;
}

function nameOf(path, project) {
  return path.startsWith(SDK) ? `tidemill/${path.slice(SDK.length)}` : relative(project, path);
}

/** The first place of each line. */
export function linesOf(mappings) {
  let [source, line] = [0, 0];
  return mappings.split(";").map((segments) => {
    let first = 0;
    for (const segment of segments.split(",").filter((text) => text !== "")) {
      const [, sourceStep = 0, lineStep = 0] = numbersOf(segment);
      source += sourceStep;
      line += lineStep;
      if (first === 0) first = [source, line + 1];
    }
    return first;
  });
}

/** The numbers of a segment: base 64, five bits a digit, the lowest bit of a number its sign. */
function numbersOf(segment) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = DIGITS.indexOf(digit);
    value |= (bits & 31) << shift;
    shift += 5;
    if ((bits & 32) !== 0) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}
