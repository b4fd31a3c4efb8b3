package main

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// tuple is a tuple of Python; structs are printed as one too.
type tuple []any

// literal is text that Python has printed already.
type literal string

// repr is what Python's repr says of a value; nil is None.
func repr(value any) string {
	if text, printed := value.(literal); printed {
		return string(text)
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return "None"
	case reflect.Pointer:
		if v.IsNil() {
			return "None"
		}
		return repr(v.Elem().Interface())
	case reflect.Bool:
		if v.Bool() {
			return "True"
		}
		return "False"
	case reflect.Float64:
		text := strconv.FormatFloat(v.Float(), 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case reflect.String:
		return "'" + v.String() + "'"
	case reflect.Struct:
		return items(v.NumField(), v.Field, "(", ",)", ")")
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[tuple]() {
			return items(v.Len(), v.Index, "(", ",)", ")")
		}
		return items(v.Len(), v.Index, "[", "]", "]")
	default:
		return fmt.Sprint(value)
	}
}

// items prints n items; a tuple of one ends in a comma.
func items(n int, at func(int) reflect.Value, open, closeOne, closeMany string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = repr(at(i).Interface())
	}
	if n == 1 {
		return open + texts[0] + closeOne
	}
	return open + strings.Join(texts, ", ") + closeMany
}

// orNone is what a state variable's Get answers, or None.
func orNone[T any](value T, ok bool, err error) (any, error) {
	if err != nil || !ok {
		return nil, err
	}
	return value, nil
}

// list is what walks the elements of a state variable, to its end.
func list[T any](walk iter.Seq[T], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return slices.Collect(walk), nil
}

// entries is the entries of a map state, as tuples.
func entries[K, V any](m *tidemill.Map[K, V]) (any, error) {
	all, err := m.All()
	if err != nil {
		return nil, err
	}
	found := []any{}
	for key, value := range all {
		found = append(found, tuple{key, value})
	}
	return found, nil
}
