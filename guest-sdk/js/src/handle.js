// What `init` is given: the query's settings, and the making of state variables.

import { codecOf } from "./codec/codec.js";
import { printColumns } from "./ddl.js";
import { INVALID_TTL, ProcessorError } from "./errors.js";
import { ListState } from "./state/list.js";
import { MapState } from "./state/map.js";
import { ValueState } from "./state/value.js";

export class Handle {
  #session;

  constructor(session, query) {
    this.#session = session;
    this.query = query;
  }

  valueState(name, schema, { ttlMs } = {}) {
    const codec = this.#codec(schema);
    const variable = this.#session.host.valueState(name, stored(codec), ttl(ttlMs));
    return new ValueState(this.#session, variable, codec);
  }

  listState(name, schema, { ttlMs } = {}) {
    const codec = this.#codec(schema);
    const variable = this.#session.host.listState(name, stored(codec), ttl(ttlMs));
    return new ListState(this.#session, variable, codec);
  }

  mapState(name, keySchema, valueSchema, { ttlMs } = {}) {
    const [key, value] = [this.#codec(keySchema), this.#codec(valueSchema)];
    const variable = this.#session.host.mapState(name, stored(key), stored(value), ttl(ttlMs));
    return new MapState(this.#session, variable, key, value);
  }

  deleteIfExists(name) {
    this.#session.host.deleteIfExists(name);
  }

  parameter(name) {
    return this.query.parameters.get(name);
  }

  #codec(schema) {
    return codecOf(schema, this.#session.bigint);
  }
}

function stored(codec) {
  return printColumns(codec.schema.columns, { stored: true });
}

/** A TTL as the contract has it; 0 and undefined are none. */
function ttl(ms) {
  if (ms === undefined || ms === 0) return undefined;
  if (Number.isSafeInteger(ms) && ms > 0) return BigInt(ms);
  throw new ProcessorError(INVALID_TTL, `\`ttlMs\` is ${String(ms)}; a TTL is a whole number of milliseconds`);
}
