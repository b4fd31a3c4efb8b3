// Cuts each user's events into sessions: one ends when 30 minutes have passed without an event, by the time of the events.

import { exportProcessor, Timestamp, type Handle, type ListState, type Timers } from "tidemill";

const GAP_MS = 30 * 60 * 1000;

interface Event {
  at: Timestamp;
}

/** A session that may still grow. Its timer is at `last` + 30 minutes. */
interface Open {
  first: Timestamp;
  last: Timestamp;
  events: number;
}

interface Session extends Open {
  user: string;
  /** `last` + 30 minutes: when it was known that no more comes. */
  ended: Timestamp;
}

export class Sessions {
  /** Ordered by time. There is more than one when events are further apart than the gap, and the watermark is behind them. */
  #open!: ListState<Open>;

  init(handle: Handle): void {
    this.#open = handle.listState("open", "first TIMESTAMP, last TIMESTAMP, events BIGINT");
  }

  handleInputRows(_user: string, rows: Iterable<Event>, timers: Timers): void {
    const before = this.#open.get();
    for (const session of before) timers.delete(endMs(session));
    const added = Array.from(rows, ({ at }) => ({ first: at, last: at, events: 1 }));
    const sessions = merge([...before, ...added]);
    for (const session of sessions) timers.register(endMs(session));
    this.#open.put(sessions);
  }

  handleExpiredTimer(user: string, _timers: Timers, expiryMs: number): Session[] {
    const sessions = this.#open.get();
    const open = sessions.filter((session) => endMs(session) > expiryMs);
    if (open.length === 0) this.#open.clear();
    else this.#open.put(open);
    const ended = sessions.filter((session) => endMs(session) <= expiryMs);
    return ended.map((session) => ({ user, ...session, ended: Timestamp.fromMs(endMs(session)) }));
  }
}

function endMs({ last }: Open): number {
  return last.ms + GAP_MS;
}

/** Joins what is less than the gap apart. Events may come in any order, so one can join two sessions. */
function merge(sessions: Open[]): Open[] {
  const merged: Open[] = [];
  for (const session of sessions.sort((left, right) => (left.first < right.first ? -1 : left.first > right.first ? 1 : 0))) {
    const before = merged.at(-1);
    if (before !== undefined && session.first.ms < endMs(before)) {
      if (session.last > before.last) before.last = session.last;
      before.events += session.events;
    } else {
      merged.push(session);
    }
  }
  return merged;
}

exportProcessor(Sessions, {
  key: "STRING NOT NULL",
  input: "at TIMESTAMP NOT NULL",
  output: "user STRING NOT NULL, first TIMESTAMP NOT NULL, last TIMESTAMP NOT NULL, ended TIMESTAMP NOT NULL, events BIGINT NOT NULL",
});
