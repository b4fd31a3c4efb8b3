// The host as a test sees it: the contract of `wit/world.wit` over plain maps, byte for byte.
//
// Written to be compared with, not to be fast. Breaches of the contract that a host answers with a trap are errors with the
// code CONTRACT_BROKEN here.

import { ApplyFault, CONTRACT_BROKEN, INVALID_HANDLE_STATE, ProcessorError } from "../errors.js";
import * as ops from "../ops.js";
import { Groups, pushRow } from "./chunks.js";
import { bytesOf, textOf } from "./state.js";

/** A name has at most so many characters. */
const NAME_CHARACTERS_MAX = 300;

/** The host of one batch. */
export class Host {
  #state;
  #timeMode;
  #nowMs;
  #limits;
  #phase = "init";
  #variables = [];
  #dropped = new Set();
  #groups = new Groups([]);
  #cursors = new Map();
  #cursorsOpened = 0;
  /** Packed rows that were emitted. */
  output = [];

  constructor(state, timeMode, nowMs, limits) {
    this.#state = state;
    this.#timeMode = timeMode;
    this.#nowMs = nowMs;
    this.#limits = limits;
  }

  /** Opens a phase with what it feeds to the processor. */
  open(phase, groups) {
    this.#phase = phase;
    this.#groups = new Groups(groups);
    this.#cursors.clear();
  }

  // --- the imports of a component

  next() {
    const values = this.#variables.flatMap(({ kind }, variable) => (kind === "value" ? [variable] : []));
    return this.#groups.nextChunk(this.#limits, values, (variable, key) => this.#state.value(this.#variables[variable].name, key, this.#nowMs));
  }

  valueState(name, schema, ttlMs) {
    return this.#declare(name, "value", ttlMs);
  }

  listState(name, schema, ttlMs) {
    return this.#declare(name, "list", ttlMs);
  }

  mapState(name, key, value, ttlMs) {
    return this.#declare(name, "map", ttlMs);
  }

  deleteIfExists(name) {
    this.#onlyInInit("deleteIfExists");
    if (this.#variables.some((declared) => declared.name === name)) throw duplicate(name);
    this.#dropped.add(name);
    this.#state.drop(name);
  }

  exists(variable, group) {
    const { name, kind } = this.#variables[variable];
    const key = this.#keyOf(group);
    if (kind === "value") return this.#state.value(name, key, this.#nowMs) !== undefined;
    return this.#state[kind](name, key, this.#nowMs).length > 0;
  }

  getValue(variable, group) {
    const row = this.#state.value(this.#nameOf(variable, "value"), this.#keyOf(group), this.#nowMs);
    return row === undefined ? undefined : bytesOf(row);
  }

  getList(variable, group) {
    return this.#page(this.#state.list(this.#nameOf(variable, "list"), this.#keyOf(group), this.#nowMs).map((row) => [row]));
  }

  getMapValue(variable, group, key) {
    const entries = this.#state.map(this.#nameOf(variable, "map"), this.#keyOf(group), this.#nowMs);
    const row = new Map(entries).get(textOf(key));
    return row === undefined ? undefined : bytesOf(row);
  }

  containsKey(variable, group, key) {
    return this.getMapValue(variable, group, key) !== undefined;
  }

  getMap(variable, group, part) {
    const entries = this.#state.map(this.#nameOf(variable, "map"), this.#keyOf(group), this.#nowMs);
    return this.#page(entries.map(([key, value]) => (part === "keys" ? [key] : part === "values" ? [value] : [key, value])));
  }

  nextPage(cursor) {
    return this.#page(this.#close(cursor));
  }

  listTimers(group) {
    return this.#timerPage(this.#state.timersOf(this.#keyOf(group)));
  }

  nextTimers(cursor) {
    return this.#timerPage(this.#close(cursor));
  }

  apply(bytes) {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0, op = 0; at < bytes.length; op += 1) {
      const [code, variable, group, length] = [0, 4, 8, 12].map((offset) => words.getUint32(at + offset, true));
      const start = at + 4 * ops.HEAD_WORDS;
      at = start + length;
      if (at > bytes.length) throw broken("an op longer than the ops");
      try {
        this.#applyOp(code, variable, group, bytes.subarray(start, at));
      } catch (fault) {
        throw new ApplyFault(op, fault.code ?? CONTRACT_BROKEN, fault.message);
      }
    }
  }

  // --- how

  #applyOp(code, variable, group, payload) {
    const key = this.#keyOf(group);
    const words = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    switch (code) {
      case ops.VALUE_PUT: return this.#state.putValue(this.#nameOf(variable, "value"), key, this.#stored(variable, textOf(payload)));
      case ops.CLEAR: return this.#state.clear(this.#variables[variable].name, key);
      case ops.LIST_PUT:
      case ops.LIST_APPEND: {
        const name = this.#nameOf(variable, "list");
        if (code === ops.LIST_PUT) this.#state.clear(name, key);
        return this.#state.append(name, key, rowsOf(payload).map((row) => this.#stored(variable, row)));
      }
      case ops.MAP_PUT: {
        const entryEnd = 8 + words.getUint32(0, true);
        const value = this.#stored(variable, textOf(payload.subarray(entryEnd)));
        return this.#state.putEntry(this.#nameOf(variable, "map"), key, textOf(payload.subarray(8, entryEnd)), value);
      }
      case ops.MAP_REMOVE: return this.#state.removeEntry(this.#nameOf(variable, "map"), key, textOf(payload));
      case ops.TIMER_REGISTER: return this.#state.registerTimer(key, words.getBigInt64(0, true));
      case ops.TIMER_DELETE: return this.#state.deleteTimer(key, words.getBigInt64(0, true));
      case ops.EMIT:
        if (this.#phase === "initial-state") throw new ProcessorError(INVALID_HANDLE_STATE, "a row is emitted in handleInitialState");
        return this.output.push(textOf(payload));
      default: throw broken(`the op ${code}, which there is not`);
    }
  }

  #stored(variable, row) {
    const { ttlMs } = this.#variables[variable];
    return { row, expiryMs: ttlMs === undefined ? undefined : this.#nowMs + ttlMs };
  }

  #declare(name, kind, ttlMs) {
    this.#onlyInInit(`${kind}State`);
    checkName(name);
    if (this.#variables.some((declared) => declared.name === name) || this.#dropped.has(name)) throw duplicate(name);
    if (ttlMs !== undefined && this.#timeMode !== "processing-time") {
      throw new ProcessorError("STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL", `\`${name}\` has a TTL, which needs time mode processing-time`);
    }
    this.#state.declare(name, kind);
    this.#variables.push({ name, kind, ttlMs });
    return this.#variables.length - 1;
  }

  #onlyInInit(operation) {
    if (this.#phase === "init") return;
    throw new ProcessorError(INVALID_HANDLE_STATE, `\`${operation}\` in phase ${this.#phase}: it works in init only`);
  }

  #nameOf(variable, wanted) {
    const declared = this.#variables[variable];
    if (declared?.kind !== wanted) throw broken(`a read or write of a ${wanted} state that is a ${declared?.kind} state`);
    return declared.name;
  }

  #keyOf(group) {
    const key = this.#groups.keys.get(group);
    if (key === undefined) throw broken(`the group ${group}, which is not in the chunk`);
    return key;
  }

  /** The first of what a read answers; the rest stays open. An item (a row, or an entry of two) is never cut. */
  #page(items) {
    const rows = [];
    for (const row of items.slice(0, this.#limits.rowsPerPage).flat()) pushRow(rows, row, 0);
    return { rows: Uint8Array.from(rows), rest: this.#open(items.slice(this.#limits.rowsPerPage)) };
  }

  #timerPage(expiries) {
    const expiriesMs = BigInt64Array.from(expiries.slice(0, this.#limits.rowsPerPage));
    return { expiriesMs, rest: this.#open(expiries.slice(this.#limits.rowsPerPage)) };
  }

  #open(rest) {
    if (rest.length === 0) return undefined;
    this.#cursorsOpened += 1;
    this.#cursors.set(this.#cursorsOpened, rest);
    return this.#cursorsOpened;
  }

  #close(cursor) {
    const rest = this.#cursors.get(cursor);
    if (rest === undefined) throw broken("a cursor that is not open");
    this.#cursors.delete(cursor);
    return rest;
  }
}

/** The rows of a list of rows. */
function rowsOf(bytes) {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const rows = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at + 8;
    at = start + words.getUint32(at, true);
    rows.push(textOf(bytes.subarray(start, at)));
  }
  return rows;
}

function checkName(name) {
  if (name.startsWith("$")) throw new ProcessorError("STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS", `\`${name}\` begins with \`$\``);
  const characters = [...name];
  const isValid = characters.length > 0 && characters.length <= NAME_CHARACTERS_MAX && name.trim() === name && name !== "default" && !/[\x00-\x1f\x7f-\x9f]/.test(name);
  if (!isValid) throw new ProcessorError("STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME", `\`${name}\` is no name of a state variable`);
}

function duplicate(name) {
  return new ProcessorError("STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED", `\`${name}\` is declared twice, or declared and deleted`);
}

function broken(what) {
  return new ProcessorError(CONTRACT_BROKEN, what);
}
