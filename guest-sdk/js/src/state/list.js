// A list per grouping key.

import { EMPTY_LIST_VALUE, INVALID_ROW, NULL_VALUE, ProcessorError } from "../errors.js";
import { APPLY_AT_WORDS, CLEAR, HEAD_WORDS, LIST_APPEND, LIST_PUT, putBare, putHead } from "../ops.js";
import { PendingWrites } from "../session.js";
import { allRowsOf, rowsOf } from "./pages.js";

export class ListState {
  #session;
  #variable;
  #writeElement;
  #read;
  #pending;

  constructor(session, variable, codec) {
    this.#session = session;
    this.#variable = variable;
    this.#writeElement = codec.write;
    this.#read = codec.stored.read;
    this.#pending = new PendingWrites(session);
  }

  get() {
    return allRowsOf(this.#session.host, this.#firstPage(), this.#read);
  }

  [Symbol.iterator]() {
    return rowsOf(this.#session.host, this.#firstPage(), this.#read);
  }

  exists() {
    const group = this.#session.groupFor("listState.exists");
    this.#pending.apply();
    return this.#session.host.exists(this.#variable, group);
  }

  put(elements) {
    this.#write("listState.put", LIST_PUT, elements);
  }

  append(element) {
    this.#write("listState.append", LIST_APPEND, [element]);
  }

  appendAll(elements) {
    this.#write("listState.appendAll", LIST_APPEND, elements);
  }

  clear() {
    this.#session.beforeWrite("listState.clear");
    putBare(this.#session.ops, CLEAR, this.#variable, this.#session.group);
    this.#pending.note();
  }

  #firstPage() {
    const group = this.#session.groupFor("listState.get");
    this.#pending.apply();
    return this.#session.host.getList(this.#variable, group);
  }

  #write(operation, first, elements) {
    const session = this.#session;
    session.groupFor(operation);
    if (!Array.isArray(elements)) throw new ProcessorError(INVALID_ROW, `\`${operation}\` takes an array of elements`);
    if (elements.length === 0) throw new ProcessorError(EMPTY_LIST_VALUE, `\`${operation}\` with no elements; \`clear\` removes a list`);
    let op = first;
    for (let at = 0; at < elements.length; op = LIST_APPEND) {
      session.beforeWrite(operation);
      at = this.#putPart(op, elements, at);
      this.#pending.note();
    }
  }

  /** Adds an op with as many elements as fit; what is left is appended by the next. Answers the first of those. */
  #putPart(op, elements, first) {
    const { ops, group } = this.#session;
    const start = ops.end + HEAD_WORDS;
    let [end, at] = [start, first];
    try {
      for (; at < elements.length && end - start < APPLY_AT_WORDS; at += 1) {
        const element = elements[at];
        if (element === undefined || element === null) throw new ProcessorError(NULL_VALUE, "an element of a list is null");
        const row = end + 2;
        const next = this.#writeElement(ops, row, element);
        ops.i32[end] = (next - row) << 2;
        end = next;
      }
    } catch (error) {
      ops.discard();
      throw error;
    }
    putHead(ops, op, this.#variable, group, end);
    return at;
  }
}
