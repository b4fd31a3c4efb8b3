// Stacks with the author's own files and lines.
//
// A component runs one bundle. The build leaves beside it where each of its lines came from, as `globalThis.tidemillLines`:
// { file, sources, lines }, where lines[n] is [source, line] of line n + 1 of the bundle, or 0.

/** One frame as StarlingMonkey prints it: `name@file:line:column`. */
const FRAME = /^(.*)@(.+?):(\d+):\d+$/;
/** How the names of the SDK's sources begin. */
const SDK = "tidemill/";

/** The stack of an error: the author's frames, or all where there are none of them. */
export function authorsStack(error, table = globalThis.tidemillLines) {
  const stack = typeof error.stack === "string" ? error.stack : "";
  if (table === undefined) return stack;
  const frames = stack.split("\n").flatMap((frame) => frameOf(frame, table));
  const authors = frames.filter(({ source }) => !source.startsWith(SDK));
  return (authors.length > 0 ? authors : frames).map(({ name, source, line }) => `    at ${name === "" ? "" : `${name} `}(${source}:${line})`).join("\n");
}

/** The place of a frame of the bundle; none of one that is the engine's own. */
function frameOf(text, { file, sources, lines }) {
  const [, name, at, line] = FRAME.exec(text) ?? [];
  const place = at === file ? lines[Number(line) - 1] : undefined;
  return place ? [{ name, source: sources[place[0]], line: place[1] }] : [];
}
