package tidemill

import (
	"bytes"
	"iter"
	"math/bits"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

// Map is a map from K to V per grouping key. Two keys are the same if their packed rows are (0.0 and -0.0 are one key).
// Init makes it, by [Handle.State]; in a handler it is that of the key in hand. Reads see the writes before them.
type Map[K, V any] struct {
	session      *session.Session
	variable     contract.Variable
	keys, values *row.Plan
	key          K
	value        V
	packed       []byte // room for a key that is looked up
	unapplied    mapWrites
}

// mapWrites are writes of the group in hand that were not applied, found again by the hash of their key, so that
// counting in a map (Get, then Update) costs no call once a key was written. What was applied, the host knows.
type mapWrites struct {
	pending session.Pending
	// The map was cleared before the writes.
	cleared bool
	// By hash of the key; of two keys with one hash the later.
	byHash map[uint64]mapWrite
}

type mapWrite struct {
	place   session.Place
	removed bool
}

// Get is the value at key; false if there is none.
func (m *Map[K, V]) Get(key K) (value V, ok bool, err error) {
	packed, ok, fault := m.lookUp("mapState.getValue", key)
	if fault == nil && ok {
		fault = m.values.Decode(packed, unsafe.Pointer(&m.value), false)
	}
	if fault != nil || !ok {
		return value, false, errorOf(fault)
	}
	return m.value, true, nil
}

// ContainsKey is whether there is an entry at key.
func (m *Map[K, V]) ContainsKey(key K) (bool, error) {
	packed, own, fault := m.find("mapState.containsKey", key)
	if fault != nil || own != notFound {
		return own == foundPut, errorOf(fault)
	}
	group, fault := m.session.Ready("mapState.containsKey", &session.Pending{})
	if fault != nil {
		return false, errorOf(fault)
	}
	ok, fault := m.session.Host.ContainsKey(m.variable, group, packed)
	return ok, errorOf(fault)
}

// Exists is whether there is an entry.
func (m *Map[K, V]) Exists() (bool, error) {
	if _, fault := m.session.Ready("mapState.exists", &m.unapplied.pending); fault != nil {
		return false, errorOf(fault)
	}
	ok, fault := m.session.Exists(m.variable)
	return ok, errorOf(fault)
}

// Update sets the value at key, and starts the entry's TTL anew.
func (m *Map[K, V]) Update(key K, value V) error {
	s := m.session
	head, fault := s.Open("mapState.updateValue", contract.OpMapPut, m.variable)
	if fault != nil {
		return errorOf(fault)
	}
	length := len(s.Ops)
	s.Ops = append(s.Ops, 0, 0, 0, 0, 0, 0, 0, 0)
	m.key, m.value = key, value
	if s.Ops, fault = m.appendKey(s.Ops); fault == nil {
		putLength(s.Ops, length)
		s.Ops, fault = m.values.Encode(s.Ops, unsafe.Pointer(&m.value), row.Signed)
	}
	if fault != nil {
		s.Abandon(head)
		return errorOf(fault)
	}
	m.note(mapWrite{place: s.Close(head)})
	return nil
}

// Remove removes the entry at key, if there is one.
func (m *Map[K, V]) Remove(key K) error {
	s := m.session
	head, fault := s.Open("mapState.removeKey", contract.OpMapRemove, m.variable)
	if fault != nil {
		return errorOf(fault)
	}
	m.key = key
	if s.Ops, fault = m.appendKey(s.Ops); fault != nil {
		s.Abandon(head)
		return errorOf(fault)
	}
	m.note(mapWrite{place: s.Close(head), removed: true})
	return nil
}

// Clear removes all entries.
func (m *Map[K, V]) Clear() error {
	if fault := m.session.Clear("mapState.clear", m.variable); fault != nil {
		return errorOf(fault)
	}
	m.unapplied.forget()
	m.unapplied.cleared = true
	m.unapplied.pending.Note(m.session)
	return nil
}

// All walks the entries as they are now, in an order of their own that is always the same; what is written meanwhile
// does not show. An entry that cannot be read ends the handler with its error.
func (m *Map[K, V]) All() (iter.Seq2[K, V], error) {
	p, fault := m.read("mapState.iterator", contract.Entries)
	return func(yield func(K, V) bool) {
		key, value := new(K), new(V)
		for p.read(m.keys, unsafe.Pointer(key)) && p.read(m.values, unsafe.Pointer(value)) && yield(*key, *value) {
		}
	}, errorOf(fault)
}

// Keys walks the keys as they are now, in the order of All.
func (m *Map[K, V]) Keys() (iter.Seq[K], error) {
	p, fault := m.read("mapState.keys", contract.Keys)
	return walk[K](p, m.keys), errorOf(fault)
}

// Values walks the values as they are now, in the order of All.
func (m *Map[K, V]) Values() (iter.Seq[V], error) {
	p, fault := m.read("mapState.values", contract.Values)
	return walk[V](p, m.values), errorOf(fault)
}

func (m *Map[K, V]) read(operation string, part contract.Part) (*pages, *contract.Fault) {
	group, fault := m.session.Ready(operation, &m.unapplied.pending)
	if fault != nil {
		return nil, fault
	}
	first, fault := m.session.Host.GetMap(m.variable, group, part)
	return &pages{session: m.session, page: first}, fault
}

// lookUp is the packed value at key, from pending writes or from the host.
func (m *Map[K, V]) lookUp(operation string, key K) ([]byte, bool, *contract.Fault) {
	packed, own, fault := m.find(operation, key)
	if fault != nil || own != notFound {
		return packed, own == foundPut, fault
	}
	group, fault := m.session.Ready(operation, &session.Pending{})
	if fault != nil {
		return nil, false, fault
	}
	return m.session.Host.GetMapValue(m.variable, group, packed)
}

type found uint8

const (
	notFound found = iota
	foundPut
	foundRemoved
)

// find looks among the pending writes. Of a put it answers the packed value, of a key that is not there the packed key.
func (m *Map[K, V]) find(operation string, key K) (packed []byte, own found, fault *contract.Fault) {
	s := m.session
	if fault := s.Group(operation); fault != nil {
		return nil, notFound, fault
	}
	m.key = key
	if m.packed, fault = m.appendKey(m.packed[:0]); fault != nil {
		return nil, notFound, fault
	}
	writes := &m.unapplied
	if !writes.pending.Of(s) {
		return m.packed, notFound, nil
	}
	write, written := writes.byHash[keyHash(m.packed)]
	if !written {
		if writes.cleared {
			return nil, foundRemoved, nil
		}
		return m.packed, notFound, nil
	}
	payload, _ := s.Payload(write.place)
	if write.removed && bytes.Equal(payload, m.packed) {
		return nil, foundRemoved, nil
	}
	if !write.removed {
		if key, value := putHalves(payload); bytes.Equal(key, m.packed) {
			return value, foundPut, nil
		}
	}
	// Another key with this hash was written after; let the host tell them apart.
	return m.packed, notFound, s.Apply()
}

// note notes a write of the key in m.key.
func (m *Map[K, V]) note(write mapWrite) {
	writes := &m.unapplied
	if !writes.pending.Of(m.session) {
		writes.forget()
	}
	payload, _ := m.session.Payload(write.place)
	key := payload
	if !write.removed {
		key, _ = putHalves(payload)
	}
	if writes.byHash == nil {
		writes.byHash = map[uint64]mapWrite{}
	}
	writes.byHash[keyHash(key)] = write
	writes.pending.Note(m.session)
}

func (w *mapWrites) forget() {
	clear(w.byHash)
	w.cleared = false
}

// appendKey packs the key in m.key; one whose only column is NULL is no key.
func (m *Map[K, V]) appendKey(to []byte) ([]byte, *contract.Fault) {
	start := len(to)
	to, fault := m.keys.Encode(to, unsafe.Pointer(&m.key), row.Unsigned)
	if fault == nil && m.keys.IsNull(to[start:]) {
		fault = &contract.Fault{Code: contract.NullValue, Message: "the key of a map entry is NULL"}
	}
	return to, fault
}

func putHalves(payload []byte) (key, value []byte) {
	end := lengthBytes + int(word.Load32(payload, 0))
	return payload[lengthBytes:end], payload[end:]
}

// keyHash: packed rows are words of 8 bytes, so a multiply and a rotate per word mix them well enough.
func keyHash(key []byte) uint64 {
	var hash uint64
	for ; len(key) >= 8; key = key[8:] {
		hash = bits.RotateLeft64((hash^word.Load64(key, 0))*0x9e37_79b9_7f4a_7c15, 29)
	}
	return hash ^ hash>>32
}

func (m *Map[K, V]) declare(s *session.Session, name string, settings stateSettings) (fault *contract.Fault) {
	if m.keys, fault = planOf[K](); fault != nil {
		return fault
	}
	if m.values, fault = planOf[V](); fault != nil {
		return fault
	}
	if m.variable, fault = s.Host.MapState(name, m.keys.StoredSchema(), m.values.StoredSchema(), settings.ttlMs); fault == nil {
		m.session = s
	}
	return fault
}
