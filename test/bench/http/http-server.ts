import { Redis } from 'ioredis'
import { answerParent } from '../../support/child.ts'
import type { Quota } from '../subjects/algorithm-policy.ts'
import { httpContenders } from './http-contenders.ts'

export interface ListenInput extends Quota {
  readonly redisPort: number
  readonly prefix: string
}

/** What a server, which holds one contender, can be asked. */
export type HttpProtocol = {
  /** Serves under a quota, on a port of its own, beside those before. */
  listen: { input: ListenInput; output: number }
  /** The CPU that the process has taken so far, in µs, and how often its store failed. */
  cpu: { input: undefined; output: { cpuUs: number; storeErrors: number } }
}

const [name] = process.argv.slice(2)
let storeErrors = 0

answerParent<HttpProtocol>({
  async listen({ redisPort, ...quota }) {
    const contender = httpContenders.find((one) => one.name === name)
    if (!contender) throw new Error(`there is no contender '${name}'`)
    return contender.listen({
      ...quota,
      ...(contender.store === 'redis' && { redis: new Redis(redisPort) }),
      onStoreError: () => {
        storeErrors += 1
      },
    })
  },

  cpu() {
    const { user, system } = process.cpuUsage()
    return { cpuUs: user + system, storeErrors }
  },
})
