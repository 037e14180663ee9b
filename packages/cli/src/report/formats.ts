// Number formats, for the terminal and the report's page.

/** `12,345` */
export function countText(count: number): string {
  return count.toLocaleString('en-US')
}

/** A share in percent: `0.4%`, or `<0.1%` for a share just above zero. */
export function shareText(part: number, all: number): string {
  if (part === 0 || all === 0) return '0%'
  const percent = (part / all) * 100
  return percent < 0.1 ? '<0.1%' : `${Number(percent.toFixed(1))}%`
}

/** `944 KiB` */
export function bytesText(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = Math.min(Math.floor(Math.log2(Math.max(1, value)) / 10), units.length - 1)
  return `${Number((value / 1_024 ** power).toPrecision(3))} ${units[power]}`
}

/** `2026-11-21 10:00:00`, in UTC. */
export function timeText(timeMs: number): string {
  const text = new Date(timeMs).toISOString()
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
  [1, 'ms'],
] as const

/** The two largest units: `1h 5m`, `15s`, `250ms`. */
export function durationText(durationMs: number): string {
  const parts: string[] = []
  let rest = Math.round(durationMs)
  for (const [unitMs, unit] of units) {
    const count = Math.floor(rest / unitMs)
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`)
    rest -= count * unitMs
  }
  return parts.join(' ') || '0s'
}
