// A map per grouping key.
//
// Writes of the group in hand that are still pending are found again by their key, so that counting in a map (`get`, then
// `set`) costs no call once a key was written. What was applied, the host knows.

import { Buffer } from "../buffer.js";
import { NULL_VALUE, ProcessorError } from "../errors.js";
import { CLEAR, HEAD_WORDS, MAP_PUT, MAP_REMOVE, putBare, putHead } from "../ops.js";
import { NO_GROUP } from "../session.js";
import { entriesOf, rowsOf } from "./pages.js";

/** A put begins with `key_length:u32, 0:u32`. */
const PUT_HEAD_WORDS = 2;
/** In place of the word of a pending value: the entry was removed. */
const REMOVED = -1;

export class MapState {
  #session;
  #variable;
  #keySchema;
  #writeKey;
  #writeValue;
  #readKey;
  #readValue;
  #identity;
  #pending = { generation: 0, group: NO_GROUP, cleared: false, writes: new Map() };

  constructor(session, variable, key, value) {
    this.#session = session;
    this.#variable = variable;
    this.#keySchema = key.schema;
    this.#writeKey = key.writeKey;
    this.#writeValue = value.write;
    this.#readKey = key.stored.read;
    this.#readValue = value.stored.read;
    this.#identity = identityOf(key);
  }

  get(key) {
    const group = this.#session.groupFor("mapState.get");
    const written = this.#written(key);
    if (written !== undefined) return written === REMOVED ? undefined : this.#readValue(this.#session.ops, written);
    const packed = this.#packed(key);
    if (this.#pendingOfGroup().cleared) return undefined;
    const bytes = this.#session.host.getMapValue(this.#variable, group, packed);
    return bytes === undefined ? undefined : this.#readValue(new Buffer(bytes), 0);
  }

  has(key) {
    const group = this.#session.groupFor("mapState.has");
    const written = this.#written(key);
    if (written !== undefined) return written !== REMOVED;
    const packed = this.#packed(key);
    return !this.#pendingOfGroup().cleared && this.#session.host.containsKey(this.#variable, group, packed);
  }

  exists() {
    return this.#session.host.exists(this.#variable, this.#groupForRead("mapState.exists"));
  }

  set(key, value) {
    this.#session.beforeWrite("mapState.set");
    if (value === undefined || value === null) throw new ProcessorError(NULL_VALUE, "`mapState.set` without a value; `delete` removes an entry");
    this.#checkKey(key);
    const { ops } = this.#session;
    const keyAt = ops.end + HEAD_WORDS + PUT_HEAD_WORDS;
    let valueAt;
    this.#put(MAP_PUT, () => {
      valueAt = this.#writeKey(ops, keyAt, key);
      const end = this.#writeValue(ops, valueAt, value);
      ops.i32[keyAt - PUT_HEAD_WORDS] = (valueAt - keyAt) << 2;
      return end;
    });
    this.#pendingOfGroup().writes.set(this.#identity(key), valueAt);
    return this;
  }

  delete(key) {
    this.#session.beforeWrite("mapState.delete");
    this.#checkKey(key);
    const { ops } = this.#session;
    this.#put(MAP_REMOVE, () => this.#writeKey(ops, ops.end + HEAD_WORDS, key));
    this.#pendingOfGroup().writes.set(this.#identity(key), REMOVED);
  }

  clear() {
    this.#session.beforeWrite("mapState.clear");
    putBare(this.#session.ops, CLEAR, this.#variable, this.#session.group);
    const pending = this.#pendingOfGroup();
    pending.writes.clear();
    pending.cleared = true;
  }

  keys() {
    return rowsOf(this.#session.host, this.#firstPage("mapState.keys", "keys"), this.#readKey);
  }

  values() {
    return rowsOf(this.#session.host, this.#firstPage("mapState.values", "values"), this.#readValue);
  }

  entries() {
    return entriesOf(this.#session.host, this.#firstPage("mapState.entries", "entries"), this.#readKey, this.#readValue);
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  /** Adds an op whose payload `write` packs; `write` answers where it ends. */
  #put(op, write) {
    const { ops, group } = this.#session;
    try {
      putHead(ops, op, this.#variable, group, write());
    } catch (error) {
      ops.discard();
      throw error;
    }
  }

  /** The word of a pending value, REMOVED, or undefined where there is no pending write of the key. */
  #written(key) {
    const { writes } = this.#pendingOfGroup();
    return writes.size === 0 ? undefined : writes.get(this.#identity(key));
  }

  /** Forgets the writes of another group, and those that were applied. */
  #pendingOfGroup() {
    const pending = this.#pending;
    const { generation, group } = this.#session;
    if (pending.generation !== generation || pending.group !== group) {
      pending.generation = generation;
      pending.group = group;
      pending.cleared = false;
      if (pending.writes.size > 0) pending.writes.clear();
    }
    return pending;
  }

  #packed(key) {
    this.#checkKey(key);
    const { scratch } = this.#session;
    scratch.u8.fill(0);
    return scratch.u8.subarray(0, this.#writeKey(scratch, 0, key) << 2);
  }

  /** A row whose only column is NULL is no key. */
  #checkKey(key) {
    const { columns, single } = this.#keySchema;
    const only = single ? key : columns.length === 1 ? key?.[columns[0].name] : key;
    if (only === undefined || only === null) throw new ProcessorError(NULL_VALUE, "the key of a map entry is null");
  }

  #groupForRead(operation) {
    const group = this.#session.groupFor(operation);
    const { cleared, writes } = this.#pendingOfGroup();
    if (cleared || writes.size > 0) this.#session.apply();
    return group;
  }

  #firstPage(operation, part) {
    return this.#session.host.getMap(this.#variable, this.#groupForRead(operation), part);
  }
}

/** What tells keys apart in a Map of JavaScript: the value itself where it can, else its packed bytes. */
function identityOf({ schema, writeKey }) {
  const { kind } = schema.single ? schema.columns[0].type : {};
  if (kind === "string" || kind === "boolean" || kind === "int" || kind === "smallint" || kind === "tinyint" || kind === "double") {
    return (key) => key;
  }
  if (kind === "bigint") return (key) => (typeof key === "bigint" && Number.isSafeInteger(Number(key)) ? Number(key) : key);
  const scratch = Buffer.ofCapacity(256);
  return (key) => {
    scratch.u8.fill(0);
    return String.fromCharCode(...scratch.u8.subarray(0, writeKey(scratch, 0, key) << 2));
  };
}
