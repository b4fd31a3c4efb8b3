// Reports sensors that have been silent for five minutes.
package main

import (
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

const silence = 5 * time.Minute

// Reading is a row of the source; its key column is the query's.
type Reading struct {
	Celsius float64
}

// Sensor is what is known of a sensor that is alive. Its timer is at LastSeen + five minutes.
type Sensor struct {
	LastSeen time.Time
	Celsius  float64
}

// Silent is the report of a sensor.
type Silent struct {
	Sensor   string
	LastSeen time.Time
	// Its last reading.
	Celsius float64
}

// Heartbeat is the processor.
type Heartbeat struct {
	sensor tidemill.Value[Sensor]
}

// Init makes the state variable.
func (p *Heartbeat) Init(h *tidemill.Handle) error {
	return h.State("sensor", &p.sensor)
}

// HandleInputRows moves the sensor's timer.
func (p *Heartbeat) HandleInputRows(_ string, rows *tidemill.Rows[Reading], timers *tidemill.Timers, _ *tidemill.Out[Silent]) error {
	before, alive, err := p.sensor.Get()
	if err != nil {
		return err
	}
	if alive {
		if err := timers.Delete(before.LastSeen.Add(silence).UnixMilli()); err != nil {
			return err
		}
	}
	now := time.UnixMilli(timers.ProcessingTimeMs()).UTC()
	for reading := range rows.All() {
		if err := p.sensor.Update(Sensor{LastSeen: now, Celsius: reading.Celsius}); err != nil {
			return err
		}
	}
	return timers.Register(now.Add(silence).UnixMilli())
}

// HandleExpiredTimer reports the sensor and forgets it.
func (p *Heartbeat) HandleExpiredTimer(sensor string, _ int64, _ *tidemill.Timers, out *tidemill.Out[Silent]) error {
	last, alive, err := p.sensor.Get()
	if err != nil || !alive {
		return err
	}
	if err := p.sensor.Clear(); err != nil {
		return err
	}
	return out.Emit(Silent{Sensor: sensor, LastSeen: last.LastSeen, Celsius: last.Celsius})
}

func init() { tidemill.Register(&Heartbeat{}) }

func main() {}
