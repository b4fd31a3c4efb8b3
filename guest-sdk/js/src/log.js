// Messages to the log of the host. They show with the batch's log lines, and are bounded per batch.

let sink = () => {};

/** Where messages go: the host of a component, or that of a test. */
export function setLogSink(write) {
  sink = write;
}

export const log = Object.freeze({
  trace: (...parts) => sink("trace", message(parts)),
  debug: (...parts) => sink("debug", message(parts)),
  info: (...parts) => sink("info", message(parts)),
  warn: (...parts) => sink("warn", message(parts)),
  error: (...parts) => sink("error", message(parts)),
});

function message(parts) {
  return parts.map(text).join(" ");
}

/** Texts as they are, errors with their stack, the rest as JSON. */
function text(part) {
  if (typeof part === "string") return part;
  if (part instanceof Error) return `${part.name}: ${part.message}\n${part.stack}`;
  try {
    return JSON.stringify(part, plain) ?? String(part);
  } catch {
    return String(part);
  }
}

function plain(_, value) {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Map) return [...value];
  return value;
}
