/** Units that a process has admitted, by the clock of the machine. */
interface Admission {
  readonly key: string
  readonly atMs: number
  readonly units: number
}

/** What the processes of a fleet have told. */
export interface Told {
  readonly admissions: readonly Admission[]
  /** Times at which a reset of a key had been done, at the latest. */
  readonly resets: readonly { readonly key: string; readonly atMs: number }[]
}

export function readTold(texts: readonly string[]): Told {
  const admissions: Admission[] = []
  const resets = new Map<string, { key: string; atMs: number }>()
  for (const line of texts.flatMap((text) => text.split('\n'))) {
    const [what, key = '', at, units] = line.split(' ')
    // A line of a process that was killed may be cut.
    if (units === undefined) continue
    if (what === 'admit') admissions.push({ key, atMs: Number(at), units: Number(units) })
    // A process tells of a reset twice, under one number: by when it is done at the latest, and when it was done.
    if (what === 'reset') resets.set(units, { key, atMs: Number(at) })
  }
  return { admissions, resets: [...resets.values()] }
}

/**
 * The most units that any window of a key has seen. A reset gives what was admitted before it free.
 */
export function fullestWindow({ admissions, resets }: Told, key: string, windowMs: number): number {
  const times = admissions.filter((one) => one.key === key).sort((a, b) => a.atMs - b.atMs)
  const ends = resets.filter((one) => one.key === key).sort((a, b) => a.atMs - b.atMs)
  let [first, units, most, reset] = [0, 0, 0, 0]
  for (const { atMs, units: more } of times) {
    units += more
    while (reset < ends.length && (ends[reset]?.atMs ?? 0) < atMs) reset += 1
    const freeUntil = ends[reset - 1]?.atMs ?? Number.NEGATIVE_INFINITY
    for (;;) {
      const oldest = times[first]
      if (!oldest || (oldest.atMs > atMs - windowMs && oldest.atMs > freeUntil)) break
      units -= oldest.units
      first += 1
    }
    most = Math.max(most, units)
  }
  return most
}
