export const algorithmNames = [
  'sliding-log',
  'sliding-counter',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
  'concurrency',
] as const

export type AlgorithmName = (typeof algorithmNames)[number]
