// Where the pinned tools are: `--tools DIR`, `TIDEMILL_JS_TOOLS`, else the SDK's own folder `tools` (`npm ci` in it).

import { existsSync } from "node:fs";
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
