// Makes a component of a bundle:
//
//   node build/componentize.mjs BUNDLE.js --wit DIR --world stateful-processor --out OUT.wasm [--project DIR] [--tools DIR]
//
// The bundle exports `handler` and may end with an inline source map. Of the engine's features, only those go that the host
// has nothing for (HTTP); clocks, random and standard streams stay, and the host makes them deterministic.

import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { mended } from "./glue.mjs";
import { tableOf, withoutMap } from "./lines.mjs";
import { importTool, inScratch } from "./tools.mjs";

/** As stacks name the bundle. */
const BUNDLE_NAME = "bundle.js";
const COMPONENTIZE_JS = "@bytecodealliance/componentize-js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { wit: { type: "string" }, world: { type: "string" }, out: { type: "string" }, project: { type: "string" }, tools: { type: "string" } },
});
const [bundlePath] = positionals;
if (!bundlePath || !values.wit || !values.world || !values.out) {
  console.error("usage: node componentize.mjs BUNDLE.js --wit DIR --world NAME --out OUT.wasm [--project DIR] [--tools DIR]");
  process.exit(2);
}

const { componentize } = await importTool(`${COMPONENTIZE_JS}/src/componentize.js`, values.tools);
await mendGlue();

await inScratch(async (scratch) => {
  const sourcePath = join(scratch, BUNDLE_NAME);
  const { code, map } = withoutMap(await readFile(bundlePath, "utf8"));
  const table = map ? tableOf(map, BUNDLE_NAME, resolve(bundlePath), resolve(values.project ?? ".")) : "";
  await writeFile(sourcePath, `${code}\n${table}`);
  const { component } = await componentize({
    sourcePath,
    sourceName: BUNDLE_NAME,
    witPath: resolve(values.wit),
    worldName: values.world,
    disableFeatures: ["http", "fetch-event"],
  });
  await writeFile(values.out, component);
});

/** Mends the glue on its way from the generator into the component. */
async function mendGlue() {
  const { splicer } = await importTool(`${COMPONENTIZE_JS}/lib/spidermonkey-embedding-splicer.js`, values.tools);
  const generate = splicer.spliceBindings;
  splicer.spliceBindings = (...parameters) => {
    const spliced = generate(...parameters);
    const glue = mended(spliced.jsBindings);
    if (glue === undefined) {
      console.error("warning: the glue of this componentize-js is not the one that is known, and stays as it is: large batches need more memory and time");
      return spliced;
    }
    return { ...spliced, jsBindings: glue };
  };
}
