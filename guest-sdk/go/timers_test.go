package tidemill_test

import (
	"slices"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

// alarms is a processor that registers a timer for each row, and emits those that fire.
func alarms(timer func(expiryMs int64, timers *tidemill.Timers)) *scripted {
	return &scripted{
		rows: func(_ string, rows *tidemill.Rows[int64], timers *tidemill.Timers, _ *tidemill.Out[pair]) error {
			for expiryMs := range rows.All() {
				if err := timers.Register(expiryMs); err != nil {
					return err
				}
			}
			return nil
		},
		timer: func(key string, expiryMs int64, timers *tidemill.Timers, out *tidemill.Out[pair]) error {
			if timer != nil {
				timer(expiryMs, timers)
			}
			return out.Emit(pair{key, expiryMs})
		},
	}
}

func TestTimersFireInOrderWhenTheirTimeHasCome(t *testing.T) {
	q := tidemilltest.New(t, alarms(nil)).TimeMode(tidemill.TimeModeProcessingTime)
	if got := q.Input("a", 20, 10, 30).RunBatch(); len(got) != 0 {
		t.Errorf("emitted %v too early", got)
	}
	if got, want := q.SetTimeMs(20).RunBatch(), []pair{{"a", 10}, {"a", 20}}; !slices.Equal(got, want) {
		t.Errorf("emitted %v, want %v", got, want)
	}
	if got := q.Timers("a"); !slices.Equal(got, []int64{30}) {
		t.Errorf("the timers are %v", got)
	}
}

func TestADueTimerThatAHandlerDeletesDoesNotFire(t *testing.T) {
	for _, chunk := range []int{1, 8} {
		q := tidemilltest.New(t, alarms(func(expiryMs int64, timers *tidemill.Timers) {
			must(t, timers.Delete(30))
		})).TimeMode(tidemill.TimeModeProcessingTime).SmallChunks(8, chunk)
		q.Input("a", 10, 20, 30, 40).SetTimeMs(0).RunBatch()
		got := q.SetTimeMs(100).RunBatch()
		if want := []pair{{"a", 10}, {"a", 20}, {"a", 40}}; !slices.Equal(got, want) {
			t.Errorf("with %d timers a chunk, emitted %v, want %v", chunk, got, want)
		}
	}
}

func TestATimerThatRegistersItsOwnExpiryAgainStays(t *testing.T) {
	q := tidemilltest.New(t, alarms(func(expiryMs int64, timers *tidemill.Timers) {
		must(t, timers.Register(expiryMs))
	})).TimeMode(tidemill.TimeModeProcessingTime)
	q.Input("a", 10).RunBatch()
	for range 2 {
		if got := q.SetTimeMs(10).RunBatch(); !slices.Equal(got, []pair{{"a", 10}}) {
			t.Errorf("emitted %v", got)
		}
	}
}

func TestTheListShowsTheTimerThatFiresUntilItsHandlerDeletesIt(t *testing.T) {
	var lists [][]int64
	q := tidemilltest.New(t, alarms(func(expiryMs int64, timers *tidemill.Timers) {
		before, err := timers.List()
		must(t, err)
		must(t, timers.Delete(expiryMs))
		after, err := timers.List()
		must(t, err)
		lists = append(lists, before, after)
	})).TimeMode(tidemill.TimeModeProcessingTime).SmallChunks(8, 2)
	q.Input("a", 10, 20, 30, 40, 50).RunBatch()
	q.SetTimeMs(20).RunBatch()
	want := [][]int64{{10, 20, 30, 40, 50}, {20, 30, 40, 50}, {20, 30, 40, 50}, {30, 40, 50}}
	if !slices.EqualFunc(lists, want, slices.Equal) {
		t.Errorf("listed %v, want %v", lists, want)
	}
}

func TestEventTimeTimersFollowTheWatermark(t *testing.T) {
	q := tidemilltest.New(t, alarms(nil)).TimeMode(tidemill.TimeModeEventTime).SetTimeMs(1000)
	q.Input("a", 10).RunBatch()
	if got := q.SetWatermarkMs(10).RunBatch(); !slices.Equal(got, []pair{{"a", 10}}) {
		t.Errorf("emitted %v", got)
	}
}

func TestTimersNeedATimeMode(t *testing.T) {
	_, err := tidemilltest.New(t, alarms(nil)).Input("a", 10).TryBatch()
	wantCode(t, err, "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE")
}

func TestAHandlerKnowsTheTimesOfItsBatch(t *testing.T) {
	var times []int64
	q := tidemilltest.New(t, &scripted{
		rows: func(_ string, _ *tidemill.Rows[int64], timers *tidemill.Timers, _ *tidemill.Out[pair]) error {
			times = append(times, timers.ProcessingTimeMs(), timers.WatermarkMs())
			return nil
		},
	})
	q.SetTimeMs(5).SetWatermarkMs(3).Input("a", 1).RunBatch()
	if !slices.Equal(times, []int64{5, 3}) {
		t.Errorf("the times are %v", times)
	}
}
