import type { RequestHandler } from 'express'
import { Redis } from 'ioredis'
import { answerParent } from '../harness/child.ts'
import { listen, sluiceMiddleware } from '../http/express-apps.ts'
import { clientHeader } from '../http/http-contender.ts'
import { type AlgorithmName, policyFor, type Quota } from '../subjects/algorithm-policy.ts'
import type { Seen } from './judge.ts'

export interface ReplayInput extends Quota {
  readonly algorithm: AlgorithmName
  /** Memory when left out. */
  readonly redisPort?: number
}

/** What the server, which serves one algorithm a port, can be asked. */
export type ReplayProtocol = {
  listen: { input: ReplayInput; output: number }
  /** What one algorithm was asked since it was last asked for, in the order of arrival. */
  journal: { input: AlgorithmName; output: readonly Seen[] }
}

interface Entry {
  client: string
  atMs: number
  passedAtMs: number | undefined
  delayMs: number
}

const journals = new Map<AlgorithmName, Entry[]>()
let storeError: Error | undefined

answerParent<ReplayProtocol>({
  async listen({ algorithm, redisPort, ...quota }) {
    const limiter = sluiceMiddleware({
      ...quota,
      prefix: `bench.replay.${algorithm}`,
      policy: policyFor(algorithm, quota),
      ...(redisPort === undefined ? {} : { redis: new Redis(redisPort) }),
      onStoreError: (error) => {
        storeError = error
      },
    })
    const { before, after } = keepJournal(algorithm)
    const { port } = await listen([before, limiter, after])
    return port
  },

  journal(algorithm) {
    if (storeError) throw storeError
    const journal = journals.get(algorithm) ?? []
    journals.set(algorithm, [])
    return journal
  },
})

/** Notes when a request comes, before the limiter, and when it goes on, after it. */
function keepJournal(algorithm: AlgorithmName): { before: RequestHandler; after: RequestHandler } {
  const entries = new WeakMap<object, Entry>()
  return {
    before(request, _response, next) {
      const entry: Entry = {
        client: request.get(clientHeader) ?? '',
        atMs: Date.now(),
        passedAtMs: undefined,
        delayMs: 0,
      }
      entries.set(request, entry)
      journals.set(algorithm, journals.get(algorithm) ?? [])
      journals.get(algorithm)?.push(entry)
      next()
    },
    after(request, _response, next) {
      const entry = entries.get(request)
      if (entry) {
        entry.passedAtMs = Date.now()
        entry.delayMs = request.rateLimit?.delayMs ?? 0
      }
      next()
    },
  }
}
