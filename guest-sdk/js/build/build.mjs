// Makes a component of a project:  node build/build.mjs PROJECT --wit DIR --out OUT.wasm [--tools DIR]
//
// `tidemill build` does the same, and checks types before.

import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { bundleProcessor } from "./bundle.mjs";
import { inScratch } from "./tools.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { wit: { type: "string" }, out: { type: "string" }, tools: { type: "string" } },
});
const project = resolve(positionals[0] ?? ".");
await inScratch(async (scratch) => {
  const bundle = join(scratch, "bundle.js");
  await bundleProcessor(project, bundle, values.tools);
  const componentize = fileURLToPath(new URL("componentize.mjs", import.meta.url));
  const parameters = [componentize, bundle, "--wit", values.wit, "--world", "stateful-processor", "--out", values.out, "--project", project];
  if (values.tools !== undefined) parameters.push("--tools", values.tools);
  process.exitCode = spawnSync(process.execPath, parameters, { stdio: "inherit" }).status ?? 1;
});
