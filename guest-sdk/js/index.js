// The SDK as authors import it. Types and documentation: `index.d.ts`.

export { ProcessorError } from "./src/errors.js";
export { exportProcessor } from "./src/export.js";
export { log } from "./src/log.js";
export { Decimal, PlainDate, Timestamp } from "./src/types.js";
