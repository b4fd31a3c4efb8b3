// What all that a processor holds shares: the chunk in hand, the pending ops, the known values of the group in hand.
//
// Invariants: ops are applied before the next chunk is pulled; a read that may miss a pending write applies it first;
// what is known of a group's values is forgotten when the group or the chunk changes. A fault of `apply` fails the call
// even if the author catches it, since the ops after it are gone. Layout of chunks: `wit/README.md`, "Chunks".

import { Buffer } from "./buffer.js";
import { ApplyFault, CONTRACT_BROKEN, INVALID_HANDLE_STATE, OUT_OF_RANGE, ProcessorError } from "./errors.js";
import { APPLY_AT_WORDS, groupOfOp } from "./ops.js";
import { ABSENT, UNKNOWN } from "./state/value.js";

/** In place of a group, where there is none: in `init`, in `close`, between calls. */
export const NO_GROUP = -1;

const CHUNK_HEAD_WORDS = 4;
const GROUP_HEAD_WORDS = 6;
/** Rows of the group came in the chunk before. */
const CONTINUED = 1;
/** More rows of the group follow in the next chunk. */
const CONTINUES = 2;

export class Session {
  /** @param bigint what a BIGINT and a time are read as, "number" or "bigint" */
  constructor(host, timeMode, bigint) {
    this.host = host;
    this.timeMode = timeMode;
    this.bigint = bigint;
    this.group = NO_GROUP;
    this.ops = Buffer.ofCapacity((APPLY_AT_WORDS << 2) * 1.25);
    /** Grows when ops are applied: tells whether a place in them still holds. */
    this.generation = 1;
    /** Room for a row on its way to the host. */
    this.scratch = Buffer.ofCapacity(1024);
    this.values = [];
    /** The same by variable: holes where a variable is no value state. */
    this.valueByVariable = [];
    this.fault = undefined;

    this.chunk = undefined;
    this.at = 0;
    this.groupsLeft = 0;
    this.continues = false;
    /** Rows of a group that goes on, in the chunk in hand. */
    this.rowsInChunk = 0;
    /** The value states that the chunk in hand carries values of, and the others. */
    this.prefetched = [];
    this.others = [];
  }

  addValue(value) {
    this.values.push(value);
    this.valueByVariable[value.variable] = value;
  }

  /**
   * Goes through the input of a call. `readAll` reads the rows of a group; `handle(key, rows)` is called for each group,
   * with an array where all of its rows are in one chunk.
   */
  walk(readKey, readAll, handle) {
    while (this.pull()) {
      while (this.groupsLeft > 0) this.#walkChunk(readKey, readAll, handle);
    }
    this.leaveGroup();
  }

  /** Goes through the groups of the chunk in hand that are left. This is the path of every key: each step costs. */
  #walkChunk(readKey, readAll, handle) {
    const { chunk, prefetched, others } = this;
    const { u32 } = chunk;
    const [states, unknowns] = [prefetched.length, others.length];
    for (let left = this.groupsLeft; left > 0; left -= 1) {
      const head = this.at;
      const keyAt = head + GROUP_HEAD_WORDS;
      this.group = u32[head];
      this.groupsLeft = left - 1;
      this.at = keyAt + (u32[head + 4] >> 2);
      let place = keyAt + (u32[head + 3] >> 2);
      for (let number = 0; number < states; number += 1) {
        const value = prefetched[number];
        const present = u32[place + 1];
        place += 2;
        if (present === 1) {
          value.view = chunk;
          value.at = place;
          place += u32[place - 2] >> 2;
        } else {
          value.at = present === 0 ? ABSENT : UNKNOWN;
        }
      }
      for (let number = 0; number < unknowns; number += 1) others[number].at = UNKNOWN;
      const key = readKey(chunk, keyAt);
      const rows = readAll(chunk, place, u32[head + 2]);
      if ((u32[head + 1] & CONTINUES) !== 0) return this.#handleStream(key, rows, readAll, handle);
      handle(key, rows);
      if (this.fault !== undefined) throw this.fault;
    }
  }

  /** Handles a group that goes on in the next chunk. */
  #handleStream(key, rows, readAll, handle) {
    this.continues = true;
    const stream = new RowStream(this, rows, readAll);
    handle(key, stream);
    stream.close();
    // What the handler left unread.
    while (this.continues) this.pullRest();
    if (this.fault !== undefined) throw this.fault;
  }

  /** Pulls the next chunk. What is pending is applied first, since the groups of the chunk in hand end here. */
  pull() {
    this.apply();
    const bytes = this.host.next();
    if (bytes === undefined) return false;
    this.chunk = new Buffer(bytes);
    const { u32 } = this.chunk;
    const count = u32[1];
    this.groupsLeft = u32[0];
    this.at = CHUNK_HEAD_WORDS + ((count + 1) & ~1);
    this.prefetched = Array.from({ length: count }, (_, at) => this.valueByVariable[u32[CHUNK_HEAD_WORDS + at]]);
    this.others = this.values.filter((value) => !this.prefetched.includes(value));
    return true;
  }

  /** Pulls the chunk in which the group in hand goes on. Answers where its rows are, and sets how many. */
  pullRest() {
    const isThere = this.pull();
    const { at: head, prefetched } = this;
    const { u32 } = this.chunk;
    if (!isThere || (u32[head + 1] & CONTINUED) === 0) {
      throw new ProcessorError(CONTRACT_BROKEN, "the host announced more rows of a group than it sent");
    }
    this.continues = (u32[head + 1] & CONTINUES) !== 0;
    this.groupsLeft -= 1;
    this.at = head + GROUP_HEAD_WORDS + (u32[head + 4] >> 2);
    this.rowsInChunk = u32[head + 2];
    for (const value of this.values) value.at = UNKNOWN;
    // The values of a group that goes on are not sent again: each is a length of 0.
    return head + GROUP_HEAD_WORDS + (u32[head + 3] >> 2) + 2 * prefetched.length;
  }

  leaveGroup() {
    this.group = NO_GROUP;
    this.chunk = undefined;
    for (const value of this.values) value.at = UNKNOWN;
  }

  /** Checks before a write: that there is a group, and room. */
  beforeWrite(operation) {
    this.groupFor(operation);
    if (this.ops.end >= APPLY_AT_WORDS) this.apply();
  }

  /** The group in hand; an error where there is none. */
  groupFor(operation) {
    if (this.group !== NO_GROUP) return this.group;
    throw new ProcessorError(
      INVALID_HANDLE_STATE,
      `\`${operation}\` needs a grouping key: it works in handleInputRows, handleExpiredTimer and handleInitialState, not in init or close`,
    );
  }

  /** Applies what is pending. */
  apply() {
    const { ops } = this;
    if (this.fault !== undefined) throw this.fault;
    if (ops.end === 0) return;
    try {
      this.host.apply(ops.written());
    } catch (fault) {
      if (fault instanceof ApplyFault) {
        fault.group = groupOfOp(ops, fault.op);
        this.fault = fault;
      }
      throw fault;
    } finally {
      ops.clear();
      this.generation += 1;
      for (const value of this.values) {
        if (value.view === ops && value.at >= 0) value.at = UNKNOWN;
      }
    }
  }

  /** A time in milliseconds as handlers are given it. */
  time(ms) {
    if (this.bigint === "bigint") return ms;
    const number = Number(ms);
    if (Number.isSafeInteger(number)) return number;
    throw new ProcessorError(
      OUT_OF_RANGE,
      `the time ${ms} is beyond 2^53 ms, more than a number holds exactly; export the processor with \`bigint: "bigint"\``,
    );
  }
}

/** Rows of a group that lie in several chunks, pulled as they are read. A loop that is left can be taken up again. */
class RowStream {
  #session;
  #rows;
  #readAll;
  #at = 0;

  constructor(session, rows, readAll) {
    this.#session = session;
    this.#rows = rows;
    this.#readAll = readAll;
  }

  [Symbol.iterator]() {
    return this;
  }

  next() {
    while (this.#at >= this.#rows.length) {
      const session = this.#session;
      if (session === undefined || !session.continues) return { done: true, value: undefined };
      const first = session.pullRest();
      this.#rows = this.#readAll(session.chunk, first, session.rowsInChunk);
      this.#at = 0;
    }
    const value = this.#rows[this.#at];
    this.#at += 1;
    return { done: false, value };
  }

  /** The group is over: there are no more rows, whoever still holds this. */
  close() {
    this.#session = undefined;
    this.#rows = [];
  }
}

/** Whether a variable has pending writes of the group in hand. */
export class PendingWrites {
  #session;
  #generation = 0;
  #group = NO_GROUP;

  constructor(session) {
    this.#session = session;
  }

  note() {
    this.#generation = this.#session.generation;
    this.#group = this.#session.group;
  }

  /** Applies them, so that a read sees them. */
  apply() {
    const session = this.#session;
    if (this.#generation === session.generation && this.#group === session.group) session.apply();
  }
}
