//go:build wasip1

// Package component is the host as a component sees it: the imports and exports of wit/world.wit by hand, in the
// canonical ABI. The encoder of `tidemill build` checks every signature against the WIT.
//
// By hand, because generated bindings allocate for every call and keep what they allocate; here a call allocates
// nothing, and the host's bytes lie in memory that was made before it (see memory.go).
package component

import "unsafe"

//go:wasmimport tidemill:processor/input@0.1.0 next
//go:noescape
func inputNext(ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-value-state
//go:noescape
func getValueState(name unsafe.Pointer, nameLen uint32, schema unsafe.Pointer, schemaLen uint32, hasTTL uint32, ttlMs uint64, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-list-state
//go:noescape
func getListState(name unsafe.Pointer, nameLen uint32, schema unsafe.Pointer, schemaLen uint32, hasTTL uint32, ttlMs uint64, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-map-state
//go:noescape
func getMapState(name unsafe.Pointer, nameLen uint32, key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen uint32, hasTTL uint32, ttlMs uint64, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 delete-if-exists
//go:noescape
func deleteIfExists(name unsafe.Pointer, nameLen uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 exists
//go:noescape
func stateExists(state, of uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-value
//go:noescape
func getValue(state, of uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-list
//go:noescape
func getList(state, of uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-map-value
//go:noescape
func getMapValue(state, of uint32, key unsafe.Pointer, keyLen uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 contains-key
//go:noescape
func containsKey(state, of uint32, key unsafe.Pointer, keyLen uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 get-map
//go:noescape
func getMap(state, of uint32, what uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/state@0.1.0 next-page
//go:noescape
func nextPage(of uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/timers@0.1.0 list-timers
//go:noescape
func listTimers(of uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/timers@0.1.0 next-timers
//go:noescape
func nextTimers(of uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/effects@0.1.0 apply
//go:noescape
func effectsApply(ops unsafe.Pointer, opsLen uint32, ret unsafe.Pointer)

//go:wasmimport tidemill:processor/logging@0.1.0 log
//go:noescape
func loggingLog(level uint32, message unsafe.Pointer, messageLen uint32)

// --- the adapter (adapter/adapter.wat)

//go:wasmimport wasi_snapshot_preview1 adapter_begin
//go:noescape
func adapterBegin(batchTimeNs int64, seed uint64, words unsafe.Pointer)

//go:wasmimport wasi_snapshot_preview1 adapter_set_paused
//go:noescape
func adapterSetPaused(paused uint32)
