// The ops of a chunk, collected in a Buffer until they are applied together. Layout: `wit/README.md`, "Ops".

/** Words at which pending ops are applied: 64 KiB. More buys no speed, and the host holds a copy. */
export const APPLY_AT_WORDS = (64 << 10) >> 2;
/** Words of an op's head: op, variable, group, length of the payload in bytes. */
export const HEAD_WORDS = 4;
/** Ops that name no variable. */
export const NO_VARIABLE = 0;

export const VALUE_PUT = 1;
export const CLEAR = 2;
export const LIST_PUT = 3;
export const LIST_APPEND = 4;
export const MAP_PUT = 5;
export const MAP_REMOVE = 6;
export const TIMER_REGISTER = 7;
export const TIMER_DELETE = 8;
export const EMIT = 9;

/** Adds the head of an op whose payload stands behind its place already, up to word `end`. */
export function putHead(ops, op, variable, group, end) {
  const { i32, end: head } = ops;
  i32[head] = op;
  i32[head + 1] = variable;
  i32[head + 2] = group;
  i32[head + 3] = (end - head - HEAD_WORDS) << 2;
  ops.end = end;
}

/** Adds an op without a payload. */
export function putBare(ops, op, variable, group) {
  ops.reserve((ops.end + HEAD_WORDS) << 2);
  putHead(ops, op, variable, group, ops.end + HEAD_WORDS);
}

/** The group of op number `op`. */
export function groupOfOp(ops, op) {
  let head = 0;
  for (let at = 0; at < op; at += 1) head += HEAD_WORDS + (ops.u32[head + 3] >> 2);
  return ops.u32[head + 2];
}
