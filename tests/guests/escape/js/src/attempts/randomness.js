// Numbers that nobody can foresee.

export const randomness = {
  "random: number": () => Math.random(),
  "random: another number": () => Math.random(),
  "random: bytes": () => crypto.getRandomValues(new Uint8Array(16)),
  "random: identifier": () => crypto.randomUUID(),
  "random: order": () => [1, 2, 3, 4, 5, 6, 7, 8].sort(() => Math.random() - 0.5),
};
