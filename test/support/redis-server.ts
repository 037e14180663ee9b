import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { findOrInstall } from './programs.ts'
import { sendCommand } from './resp.ts'
import { startServer } from './server-process.ts'

export interface StartRedisOptions {
  /** More arguments for the server, which win over ours. @default [] */
  args?: readonly string[]
  /** The text of a configuration file, which a Sentinel has to have, since it keeps its state there. @default no file */
  config?: string
  /** The port to listen on, to bring a server back where clients expect it. @default a free one */
  port?: number
}

export type RedisServer = Awaited<ReturnType<typeof launch>>

const attempts = 5

/** Starts an empty server of its own for one test, on a port of 127.0.0.1, in a temporary folder, without persistence. */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    try {
      return await launch(port, options)
    } catch (error) {
      const lostRace = options.port === undefined && /address already in use/i.test(String(error))
      if (!lostRace || attempt === attempts) throw error
    }
  }
}

async function launch(port: number, { args = [], config }: StartRedisOptions) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  const file = config === undefined ? [] : [join(folder, 'redis.conf')]
  if (config !== undefined) await writeFile(join(folder, 'redis.conf'), config)
  const base = [...file, '--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder]
  const clear = () => rm(folder, { recursive: true, force: true })
  const server = await startServer({
    ...{ program: findOrInstall('redis'), folder },
    args: [...base, '--save', '', '--appendonly', 'no', ...args],
    isUp: (pid, log) => answersAs(pid, port, log),
  }).catch(async (error) => {
    await clear()
    throw error
  })
  const end = async (signal: NodeJS.Signals) => {
    await server.end(signal)
    await clear()
  }
  const stop = () => end('SIGTERM')
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pid: server.pid,
    cli: (...command: (string | number | Buffer)[]) => sendCommand(command, { port }),
    /** Freezes the process: connections stay open and nothing answers. */
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    /** Crashes the server, and waits until it is gone. */
    kill: () => end('SIGKILL'),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** True when it is our server that answers: another one can hold the port while ours is about to fail on it. */
async function answersAs(pid: number, port: number, log: string): Promise<boolean> {
  try {
    const info = String(await sendCommand(['INFO', 'server'], { port, timeoutMs: 1000 }))
    return info.includes(`process_id:${pid}\r\n`)
  } catch (error) {
    // With `--requirepass` it may not say who it is, so its log must do.
    return String(error).includes('NOAUTH') && /ready to accept connections/i.test(log)
  }
}
