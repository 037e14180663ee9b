import { execFileSync } from 'node:child_process'

/**
 * Keeps all threads of processes on cores of their own: unpinned, the throughput of one subject varies twofold between runs. Chooses two of
 * the cores that this process may use. Pins nothing, and says so, where `taskset` or a second core is missing.
 */
export function choosePinning<Side extends string>(first: Side, second: Side) {
  const cores = allowedCores()
  const [core, otherCore] = cores
  const isPinned = otherCore !== undefined
  const pinTo = (list: readonly unknown[], pid: number): void => {
    if (isPinned) taskset('-a', '-c', '-p', list.join(','), `${pid}`)
  }
  return {
    note: isPinned
      ? `Pinned: ${first} to core ${core}, ${second} to core ${otherCore}.`
      : `${first} and ${second} were not pinned to cores, since there is ${core === undefined ? 'no `taskset`' : 'one core only'}: figures vary more.`,
    pin: (side: Side, pid: number) => pinTo([side === first ? core : otherCore], pid),
    /** Lets a process use all cores again that this one might use at first. */
    release: (pid: number) => pinTo(cores, pid),
  }
}

/** None without `taskset`, which Linux has in util-linux. */
function allowedCores(): readonly number[] {
  try {
    return coresIn(taskset('-c', '-p', `${process.pid}`))
  } catch {
    // No such program, or no permission: then nothing is pinned.
    return []
  }
}

/** Reads the list at the end of what `taskset -c -p` prints, such as `0,2-4`. */
function coresIn(printed: string): readonly number[] {
  const list = /([\d,-]+)\s*$/.exec(printed)?.[1] ?? ''
  return list
    .split(',')
    .filter(Boolean)
    .flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, index) => first + index)
    })
}

function taskset(...args: readonly string[]): string {
  return execFileSync('taskset', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}
