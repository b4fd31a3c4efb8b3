// Stacks with the author's own files and lines.
//
// A component runs one bundle. The build leaves beside it where each of its lines came from, as `globalThis.tidemillLines`:
// { file, sources, lines }, where lines[n] is [source, line] of line n + 1 of the bundle, or 0.

/** One frame as StarlingMonkey prints it: `name@file:line:column`. */
const FRAME = /^(.*)@(.+?):(\d+):(\d+)$/;

/** The stack of an error, frames of the bundle as places in its sources. */
export function authorsStack(error) {
  const stack = typeof error.stack === "string" ? error.stack : "";
  const { tidemillLines } = globalThis;
  if (tidemillLines === undefined) return stack;
  return stack
    .split("\n")
    .flatMap((frame) => authorsFrame(frame, tidemillLines))
    .join("\n");
}

/** The frame as a line, or none where it is the engine's own. */
function authorsFrame(frame, { file, sources, lines }) {
  const [, name, at, line] = FRAME.exec(frame) ?? [];
  if (at === undefined) return frame === "" ? [] : [frame];
  if (at !== file) return [];
  const place = lines[Number(line) - 1];
  return place ? [`    at ${name === "" ? "" : `${name} `}(${sources[place[0]]}:${place[1]})`] : [];
}
