// What time it is, and how long something takes.

/** The time while the component was built. */
const atStart = Date.now();

/** Alarms of earlier rows; a handler is over before any rings. */
const rung = [];

export const clocks = {
  "time: now": () => Date.now(),
  "time: now, as a text": () => new Date().toString(),
  "time: now, in local words": () => new Date().toLocaleString(),
  "time: zone": () => new Date().getTimezoneOffset(),
  "time: of a busy loop": () => elapsed(() => spin(100_000)),
  "time: of garbage": () => elapsed(() => Array.from({ length: 10_000 }, () => ({}))),
  "time: which of two alarms is first": () => {
    setTimeout(() => rung.push("late"), 3_600_000);
    setTimeout(() => rung.push("early"), 1);
    return rung.length;
  },
  "time: of a date after another": () => elapsed(() => new Date()),
  "frozen: time at start": () => atStart,
  "frozen: origin of performance": () => performance.timeOrigin,
};

function elapsed(what) {
  const start = performance.now();
  what();
  return performance.now() - start;
}

function spin(rounds) {
  let sum = 0;
  for (let at = 0; at < rounds; at += 1) sum ^= at;
  return sum;
}
