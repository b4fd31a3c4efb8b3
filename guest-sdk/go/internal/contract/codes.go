package contract

// Codes of the misuse that the SDK itself finds. Those of Spark keep Spark's names.
const (
	UserCode               = "USER_CODE"
	InvalidHandleState     = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE"
	InvalidTimeMode        = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE"
	TTLNotPositive         = "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE"
	EmptyListValue         = "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE"
	NullValue              = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"
	MalformedRow           = "MALFORMED_ROW"
	InvalidRow             = "INVALID_ROW"
	OutOfRange             = "NUMERIC_VALUE_OUT_OF_RANGE"
	SchemaMismatch         = "SCHEMA_MISMATCH"
	InitialStateNotHandled = "INITIAL_STATE_NOT_HANDLED"
	HandleNotInitialized   = "STATE_STORE_HANDLE_NOT_INITIALIZED"
	ContractBroken         = "CONTRACT_BROKEN"
	OtherGoroutine         = "CALL_FROM_ANOTHER_GOROUTINE"
)

// The ops of effects.apply.
const (
	OpValuePut = iota + 1
	OpClear
	OpListPut
	OpListAppend
	OpMapPut
	OpMapRemove
	OpTimerRegister
	OpTimerDelete
	OpEmit
)
