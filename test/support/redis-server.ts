import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { leash, unrefAll } from './leash.ts'
import { findOrInstall } from './programs.ts'
import { type Reply, sendCommand } from './resp.ts'

export interface StartRedisOptions {
  /** More arguments for the server, which win over ours. @default [] */
  args?: readonly string[]
  /** The text of a configuration file, which a Sentinel has to have, since it keeps its state there. @default no file */
  config?: string
  /** The port to listen on, to bring a server back where clients expect it. @default a free one */
  port?: number
}

export interface RedisServer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly pid: number
  /** Sends one command over a socket of its own; an error reply rejects. */
  cli(...args: (string | number | Buffer)[]): Promise<Reply>
  /** Freezes the process (SIGSTOP): connections stay open and nothing answers. */
  pause(): void
  /** Ends a `pause`. */
  resume(): void
  /** Crashes the server (SIGKILL) and waits until it is gone. */
  kill(): Promise<void>
  /** Ends the server in an orderly way and waits until it is gone; does nothing the second time. */
  stop(): Promise<void>
}

const START_TIMEOUT_MS = 10_000
const STOP_TIMEOUT_MS = 3_000
const ATTEMPTS = 5

/** Starts an empty server of its own for one test, on a port of 127.0.0.1, in a temporary folder, without persistence. */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    try {
      return await launch(port, options)
    } catch (error) {
      const lostRace = error instanceof PortTaken && options.port === undefined
      if (!lostRace || attempt === ATTEMPTS) throw error
    }
  }
}

class PortTaken extends Error {}

async function launch(
  port: number,
  { args = [], config }: StartRedisOptions,
): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  const file = config === undefined ? [] : [join(folder, 'redis.conf')]
  if (config !== undefined) await writeFile(join(folder, 'redis.conf'), config)
  const base = [...file, '--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder]
  const child = spawn(
    findOrInstall('redis'),
    [...base, '--save', '', '--appendonly', 'no', ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const release = leash(child, folder)
  const log = collectOutput(child)
  const exited = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  }).then(async () => {
    release()
    await rm(folder, { recursive: true, force: true })
  })

  async function end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    child.ref()
    child.kill('SIGCONT')
    child.kill(signal)
    const patience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await exited
    clearTimeout(patience)
  }

  try {
    await untilItAnswers(child, port, log)
  } catch (error) {
    await end('SIGKILL')
    throw error
  }
  unrefAll(child)
  const stop = () => end('SIGTERM')
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    cli: (...command) => sendCommand(command, { port }),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill: () => end('SIGKILL'),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function collectOutput(child: ChildProcess): () => string {
  let text = ''
  const keepTail = (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(-4000)
  }
  child.stdout?.on('data', keepTail)
  child.stderr?.on('data', keepTail)
  return () => text
}

async function untilItAnswers(child: ChildProcess, port: number, log: () => string): Promise<void> {
  let spawnError: Error | undefined
  child.once('error', (error) => {
    spawnError = error
  })
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    if (spawnError !== undefined) throw spawnError
    if (child.exitCode !== null || child.signalCode !== null) {
      if (/address already in use/i.test(log())) throw new PortTaken(`Port ${port} is in use`)
      throw new Error(`The Redis server ended while starting:\n${log()}`)
    }
    if (await answersAs(child, port, log)) return
    await sleep(5)
  }
  throw new Error(`The Redis server did not answer within ${START_TIMEOUT_MS} ms:\n${log()}`)
}

/** True when it is our server that answers: another one can hold the port while ours is about to fail on it. */
async function answersAs(child: ChildProcess, port: number, log: () => string): Promise<boolean> {
  try {
    const info = String(await sendCommand(['INFO', 'server'], { port, timeoutMs: 1000 }))
    return info.includes(`process_id:${child.pid}\r\n`)
  } catch (error) {
    // With `--requirepass` it may not say who it is, so its log must do.
    return String(error).includes('NOAUTH') && /ready to accept connections/i.test(log())
  }
}
