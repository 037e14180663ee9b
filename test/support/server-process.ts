import { type SpawnOptions, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { leash, unrefAll } from './leash.ts'

interface ServerStart {
  readonly program: string
  readonly args: readonly string[]
  /** Removed when this process dies. */
  readonly folder: string
  readonly options?: SpawnOptions
  /** Whether it answers. Gets its process ID, and the end of what it has printed. */
  isUp(pid: number, log: string): boolean | Promise<boolean>
  /** @default 10_000 */
  readonly startTimeoutMs?: number
  /** @default 3_000 */
  readonly stopTimeoutMs?: number
}

/**
 * Starts a server in a process that never outlives this one, and waits until it answers. @throws with what it has printed when it never
 * does
 */
export async function startServer(start: ServerStart) {
  const { program, args, folder, startTimeoutMs = 10_000, stopTimeoutMs = 3_000 } = start
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...start.options })
  const release = leash(child, folder)
  let log = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      log = `${log}${chunk}`.slice(-4_000)
    })
  }
  let problem: string | undefined
  const exited = new Promise<void>((resolve) => {
    child.once('error', ({ message }) => {
      problem = message
      resolve()
    })
    child.once('exit', () => {
      problem = 'it ended while starting'
      resolve()
    })
  }).then(release)

  /** Ends the server, frozen or not, and waits until it is gone. Kills it when it takes too long. */
  async function end(signal: NodeJS.Signals): Promise<void> {
    child.ref()
    child.kill('SIGCONT')
    child.kill(signal)
    const patience = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await exited
    clearTimeout(patience)
  }

  const deadline = Date.now() + startTimeoutMs
  while (!problem && !(await start.isUp(child.pid ?? 0, log))) {
    if (Date.now() > deadline) problem = `it did not answer within ${startTimeoutMs} ms`
    else await sleep(5)
  }
  if (problem) {
    await end('SIGKILL')
    throw new Error(`${program}: ${problem}\n${log}`)
  }
  unrefAll(child)
  const signal = (name: NodeJS.Signals) => void child.kill(name)
  return { pid: child.pid ?? 0, signal, end }
}
