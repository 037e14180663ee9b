import { type Child, type ChildOptions, type Protocol, startChild } from '../../support/child.ts'
import type { Bench } from './bench.ts'
import type { Contender } from './rounds.ts'

export type Workers<P extends Protocol, C extends Contender> = ReturnType<typeof startWorkers<P, C>>

/** Starts a process for each contender, whose CPU and heap are its own. @param file relative to this one */
export function startWorkers<P extends Protocol, C extends Contender>(
  { cleanups }: Bench,
  file: string,
  { contenders, ...options }: ChildOptions<never> & { readonly contenders: readonly C[] },
) {
  const module = new URL(file, import.meta.url)
  const start = ({ name }: C) => startChild<P>(module, { ...options, cleanups, args: [name] })
  const workers = new Map(contenders.map((contender) => [contender, start(contender)]))
  return {
    contenders,
    all: [...workers.values()],
    of(contender: C): Child<P> {
      const worker = workers.get(contender)
      if (!worker) throw new Error(`no process was started for '${contender.name}'`)
      return worker
    },
    stop() {
      for (const worker of workers.values()) worker.stop()
    },
  }
}
