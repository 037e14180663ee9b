export const algorithmNames = [
  'sliding-log',
  'sliding-counter',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
  'concurrency',
] as const

/** What the policies of users count by. */
export type AlgorithmName = (typeof algorithmNames)[number]

/** With the one that only the option `penalty` brings. */
export type CountingName = AlgorithmName | 'penalty'
