package tidemilltest

// Value is the value that a key has in the value state of a name; false if there is none.
func Value[T, K, I, O any](q *Query[K, I, O], name string, key K) (value T, ok bool) {
	q.t.Helper()
	packed, ok := q.state.Value(name, packKey(q.t, key), q.time.ProcessingTimeMs)
	if !ok {
		return value, false
	}
	return unpack[T](q.t, packed), true
}

// List is the elements that a key has in the list state of a name.
func List[T, K, I, O any](q *Query[K, I, O], name string, key K) (elements []T) {
	q.t.Helper()
	for _, packed := range q.state.List(name, packKey(q.t, key), q.time.ProcessingTimeMs) {
		elements = append(elements, unpack[T](q.t, packed))
	}
	return elements
}

// Map is the entries that a key has in the map state of a name.
func Map[MK comparable, MV, K, I, O any](q *Query[K, I, O], name string, key K) map[MK]MV {
	q.t.Helper()
	entries := map[MK]MV{}
	for _, packed := range q.state.Map(name, packKey(q.t, key), q.time.ProcessingTimeMs) {
		entries[unpack[MK](q.t, packed[0])] = unpack[MV](q.t, packed[1])
	}
	return entries
}
