package tidemill_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

// schemas are what a processor with these types gives and wants.
func schemas[K, I, O any](t *testing.T) (columns, key, output string) {
	t.Helper()
	return tidemilltest.New(t, typed[K, I, O]{}).Schemas()
}

// typed is a processor that does nothing, with types.
type typed[K, I, O any] struct{}

func (typed[K, I, O]) Init(*tidemill.Handle) error { return nil }

func (typed[K, I, O]) HandleInputRows(K, *tidemill.Rows[I], *tidemill.Timers, *tidemill.Out[O]) error {
	return nil
}

func TestEveryTypeHasItsColumn(t *testing.T) {
	type place struct {
		Lat, Lon float64
		Names    []string
	}
	type id string
	type row struct {
		Bool       bool
		Tiny       int8
		Small      int16
		Int        int32
		Big        int64
		Plain      int
		Float      float32
		Double     float64
		Price      tidemill.Decimal `tidemill:"price,decimal(10,2)"`
		Text       string
		Named      id
		Binary     []byte
		Day        tidemill.Date
		At         time.Time
		Tags       []string
		Counts     map[string]int64
		Prices     map[string][]tidemill.Decimal `tidemill:",decimal(20,0)"`
		Place      place
		Maybe      *int64
		MaybePlace *place
	}
	columns, _, output := schemas[string, row, row](t)
	want := "bool BOOLEAN NOT NULL, tiny TINYINT NOT NULL, small SMALLINT NOT NULL, int INT NOT NULL, big BIGINT NOT NULL, " +
		"plain BIGINT NOT NULL, float FLOAT NOT NULL, double DOUBLE NOT NULL, price DECIMAL(10,2) NOT NULL, text STRING NOT NULL, " +
		"named STRING NOT NULL, binary BINARY NOT NULL, day DATE NOT NULL, at TIMESTAMP NOT NULL, tags ARRAY<STRING> NOT NULL, " +
		"counts MAP<STRING, BIGINT> NOT NULL, prices MAP<STRING, ARRAY<DECIMAL(20,0)>> NOT NULL, " +
		"place STRUCT<lat: DOUBLE, lon: DOUBLE, names: ARRAY<STRING>> NOT NULL, maybe BIGINT, " +
		"maybe_place STRUCT<lat: DOUBLE, lon: DOUBLE, names: ARRAY<STRING>>"
	if columns != want || output != want {
		t.Errorf("the columns are\n%s\n%s, want\n%s", columns, output, want)
	}
}

func TestColumnsAreNamedByTheFieldInSnakeCaseOrByTheTag(t *testing.T) {
	type row struct {
		LastSeen, UserID, HTTPCode, X, Key2, Snake_Case bool
		Hour                                            bool `tidemill:"time_hour"`
		Quoted                                          bool "tidemill:\"a `b`\""
		Left                                            bool `tidemill:"-"`
		unexported                                      bool
	}
	_ = row{}.unexported
	columns, _, _ := schemas[string, row, pair](t)
	want := "last_seen, user_id, http_code, x, key2, snake_case, time_hour, `a ``b```"
	if got := strings.ReplaceAll(columns, " BOOLEAN NOT NULL", ""); got != want {
		t.Errorf("the columns are %s, want %s", got, want)
	}
}

func TestAKeyIsTheQuerysColumnOrAStructThatNamesThem(t *testing.T) {
	type key struct {
		Origin, Dest string
		Hour         *int64
	}
	if _, got, _ := schemas[key, int64, pair](t); got != "origin STRING NOT NULL, dest STRING NOT NULL, hour BIGINT" {
		t.Errorf("the key is %s", got)
	}
	if _, got, _ := schemas[*string, int64, pair](t); got != "value STRING" {
		t.Errorf("the key is %s", got)
	}
}

func TestAKeyOfSeveralColumnsAndANullAreKeysLikeAnyOther(t *testing.T) {
	type key struct {
		Origin string
		Hour   *int64
	}
	hour := int64(7)
	var keys []string
	q := tidemilltest.New(t, processorOf(func(k key, rows *tidemill.Rows[int64]) {
		text := k.Origin
		if k.Hour != nil {
			text += " with an hour"
		}
		keys = append(keys, text)
	}))
	q.Input(key{"LGA", &hour}, 1).Input(key{"LGA", nil}, 2).Input(key{"LGA", nil}, 3).RunBatch()
	if strings.Join(keys, ", ") != "LGA with an hour, LGA" {
		t.Errorf("the keys are %q", keys)
	}
}

func TestTypesThatAreNoRowsAreTold(t *testing.T) {
	type embedded struct{ pair }
	type Embedded struct{ tidemill.Date }
	type node struct{ Next []node }
	type twice struct {
		A int64
		B int64 `tidemill:"a"`
	}
	check := func(says string, try func() error) {
		t.Helper()
		err := try()
		wantCode(t, err, "SCHEMA_MISMATCH")
		if err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want words like %q", err, says)
		}
	}
	check("begin with a capital letter", output[embedded](t))
	check("embedded", output[Embedded](t))
	check("nest deeper", output[node](t))
	check("two columns", output[twice](t))
	check("uint64 is no column type", output[struct{ N uint64 }](t))
	check("column `place.n`: uint64", output[struct{ Place struct{ N uint64 } }](t))
	check("digits in the tag", output[struct{ Price tidemill.Decimal }](t))
	check("up to 38 digits", output[struct {
		Price tidemill.Decimal `tidemill:"price,decimal(39,0)"`
	}](t))
	check("holds no tidemill.Decimal", output[struct {
		Price string `tidemill:"price,decimal(9,0)"`
	}](t))
	check("never NULL", output[struct{ Counts map[*string]int64 }](t))
}

func output[O any](t *testing.T) func() error {
	return func() error {
		_, err := tidemilltest.New(t, typed[string, int64, O]{}).TryBatch()
		return err
	}
}

func TestAMethodThatIsAlmostAHandlerIsTold(t *testing.T) {
	_, err := tidemilltest.New(t, &misspelt{}).TryBatch()
	wantCode(t, err, "SCHEMA_MISMATCH")
	if err != nil && !strings.Contains(err.Error(), "HandleExpiredTimer") {
		t.Errorf("got %v", err)
	}
}

type misspelt struct{ typed[string, int64, pair] }

func (*misspelt) HandleExpiredTimer(key string, expiryMs int64) error { return nil }

func TestInitKnowsItsQuery(t *testing.T) {
	var query tidemill.Query
	var limit string
	q := tidemilltest.New(t, &scripted{init: func(h *tidemill.Handle) error {
		query = h.Query()
		limit, _ = h.Parameter("limit")
		_, none := h.Parameter("other")
		if none {
			t.Error("a parameter that nobody set is there")
		}
		return nil
	}})
	q.TimeMode(tidemill.TimeModeEventTime).OutputMode(tidemill.OutputModeUpdate).Parameter("limit", "7")
	q.RunBatch()
	q.RunBatch()
	if query.TimeMode != tidemill.TimeModeEventTime || query.OutputMode != tidemill.OutputModeUpdate || query.BatchID != 1 || limit != "7" {
		t.Errorf("the query is %+v, the limit %s", query, limit)
	}
}
