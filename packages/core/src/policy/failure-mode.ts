/**
 * The mode while the store fails: `fallback` decides in bounded local memory, `open` lets
 * everything pass, `closed` refuses everything (503).
 */
export type FailureMode = 'fallback' | 'open' | 'closed'

export const failureModes: readonly FailureMode[] = ['fallback', 'open', 'closed']
