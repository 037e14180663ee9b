import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { type RunningExample, startScript } from './start-example.ts'

export interface Ask {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
  readonly tookMs: number
}

/** Runs code blocks as programs, each with a Redis that is empty. */
export class ExampleRunner {
  readonly redis: RedisServer
  readonly #folder: string
  readonly #running: RunningExample[] = []
  #started = 0

  private constructor(redis: RedisServer, folder: string) {
    this.redis = redis
    this.#folder = folder
  }

  /** @param around the workspace where the imports of the examples resolve */
  static async create(around: string): Promise<ExampleRunner> {
    const redis = await startRedis()
    const folder = await mkdtemp(join(around, '.examples-'))
    // As applications of Nest have it.
    const compilerOptions = { experimentalDecorators: true }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    return new ExampleRunner(redis, folder)
  }

  /** What an example that listens on PORT answers, one request after another. */
  async answers(example: string, requests: readonly Ask[]): Promise<readonly Answer[]> {
    const { origin: base } = await this.serve(example)
    await fetch(`${base}/health`)
    const answers: Answer[] = []
    for (const { path, ...init } of requests) {
      const startedAt = performance.now()
      const response = await fetch(base + path, init)
      const { status, headers } = response
      const body = await response.text()
      answers.push({ status, headers, body, tookMs: performance.now() - startedAt })
    }
    return answers
  }

  /** Starts an example, and waits until it listens on PORT, without a request. */
  async serve(example: string): Promise<URL> {
    const port = await freePort()
    await this.#start(example, { PORT: String(port) })
    await until('it listens', async () => {
      const socket = connect(port, '127.0.0.1')
      try {
        await once(socket, 'connect')
        return true
      } finally {
        socket.destroy()
      }
    })
    return new URL(`http://127.0.0.1:${port}/`)
  }

  /** The first lines that an example prints. */
  async lines(example: string, count: number): Promise<readonly string[]> {
    const script = await this.#start(example, {})
    const text = await script.printed(new RegExp(`^(.*\\n){${count}}`))
    return text.trim().split('\n')
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((example) => example.stop()))
    await rm(this.#folder, { recursive: true })
    await this.redis.stop()
  }

  async #start(example: string, env: NodeJS.ProcessEnv): Promise<RunningExample> {
    this.#started += 1
    const script = join(this.#folder, `example-${this.#started}.ts`)
    await this.redis.cli('FLUSHALL')
    await writeFile(script, example)
    const TSX_TSCONFIG_PATH = join(this.#folder, 'tsconfig.json')
    const started = startScript(script, { REDIS_URL: this.redis.url, TSX_TSCONFIG_PATH, ...env })
    this.#running.push(started)
    return started
  }
}
