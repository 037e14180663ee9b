export interface FigureLabel {
  readonly label: string
  /** Nothing where it is neither. */
  readonly better?: 'higher' | 'lower'
  /** Whether a case is summed up by the ratio of it. */
  readonly main?: boolean
  /** Whether it is what is left of two measurements: in a single round mostly noise, which no ratio may divide by. */
  readonly difference?: boolean
}

/** Every figure that is shown, in the order of columns. */
export const figureLabels: Readonly<Record<string, FigureLabel>> = {
  perSecond: { label: 'per second', better: 'higher', main: true },
  freshPerSecond: { label: 'fresh keys per second', better: 'higher' },
  nodeCpuUs: { label: 'Node CPU µs', better: 'lower', main: true },
  addedCpuUs: { label: 'above bare µs', better: 'lower', main: true, difference: true },
  redisCpuUs: { label: 'Redis CPU µs', better: 'lower', main: true },
  bothCpuUs: { label: 'both CPU µs', better: 'lower' },
  redisCommands: { label: 'Redis commands', better: 'lower' },
  p50Ms: { label: 'p50 ms', better: 'lower' },
  p99Ms: { label: 'p99 ms', better: 'lower' },
  callUs: { label: 'median call µs', better: 'lower' },
  usedShare: { label: 'admitted ÷ limit', better: 'higher' },
  allowedShare: { label: 'allowed' },
  bytesPerKey: { label: 'bytes per key', better: 'lower' },
  bytesPerFullKey: { label: 'bytes per full key', better: 'lower' },
  bytesPerUnit: { label: 'bytes per recorded request', better: 'lower' },
  longestPauseMs: { label: 'longest pause ms', better: 'lower', main: true },
}

/** Three digits that mean something, and no more. */
export function showNumber(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 1_000) return Math.round(value).toLocaleString('en-US')
  if (size === 0) return '0'
  if (size < 0.001) return value.toExponential(0)
  return String(Number(value.toPrecision(3)))
}
