// Runs the tests of a project in Node:  node build/test.mjs [PROJECT] [--tools DIR]
//
// Tests are `test/*.test.ts` and `test/*.test.js`. They are bundled, so that TypeScript and `tidemill` need no set-up.

import { spawnSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { bundleTests } from "./bundle.mjs";
import { inScratch } from "./tools.mjs";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { tools: { type: "string" } } });
const folder = join(resolve(positionals[0] ?? "."), "test");
await inScratch(async (scratch) => {
  const tests = (await readdir(folder)).filter((name) => /\.test\.[jt]s$/.test(name)).map((name) => join(folder, name));
  await bundleTests(tests, scratch, values.tools);
  const bundles = (await readdir(scratch)).map((name) => join(scratch, name));
  process.exitCode = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...bundles], { stdio: "inherit" }).status ?? 1;
});
