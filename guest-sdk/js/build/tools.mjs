// What the scripts here share: a folder to work in, and where the pinned tools are: `--tools DIR`, `TIDEMILL_JS_TOOLS`, else the SDK's own folder `tools` (`npm ci` in it).

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The folder of the SDK. */
export const SDK = fileURLToPath(new URL("..", import.meta.url));

/** Imports a file of one of the pinned packages. */
export async function importTool(file, folder = process.env.TIDEMILL_JS_TOOLS ?? join(SDK, "tools")) {
  const path = join(folder, "node_modules", file);
  if (!existsSync(path)) {
    throw new Error(`${path} is not there: install the tools by \`npm ci\` in ${folder}, or name their folder by TIDEMILL_JS_TOOLS`);
  }
  return import(pathToFileURL(path));
}

/** Works in a folder that is removed afterwards. What goes wrong is told on standard error and by the exit code. */
export async function inScratch(work) {
  const folder = await mkdtemp(join(tmpdir(), "tidemill-js-"));
  try {
    await work(folder);
  } catch (error) {
    // What does not compile, esbuild has shown.
    if (error.errors === undefined) console.error(`error: ${error.message}`);
    process.exitCode = 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
