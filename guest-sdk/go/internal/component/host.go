//go:build wasip1

package component

import (
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// host is the component's host. All of its state is on its side.
type host struct{}

func (host) NextChunk() ([]byte, bool) {
	prepareLarge()
	inputNext(retAt())
	if uint8(ret[0]) == 0 {
		return nil, false
	}
	return gotLarge(bytesAt(ret[1], ret[2])), true
}

func (host) ValueState(name, value string, ttlMs uint64) (contract.Variable, *contract.Fault) {
	prepare(answerBytes)
	n, nameLen := textPointer(name)
	v, valueLen := textPointer(value)
	getValueState(n, nameLen, v, valueLen, hasTTL(ttlMs), ttlMs, retAt())
	return ret[1], fault()
}

func (host) ListState(name, element string, ttlMs uint64) (contract.Variable, *contract.Fault) {
	prepare(answerBytes)
	n, nameLen := textPointer(name)
	e, elementLen := textPointer(element)
	getListState(n, nameLen, e, elementLen, hasTTL(ttlMs), ttlMs, retAt())
	return ret[1], fault()
}

func (host) MapState(name, key, value string, ttlMs uint64) (contract.Variable, *contract.Fault) {
	prepare(answerBytes)
	n, nameLen := textPointer(name)
	k, keyLen := textPointer(key)
	v, valueLen := textPointer(value)
	getMapState(n, nameLen, k, keyLen, v, valueLen, hasTTL(ttlMs), ttlMs, retAt())
	return ret[1], fault()
}

func (host) DeleteIfExists(name string) *contract.Fault {
	prepare(answerBytes)
	n, nameLen := textPointer(name)
	deleteIfExists(n, nameLen, retAt())
	return fault()
}

func (host) Exists(v contract.Variable, of contract.Group) (bool, *contract.Fault) {
	prepare(answerBytes)
	stateExists(v, of, retAt())
	return uint8(ret[1]) != 0, fault()
}

func (host) GetValue(v contract.Variable, of contract.Group) ([]byte, bool, *contract.Fault) {
	prepare(answerBytes)
	getValue(v, of, retAt())
	return optionalRow()
}

func (host) GetList(v contract.Variable, of contract.Group) (contract.Page, *contract.Fault) {
	prepareLarge()
	getList(v, of, retAt())
	return page()
}

func (host) GetMapValue(v contract.Variable, of contract.Group, key []byte) ([]byte, bool, *contract.Fault) {
	prepare(answerBytes)
	k, keyLen := pointer(key)
	getMapValue(v, of, k, keyLen, retAt())
	return optionalRow()
}

func (host) ContainsKey(v contract.Variable, of contract.Group, key []byte) (bool, *contract.Fault) {
	prepare(answerBytes)
	k, keyLen := pointer(key)
	containsKey(v, of, k, keyLen, retAt())
	return uint8(ret[1]) != 0, fault()
}

func (host) GetMap(v contract.Variable, of contract.Group, part contract.Part) (contract.Page, *contract.Fault) {
	prepareLarge()
	getMap(v, of, uint32(part), retAt())
	return page()
}

func (host) NextPage(of contract.Cursor) (contract.Page, *contract.Fault) {
	prepareLarge()
	nextPage(of, retAt())
	return page()
}

func (host) ListTimers(of contract.Group) (contract.TimerPage, *contract.Fault) {
	prepareLarge()
	listTimers(of, retAt())
	return timerPage()
}

func (host) NextTimers(of contract.Cursor) (contract.TimerPage, *contract.Fault) {
	prepareLarge()
	nextTimers(of, retAt())
	return timerPage()
}

func (host) Apply(ops []byte) (op uint32, fault *contract.Fault) {
	prepare(answerBytes)
	o, opsLen := pointer(ops)
	effectsApply(o, opsLen, retAt())
	if uint8(ret[0]) == 0 {
		return 0, nil
	}
	return ret[1], &contract.Fault{Code: stringAt(ret[2], ret[3]), Message: stringAt(ret[4], ret[5])}
}

func (host) InHand() *contract.Group { return &lastWords.inHand }

// fault reads result<_, fault>; nil when it is not one.
func fault() *contract.Fault {
	if uint8(ret[0]) == 0 {
		return nil
	}
	return &contract.Fault{Code: stringAt(ret[1], ret[2]), Message: stringAt(ret[3], ret[4])}
}

// optionalRow reads result<option<list<u8>>, fault>.
func optionalRow() ([]byte, bool, *contract.Fault) {
	if fault := fault(); fault != nil || uint8(ret[1]) == 0 {
		return nil, false, fault
	}
	return bytesAt(ret[2], ret[3]), true, nil
}

// page reads result<page, fault>.
func page() (contract.Page, *contract.Fault) {
	if fault := fault(); fault != nil {
		return contract.Page{}, fault
	}
	return contract.Page{Rows: gotLarge(bytesAt(ret[1], ret[2])), More: uint8(ret[3]) != 0, Rest: ret[4]}, nil
}

// timerPage reads result<timer-page, fault>.
func timerPage() (contract.TimerPage, *contract.Fault) {
	if fault := fault(); fault != nil {
		return contract.TimerPage{}, fault
	}
	expiries := unsafe.Slice((*int64)(address(ret[1])), ret[2])
	return contract.TimerPage{ExpiriesMs: expiries, More: uint8(ret[3]) != 0, Rest: ret[4]}, nil
}

func hasTTL(ttlMs uint64) uint32 {
	if ttlMs == 0 {
		return 0
	}
	return 1
}
