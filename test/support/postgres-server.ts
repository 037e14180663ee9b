import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from './free-port.ts'
import { leash, unrefAll } from './leash.ts'
import { findOrInstall } from './programs.ts'

export interface PostgresServer {
  readonly url: string
  /** Freezes all processes of the server (SIGSTOP): connections stay open and nothing answers. */
  pause(): void
  resume(): void
  /** Crashes the server, or shuts it down, and starts it again on the same port. */
  restart(how: 'crash' | 'shutdown'): Promise<void>
  stop(): Promise<void>
}

const startTimeoutMs = 20_000

/** Starts an empty server of its own, on a free port of 127.0.0.1, in a temporary folder, which never waits for a disk. */
export async function startPostgres(): Promise<PostgresServer> {
  const bin = dirname(findOrInstall('postgres'))
  const folder = await mkdtemp(join(tmpdir(), 'sluice-postgres-'))
  const user = ownUser()
  if (user) await chown(folder, user.uid, user.gid)
  const setUp = ['-D', folder, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync']
  execFileSync(join(bin, 'initdb'), setUp, { ...user, cwd: folder, stdio: 'pipe' })
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  let running = spawnServer()

  function spawnServer() {
    const child = spawn(
      join(bin, 'postgres'),
      [
        '-D',
        folder,
        '-h',
        '127.0.0.1',
        '-p',
        `${port}`,
        '-k',
        '',
        '-F',
        '-c',
        'max_connections=30',
      ],
      { ...user, cwd: folder, stdio: 'ignore' },
    )
    const release = leash(child, folder)
    const exited = once(child, 'exit')
    unrefAll(child)
    return { child, release, exited }
  }

  async function end(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const { child, release, exited } = running
    child.ref()
    child.kill(signal)
    await exited
    release()
  }

  async function stop(): Promise<void> {
    // The immediate shutdown: there is nothing to keep.
    await end('SIGQUIT')
    await rm(folder, { recursive: true, force: true })
  }

  /** The server has a process for each connection. */
  function signalAll(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const { pid = 0 } = running.child
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid}`], { encoding: 'utf8' })
    for (const each of [pid, ...children.trim().split(/\s+/).map(Number)])
      process.kill(each, signal)
  }

  try {
    await untilItAnswers(url)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url,
    stop,
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    async restart(how) {
      // To its data, the immediate shutdown is a crash: it writes no checkpoint.
      await end(how === 'crash' ? 'SIGQUIT' : 'SIGINT')
      running = spawnServer()
      await untilItAnswers(url)
    },
  }
}

async function untilItAnswers(url: string): Promise<void> {
  const deadline = Date.now() + startTimeoutMs
  for (;;) {
    const client = new Client({ connectionString: url })
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      // It is still starting.
      if (Date.now() > deadline) throw error
      await sleep(20)
    }
  }
}

/** The server refuses to run as root: then it runs as the user that its package has made. */
export function ownUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}
