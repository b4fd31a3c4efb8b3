// The one error type of the SDK, and the codes of the misuse that it finds itself.

/** An error with a stable code: a misuse that the SDK or the host found, or one of the author's own. */
export class ProcessorError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = "ProcessorError";
    this.code = code;
  }
}

/** A fault of `effects.apply`: the ops after the one that it names are gone, so the call has failed. */
export class ApplyFault extends ProcessorError {
  /** @param {number} op which op of the call, counted from 0 */
  constructor(op, code, message) {
    super(code, message);
    this.op = op;
    /** The group of that op, once it is known. */
    this.group = undefined;
  }
}

// Those of Spark keep Spark's names.
export const INVALID_HANDLE_STATE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
export const INVALID_TIME_MODE = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE";
export const INVALID_TTL = "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE";
export const EMPTY_LIST_VALUE = "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE";
export const NULL_VALUE = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE";
export const INVALID_ROW = "INVALID_ROW";
export const INVALID_SCHEMA = "INVALID_SCHEMA";
export const OUT_OF_RANGE = "NUMERIC_VALUE_OUT_OF_RANGE";
export const INITIAL_STATE_NOT_HANDLED = "INITIAL_STATE_NOT_HANDLED";
export const INVALID_PROCESSOR = "INVALID_PROCESSOR";
export const INVALID_OUTPUT = "INVALID_OUTPUT";
export const CONTRACT_BROKEN = "CONTRACT_BROKEN";
/** Code of errors that carry none of their own. */
export const USER_CODE = "USER_CODE";
