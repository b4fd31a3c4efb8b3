package memory

import (
	"bytes"
	"encoding/binary"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// Apply is effects.apply.
func (h *Host) Apply(ops []byte) (op uint32, fault *contract.Fault) {
	for ; len(ops) > 0; op++ {
		if len(ops) < 16 || len(ops)-16 < int(binary.LittleEndian.Uint32(ops[12:])) {
			return op, broken("an op longer than the ops")
		}
		end := 16 + binary.LittleEndian.Uint32(ops[12:])
		word := func(at int) uint32 { return binary.LittleEndian.Uint32(ops[at:]) }
		if fault := h.applyOp(word(0), word(4), word(8), bytes.Clone(ops[16:end])); fault != nil {
			return op, fault
		}
		ops = ops[end:]
	}
	return op, nil
}

func (h *Host) applyOp(op uint32, v contract.Variable, of contract.Group, payload []byte) *contract.Fault {
	key, inChunk := h.feed.inChunk[of]
	if !inChunk {
		return broken("a group that is not in the chunk")
	}
	switch op {
	case contract.OpEmit:
		if h.phase == InitialState {
			return &contract.Fault{Code: contract.InvalidHandleState, Message: "`emit` in handle-initial-state"}
		}
		h.Output = append(h.Output, payload)
		return nil
	case contract.OpTimerRegister:
		h.State.registerTimer(key, int64(binary.LittleEndian.Uint64(payload)))
		return nil
	case contract.OpTimerDelete:
		h.State.deleteTimer(key, int64(binary.LittleEndian.Uint64(payload)))
		return nil
	}
	if int(v) >= len(h.variables) {
		return broken("an unknown variable")
	}
	return h.applyToVariable(op, h.variables[v], key, payload)
}

func (h *Host) applyToVariable(op uint32, v variable, key Key, payload []byte) *contract.Fault {
	at := place{v.name, key}
	var expiryMs int64
	if v.ttlMs != 0 {
		expiryMs = h.time.ProcessingTimeMs + int64(v.ttlMs)
	}
	kindOf := map[uint32]kind{
		contract.OpValuePut: valueKind,
		contract.OpListPut:  listKind, contract.OpListAppend: listKind,
		contract.OpMapPut: mapKind, contract.OpMapRemove: mapKind,
		contract.OpClear: v.kind,
	}
	if wanted, known := kindOf[op]; !known || wanted != v.kind {
		return broken("an unknown op, or a variable of another kind")
	}
	switch op {
	case contract.OpClear:
		h.State.clear(at)
	case contract.OpValuePut:
		h.State.values[at] = stored{payload, expiryMs}
	case contract.OpListPut, contract.OpListAppend:
		if op == contract.OpListPut {
			h.State.clear(at)
		}
		for _, row := range rows(payload) {
			h.State.lists[at] = append(h.State.lists[at], stored{row, expiryMs})
		}
	case contract.OpMapPut:
		end := 8 + binary.LittleEndian.Uint32(payload)
		h.State.putEntry(at, string(payload[8:end]), stored{payload[end:], expiryMs})
	case contract.OpMapRemove:
		delete(h.State.maps[at], string(payload))
	}
	return nil
}
