/** The labels of all figures that are shown, in the order of columns. */
export const figureLabels: Readonly<Record<string, string>> = {
  perSecond: 'per second',
  freshPerSecond: 'fresh keys per second',
  nodeCpuUs: 'Node CPU µs',
  addedCpuUs: 'above bare µs',
  redisCpuUs: 'Redis CPU µs',
  bothCpuUs: 'both CPU µs',
  redisCommands: 'Redis commands',
  p50Ms: 'p50 ms',
  p99Ms: 'p99 ms',
  callUs: 'median call µs',
  usedShare: 'admitted ÷ limit',
  allowedShare: 'allowed',
  bytesPerKey: 'bytes per key',
  bytesPerFullKey: 'bytes per full key',
  bytesPerUnit: 'bytes per recorded request',
  longestPauseMs: 'longest pause ms',
}

/** The figures whose ratios sum up a case. */
export const mainFigures = ['perSecond', 'nodeCpuUs', 'addedCpuUs', 'redisCpuUs', 'longestPauseMs']

/** What is left of two measurements: in a single round mostly noise, which no ratio may divide by. */
export const difference = 'addedCpuUs'

/** Three digits that mean something, and no more. */
export function showNumber(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 1_000) return Math.round(value).toLocaleString('en-US')
  if (size === 0) return '0'
  if (size < 0.001) return value.toExponential(0)
  return String(Number(value.toPrecision(3)))
}
