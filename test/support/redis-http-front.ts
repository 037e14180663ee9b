import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import { serve } from './serve.ts'

type FrontAnswer = readonly [status: number, body: unknown]

/** Passes commands on to a Redis that arrive by HTTP, as JSON, one a request. */
export async function redisHttpFront(redisUrl: string) {
  const redis = new Redis(redisUrl)
  redis.on('error', () => undefined)
  const token = 'a-token'

  async function answerTo(request: IncomingMessage): Promise<FrontAnswer> {
    const command: unknown = JSON.parse(await text(request))
    if (request.headers.authorization !== `Bearer ${token}`) return [401, { error: 'WRONGPASS' }]
    if (!isCommand(command)) return [400, { error: 'ERR a command is a list of texts' }]
    const [name, ...args] = command
    if (front.answer) return front.answer()
    try {
      return [200, { result: await redis.call(name, ...args) }]
    } catch (error) {
      return [400, { error: error instanceof Error ? error.message : String(error) }]
    }
  }

  const { url, close } = await serve(async (request, response) => {
    const [status, body] = await answerTo(request)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  })
  const front = {
    url,
    token,
    /** Answers in place of Redis from now on; `undefined` lets Redis answer again. */
    answer: undefined as (() => Promise<FrontAnswer>) | undefined,
    async [Symbol.asyncDispose]() {
      await close()
      redis.disconnect()
    },
  }
  return front
}

function isCommand(value: unknown): value is [string, ...string[]] {
  if (!Array.isArray(value) || value.length === 0) return false
  return value.every((part) => typeof part === 'string')
}
