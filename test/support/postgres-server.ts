import { execFileSync } from 'node:child_process'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { freePort } from './free-port.ts'
import { findOrInstall } from './programs.ts'
import { startServer } from './server-process.ts'

export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>

/** Starts an empty server of its own, on a free port of 127.0.0.1, in a temporary folder, which never waits for a disk. */
export async function startPostgres() {
  const bin = dirname(findOrInstall('postgres'))
  const folder = await mkdtemp(join(tmpdir(), 'sluice-postgres-'))
  const user = ownUser()
  if (user) await chown(folder, user.uid, user.gid)
  const setUp = ['-D', folder, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync']
  execFileSync(join(bin, 'initdb'), setUp, { ...user, cwd: folder, stdio: 'pipe' })
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const settings = ['-D', folder, '-h', '127.0.0.1', '-p', `${port}`, '-k', '', '-F']
  const launch = () =>
    startServer({
      ...{ program: join(bin, 'postgres'), folder, startTimeoutMs: 20_000, stopTimeoutMs: 20_000 },
      args: [...settings, '-c', 'max_connections=30'],
      options: { ...user, cwd: folder, stdio: 'ignore' },
      isUp: () => answers(url),
    })
  let running = await launch()

  async function stop(): Promise<void> {
    // The immediate shutdown: there is nothing to keep.
    await running.end('SIGQUIT')
    await rm(folder, { recursive: true, force: true })
  }

  /** The server has a process for each connection. */
  function signalAll(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const { pid } = running
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid}`], { encoding: 'utf8' })
    for (const each of [pid, ...children.trim().split(/\s+/).map(Number)])
      process.kill(each, signal)
  }

  return {
    url,
    stop,
    /** Freezes the server: connections stay open and nothing answers. */
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    /** Starts the server again on its port. */
    async restart(how: 'crash' | 'shutdown') {
      // To its data, the immediate shutdown is a crash: it writes no checkpoint.
      await running.end(how === 'crash' ? 'SIGQUIT' : 'SIGINT')
      running = await launch()
    },
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url })
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    // It is still starting.
    return false
  }
}

/** The server refuses to run as root: then it runs as the user that its package has made. */
export function ownUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}
