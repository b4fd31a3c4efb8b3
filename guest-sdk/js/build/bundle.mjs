// Bundles a project with the SDK, by the pinned esbuild.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { importTool, SDK } from "./tools.mjs";

const SHARED = {
  bundle: true,
  format: "esm",
  target: "es2023",
  sourcemap: "inline",
  sourcesContent: false,
  logLevel: "warning",
  alias: { tidemill: SDK },
};

/** The module that runs in a component: the author's, and the export `handler`. */
export async function bundleProcessor(project, outfile, tools) {
  const esbuild = await importTool("esbuild/lib/main.js", tools);
  const entry = await entryOf(project);
  await esbuild.build({
    ...SHARED,
    stdin: { contents: `import ${JSON.stringify(`./${entry}`)};\nexport { handler } from "tidemill/component";\n`, resolveDir: project },
    external: ["tidemill:processor/*"],
    outfile,
  });
}

/** Modules that run in Node, for tests. */
export async function bundleTests(entryPoints, outdir, tools) {
  const esbuild = await importTool("esbuild/lib/main.js", tools);
  await esbuild.build({ ...SHARED, entryPoints, outdir, platform: "node", outExtension: { ".js": ".mjs" } });
}

async function entryOf(project) {
  const { tidemill } = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
  if (typeof tidemill?.entry !== "string") {
    throw new Error(`${join(project, "package.json")} names no module of the processor: add "tidemill": { "entry": "src/processor.js" }`);
  }
  return tidemill.entry;
}
