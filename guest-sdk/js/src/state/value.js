// One value per grouping key.
//
// What is known of the group in hand without asking is `view` and `at`: the word where the value's row begins, in the
// chunk, among the pending ops or as it was fetched. The session sets both when it enters a group.

import { Buffer } from "../buffer.js";
import { NULL_VALUE, ProcessorError } from "../errors.js";
import { APPLY_AT_WORDS, CLEAR, HEAD_WORDS, putBare } from "../ops.js";

/** In place of a word: there is no value. */
export const ABSENT = -1;
/** In place of a word: the host knows. */
export const UNKNOWN = -2;

export class ValueState {
  constructor(session, variable, codec) {
    this.session = session;
    this.variable = variable;
    this.read = codec.stored.read;
    this.putValue = codec.putValue;
    this.view = undefined;
    this.at = UNKNOWN;
    session.addValue(this);
  }

  get() {
    if (this.at === UNKNOWN) this.#fetch();
    return this.at === ABSENT ? undefined : this.read(this.view, this.at);
  }

  exists() {
    if (this.at !== UNKNOWN) return this.at !== ABSENT;
    return this.session.host.exists(this.variable, this.session.groupFor("valueState.exists"));
  }

  update(value) {
    const { session } = this;
    const { ops, group } = session;
    if (value === undefined || value === null) {
      throw new ProcessorError(NULL_VALUE, "`valueState.update` without a value; `clear` removes one");
    }
    if (group < 0 || ops.end >= APPLY_AT_WORDS) session.beforeWrite("valueState.update");
    const at = ops.end + HEAD_WORDS;
    this.putValue(ops, this.variable, group, value);
    this.view = ops;
    this.at = at;
  }

  clear() {
    this.session.beforeWrite("valueState.clear");
    putBare(this.session.ops, CLEAR, this.variable, this.session.group);
    this.at = ABSENT;
  }

  #fetch() {
    const bytes = this.session.host.getValue(this.variable, this.session.groupFor("valueState.get"));
    if (bytes === undefined) {
      this.at = ABSENT;
      return;
    }
    this.view = new Buffer(bytes);
    this.at = 0;
  }
}
