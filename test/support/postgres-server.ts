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
  const child = spawn(
    join(bin, 'postgres'),
    ['-D', folder, '-h', '127.0.0.1', '-p', `${port}`, '-k', '', '-F', '-c', 'max_connections=20'],
    { ...user, cwd: folder, stdio: 'ignore' },
  )
  const release = leash(child, folder)
  const exited = once(child, 'exit')
  unrefAll(child)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`

  async function stop(): Promise<void> {
    child.ref()
    // The immediate shutdown: there is nothing to keep.
    child.kill('SIGQUIT')
    await exited
    release()
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await untilItAnswers(url)
  } catch (error) {
    await stop()
    throw error
  }
  return { url, stop }
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
function ownUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}
