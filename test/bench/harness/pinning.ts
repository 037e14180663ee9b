import { execFileSync } from 'node:child_process'

/** Keeps processes on cores of their own. Unpinned, the throughput of one subject varies twofold between runs. */
export interface Pinning {
  /** What was done, for the output. */
  readonly note: string
  /** Pins all threads of a process. */
  pin(side: 'node' | 'redis', pid: number): void
}

/** Chooses two of the cores that this process may use. Pins nothing, and says so, where `taskset` or a second core is missing. */
export function choosePinning(): Pinning {
  const cores = allowedCores()
  const [node, redis] = cores
  if (node === undefined || redis === undefined) {
    const reason =
      cores.length === 0 ? 'there is no `taskset`' : 'this process may use one core only'
    return {
      note: `Node and Redis were not pinned to cores, since ${reason}: figures vary more.`,
      pin: () => undefined,
    }
  }
  const coreOf = { node, redis }
  return {
    note: `Node was pinned to core ${node}, and Redis to core ${redis}.`,
    pin: (side, pid) => void taskset('-a', '-c', '-p', `${coreOf[side]}`, `${pid}`),
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
export function coresIn(printed: string): readonly number[] {
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
