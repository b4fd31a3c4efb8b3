// Reports sensors that have been silent for five minutes.

import { exportProcessor, Timestamp, type Handle, type Timers, type ValueState } from "tidemill";

const SILENCE_MS = 5 * 60 * 1000;

interface Reading {
  celsius: number;
}

/** What is known of a sensor that is alive. Its timer is at `last_seen` + five minutes. */
interface Sensor {
  last_seen: Timestamp;
  celsius: number;
}

interface Silent {
  sensor: string;
  last_seen: Timestamp;
  /** Its last reading. */
  celsius: number;
}

export class Heartbeat {
  #sensor!: ValueState<Sensor>;

  init(handle: Handle): void {
    this.#sensor = handle.valueState("sensor", "last_seen TIMESTAMP, celsius DOUBLE");
  }

  handleInputRows(_sensor: string, rows: Iterable<Reading>, timers: Timers): void {
    const before = this.#sensor.get();
    if (before !== undefined) timers.delete(before.last_seen.ms + SILENCE_MS);
    const now = timers.processingTimeMs;
    for (const { celsius } of rows) this.#sensor.update({ last_seen: Timestamp.fromMs(now), celsius });
    timers.register(now + SILENCE_MS);
  }

  *handleExpiredTimer(sensor: string): Iterable<Silent> {
    const known = this.#sensor.get();
    if (known === undefined) return;
    this.#sensor.clear();
    yield { sensor, ...known };
  }
}

exportProcessor(Heartbeat, {
  key: "STRING NOT NULL",
  input: "celsius DOUBLE NOT NULL",
  output: "sensor STRING NOT NULL, last_seen TIMESTAMP NOT NULL, celsius DOUBLE NOT NULL",
});
