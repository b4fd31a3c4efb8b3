// Mends what componentize-js 0.23 generates between JavaScript and the imports of a component.
//
// It keeps every list and text that is passed to an import until the export returns, and finds what it frees by a linear
// search among them, so a batch costs the square of its calls. Here each is given back as soon as its call returned; and
// the two objects that each call makes for a debug log that nobody reads go. Components are right without this, only
// slower and larger.

const CALL = /^([ \t]*)((?:ret = )?\$import_[\w$]+\((.*)\);)$/gm;
const DEBUG_LOG = /^[ \t]*_debugLog\('\[Instruction::\w+\][^']*', \{[^{}]*\}\);\n/gm;

/** The mended glue; `undefined` where it does not look as it did in 0.23. */
export function mended(glue) {
  let freed = 0;
  const mended = glue
    .replaceAll(CALL, (line, indent, call, parameters) => {
      const lists = [...parameters.matchAll(/\bptr(\d+), len\1\b/g)].map(([, number]) => number);
      freed += lists.length;
      return [line, ...lists.map((number) => `${indent}if (len${number} !== 0) $dealloc(ptr${number}, len${number}, 1);`)].join("\n");
    })
    .replaceAll(DEBUG_LOG, "");
  return freed > 0 && glue.includes("$dealloc(ret)") ? mended : undefined;
}
