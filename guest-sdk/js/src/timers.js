// Timers of the group in hand, and the times of the batch.
//
// The rules of a timer that fires (`wit/README.md`, "Timers") live here: its deletion is queued before its handler runs,
// while the handler's list still shows it; a due timer that a handler deletes does not fire in this phase.

import { INVALID_TIME_MODE, OUT_OF_RANGE, ProcessorError } from "./errors.js";
import { HEAD_WORDS, NO_VARIABLE, putHead, TIMER_DELETE, TIMER_REGISTER } from "./ops.js";
import { PendingWrites } from "./session.js";

export class Timers {
  #session;
  #pending;
  /** The expiry of the timer that fires, a bigint. */
  #firing;
  /** Those that handlers of the group in hand deleted in the timer phase. */
  #deleted = new Set();

  constructor(session, { processingTimeMs, watermarkMs }) {
    this.#session = session;
    this.#pending = new PendingWrites(session);
    this.processingTimeMs = session.time(processingTimeMs);
    this.watermarkMs = session.time(watermarkMs);
  }

  register(expiryMs) {
    this.#write("timers.register", TIMER_REGISTER, wholeMs(expiryMs));
  }

  delete(expiryMs) {
    const expiry = wholeMs(expiryMs);
    this.#write("timers.delete", TIMER_DELETE, expiry);
    // Outside of the timer phase none was handed out, so the host looks at its own list.
    if (this.#firing !== undefined) this.#deleted.add(expiry);
  }

  list() {
    const group = this.#groupFor("timers.list");
    this.#pending.apply();
    const { host } = this.#session;
    const listed = [];
    for (let page = host.listTimers(group); ; page = host.nextTimers(page.rest)) {
      listed.push(...page.expiriesMs);
      if (page.rest === undefined) break;
    }
    // Its deletion is applied already, so the host may not list it.
    const firing = this.#firing;
    if (firing !== undefined && !this.#deleted.has(firing) && !listed.includes(firing)) {
      const later = listed.findIndex((expiry) => expiry > firing);
      listed.splice(later < 0 ? listed.length : later, 0, firing);
    }
    return listed.map((expiry) => this.#session.time(expiry));
  }

  /** A new group of the timer phase: nothing of it was deleted yet. */
  beginGroup() {
    this.#deleted.clear();
  }

  /** Prepares the firing of a timer; false if a handler of its group deleted it in this phase. */
  beginFiring(expiry) {
    if (this.#deleted.has(expiry)) return false;
    this.#write("timers.delete", TIMER_DELETE, expiry);
    this.#firing = expiry;
    return true;
  }

  endFiring() {
    this.#firing = undefined;
  }

  #write(operation, op, expiry) {
    const group = this.#groupFor(operation);
    this.#session.beforeWrite(operation);
    const { ops } = this.#session;
    const at = ops.end + HEAD_WORDS;
    ops.reserve((at + 2) << 2);
    ops.i64[at >> 1] = expiry;
    putHead(ops, op, NO_VARIABLE, group, at + 2);
    this.#pending.note();
  }

  #groupFor(operation) {
    if (this.#session.timeMode === "none") {
      throw new ProcessorError(
        INVALID_TIME_MODE,
        `\`${operation}\` needs a query with time mode processing-time or event-time; this one has none`,
      );
    }
    return this.#session.groupFor(operation);
  }
}

/** A time in milliseconds as the contract has it. */
function wholeMs(ms) {
  if (typeof ms === "number" ? Number.isSafeInteger(ms) : typeof ms === "bigint" && BigInt.asIntN(64, ms) === ms) return BigInt(ms);
  throw new ProcessorError(OUT_OF_RANGE, `${String(ms)} is no whole number of milliseconds since 1970-01-01, exact and of 64 bits`);
}
