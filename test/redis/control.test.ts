import { setTimeout as sleep } from 'node:timers/promises'
import { controlled, createLimiter, type Store } from '@sluice/core'
import { openPolicies } from '@sluice/policies'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { policyFolder } from '../policies/policy-folder.ts'
import { checkOf } from '../support/patient-limiter.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

type Send = (name: string, args: readonly string[]) => Promise<unknown>

/** Puts a function in the place of the one by which a client sends commands. */
const clients = {
  ioredis({ url }: RedisServer, through: (send: Send) => Send) {
    const client = new Redis(url)
    const call = client.call.bind(client)
    const send = through((name, args) => call(name, ...args))
    client.call = (name: string, ...args: unknown[]) => send(name, args.map(String))
    return { client, ping: () => client.ping(), close: () => client.disconnect() }
  },
  async 'node-redis'({ url }: RedisServer, through: (send: Send) => Send) {
    const client = await createClient({ url }).connect()
    const command = client.sendCommand.bind(client)
    const send = through((name, args) => command([name, ...args]))
    const spied = Object.assign(client, {
      sendCommand: ([name = '', ...args]: string[]) => send(name, args),
    })
    return { client: spied, ping: () => client.ping(), close: () => client.destroy() }
  },
}

/** A change, and what tells whether it was made. */
interface Change {
  make(): Promise<unknown>
  isMade(): Promise<boolean>
}

const deadlineMs = 500
const note = { author: 'ada', reason: 'a test' }

const policy = { name: 'p', limit: 5, window: '1h' } as const

/** A limiter that prepares and looks, and one whose changes have little time. */
function limitersOver(store: Store) {
  const [limiter, hasty] = [60_000, deadlineMs].map((deadlineMs) =>
    createLimiter({
      ...{ ...policy, store, penalty: { after: 'never', name: 'blocks' }, deadlineMs },
      observers: { onStoreError: () => undefined },
    }),
  )
  if (!limiter || !hasty) throw new Error('no limiters')
  return { limiter, hasty }
}

async function policiesOver(store: Store) {
  const file = await policyFolder('policies: [{ name: p, limit: 5, window: 1h }]')
  const policies = await openPolicies({ file, store })
  onTestFinished(() => policies.close())
  return policies
}

type MakeChange = (store: Store, server: RedisServer) => Promise<Change>

/** Each by the least that its users call. */
const changes: Record<string, MakeChange> = {
  async reset(store) {
    const { limiter, hasty } = limitersOver(store)
    await limiter.consume('k')
    return {
      make: () => hasty.reset('k'),
      isMade: async () => (await limiter.peek('k')).outcomes[0]?.remaining === 5,
    }
  },
  async block(store) {
    const { limiter, hasty } = limitersOver(store)
    await limiter.consume('k')
    return {
      make: () => hasty.block('k', '1h'),
      isMade: async () => (await limiter.peek('k')).allowed === false,
    }
  },
  async forgetPolicy(store) {
    const { limiter, hasty } = limitersOver(store)
    await limiter.consume('k')
    const { policy } = checkOf(hasty.policies[0])
    return {
      make: () =>
        controlled(deadlineMs, (control) => store.keys?.forgetPolicy?.(policy, { control })),
      isMade: async () => (await limiter.peek('k')).outcomes[0]?.remaining === 5,
    }
  },
  async 'policies.set'(store) {
    const policies = await policiesOver(store)
    return {
      make: () => policies.set({ policy: 'p', field: 'limit', value: 6 }, note),
      isMade: async () => (await store.documents?.read('default'))?.text.includes('6') === true,
    }
  },
  async runScript(store, server) {
    const text = "redis.call('SET', KEYS[1], #ARGV)"
    return {
      make: () =>
        controlled(deadlineMs, (control) => store.scripts?.run(text, ['made'], ['yes'], control)),
      isMade: async () => (await server.cli('GET', 'made')) !== null,
    }
  },
}

describe.each(Object.entries(clients))('a change through %s', (name, connect) => {
  /** A change, and the Redis of its own that it is made in. @param onTime what happens before the change is sent */
  async function over(makeChange: MakeChange, onTime: (server: RedisServer) => unknown) {
    const server = await startRedis()
    let isWatched = false
    const { client, ping, close } = await connect(server, (send) => async (name, args) => {
      const reply = await send(name, args)
      const asksTime = isWatched && name === 'eval' && /'TIME'.{0,99}$/.test(args[0] ?? '')
      if (asksTime) await onTime(server)
      return reply
    })
    onTestFinished(() => server.stop())
    onTestFinished(close)
    const store = redisStore(client, { prefix: name, heartbeatMs: 0, denialTtlMs: 0 })
    const { make, isMade } = await makeChange(store, server)
    isWatched = true
    return {
      make,
      server,
      async isMade() {
        // What was sent before has been answered by then.
        await ping()
        return isMade()
      },
    }
  }

  /** Each change waits for a deadline, so all are made at once. */
  async function forAllChanges(
    prove: (makeChange: MakeChange, what: string) => Promise<void>,
  ): Promise<void> {
    await Promise.all(Object.entries(changes).map(([what, makeChange]) => prove(makeChange, what)))
  }

  it('is never made when Redis froze before it was sent', async () => {
    await forAllChanges(async (makeChange, what) => {
      const { make, isMade, server } = await over(makeChange, () => undefined)
      await freeze(server)
      await expect(make(), what).rejects.toMatchObject({ code: 'SLUICE_NOT_DONE' })
      server.resume()
      expect(await isMade(), what).toBe(false)
      await until(`${what} is made`, async () => {
        await make()
        return isMade()
      })
    })
  })

  it('is not made after its deadline when Redis froze with it on the way', async () => {
    await forAllChanges(async (makeChange, what) => {
      const { make, isMade, server } = await over(makeChange, freeze)
      await expect(make(), what).rejects.toMatchObject({ code: 'SLUICE_UNANSWERED' })
      server.resume()
      expect(await isMade(), what).toBe(false)
    })
  })
})

async function freeze(server: RedisServer): Promise<void> {
  server.pause()
  await sleep(10)
}
