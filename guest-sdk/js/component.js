// The host as a component sees it: the imports of `wit/world.wit`, and the export `handler`.
//
// `tidemill build` bundles this with the author's module. Its twin for tests in Node is `src/memory/host.js`.

import { apply } from "tidemill:processor/effects@0.1.0";
import { next } from "tidemill:processor/input@0.1.0";
import { log } from "tidemill:processor/logging@0.1.0";
import * as state from "tidemill:processor/state@0.1.0";
import { listTimers, nextTimers } from "tidemill:processor/timers@0.1.0";

import { ApplyFault, ProcessorError } from "./src/errors.js";
import { exportedProcessor } from "./src/export.js";
import { failureOf } from "./src/failure.js";
import { Instance } from "./src/instance.js";
import { setLogSink } from "./src/log.js";
import { prepare } from "./src/prepare.js";

const host = {
  next,
  apply: faulty(apply),
  valueState: faulty(state.getValueState),
  listState: faulty(state.getListState),
  mapState: faulty(state.getMapState),
  deleteIfExists: faulty(state.deleteIfExists),
  exists: faulty(state.exists),
  getValue: faulty(state.getValue),
  getList: faulty(state.getList),
  getMapValue: faulty(state.getMapValue),
  containsKey: faulty(state.containsKey),
  getMap: faulty(state.getMap),
  nextPage: faulty(state.nextPage),
  listTimers: faulty(listTimers),
  nextTimers: faulty(nextTimers),
};

// The engine has them, the component has no network: a call would be a trap. So they are not defined, which is an error
// with the author's line.
for (const name of ["fetch", "Headers", "Request", "Response"]) delete globalThis[name];

const processor = exportedProcessor();
// Before there is a log: all of this runs while the component is built.
prepare(processor);
setLogSink(log);
const instance = new Instance(processor);

export const handler = {
  init: guarded((query) => instance.init(host, { ...query, batchId: Number(query.batchId), parameters: new Map(query.parameters) })),
  handleInitialState: guarded((time) => instance.handleInitialState(time)),
  handleInputRows: guarded((time) => instance.handleInputRows(time)),
  handleExpiredTimer: guarded((time) => instance.handleExpiredTimer(time)),
  close: guarded(() => instance.close()),
};

/** An import whose faults are the SDK's errors. The generated glue throws them as the payload of an error of its own. */
function faulty(call) {
  return (...parameters) => {
    try {
      return call(...parameters);
    } catch (error) {
      const { op, code, message } = error?.payload ?? {};
      if (code === undefined) throw error;
      throw op === undefined ? new ProcessorError(code, message) : new ApplyFault(op, code, message);
    }
  };
}

/** An export that throws nothing but a failure. */
function guarded(call) {
  return (parameter) => {
    try {
      return call(parameter);
    } catch (thrown) {
      throw failureOf(thrown, instance.group);
    }
  };
}
