// What could depend on hashing, addresses, scheduling and garbage collection.

const numbers = Array.from({ length: 20 }, (_, at) => at);

/** What promises did of earlier rows; a handler is over before any runs. */
const settled = [];
let finalized = 0;
const registry = new FinalizationRegistry(() => (finalized += 1));

export const order = {
  "order: of a set": () => [...new Set(numbers.map((at) => (at * 7) % 20))],
  "order: of a set of objects": () => [...new Set(numbers.map((at) => ({ at })))].map(({ at }) => at),
  "order: of a map": () => [...new Map(numbers.map((at) => [`key ${at}`, at])).values()],
  "order: of properties": () => Object.keys(Object.fromEntries(numbers.map((at) => [`p${(at * 7) % 20}`, at]))),
  "order: of equals that are sorted": () => numbers.map((at) => ({ at, rest: at % 3 })).sort((left, right) => left.rest - right.rest).map(({ at }) => at),
  "order: of texts by language": () => ["z", "ä", "a", "Z"].sort((left, right) => left.localeCompare(right)),
  "order: of promises": () => {
    Promise.resolve().then(() => settled.push("then"));
    queueMicrotask(() => settled.push("microtask"));
    return settled.length;
  },
  "order: of what is collected": () => {
    registry.register({}, "gone");
    const weak = new WeakRef({});
    Array.from({ length: 10_000 }, () => ({}));
    return `${weak.deref() === undefined} ${finalized}`;
  },
  "order: of frames in a stack": () => new Error("here").stack.split("\n").length,
  "order: depth that recursion reaches": () => depth(0),
};

function depth(reached) {
  try {
    return depth(reached + 1);
  } catch {
    return reached;
  }
}
