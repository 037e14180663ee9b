export const algorithmNames = ['sliding-log', 'sliding-counter', 'fixed-window'] as const

export type AlgorithmName = (typeof algorithmNames)[number]
