import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/http/adapter'
import { openPolicies } from '@sluice/policies'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { exactRouting, exchange } from '../http/exchange.ts'
import { answerParent, tellParent } from '../support/child.ts'
import type { FleetProtocol, FleetTold } from './fleet.ts'

// One process of a fleet: it decides requests all the time, and tells of each version that it runs.
// argv: the policy file, the URL of Redis, the key name that the code gives ('' for none).

const [file = '', url = '', keyName = ''] = process.argv.slice(2)
const client = new Redis(url, { maxRetriesPerRequest: null })
client.on('error', () => undefined)
const store = redisStore(client, { prefix: 'fleet' })

const policies = await openPolicies({
  file,
  store,
  observers: {
    onVersion: (version) => tell({ type: 'version', version, at: Date.now() }),
    onRefused: ({ version }) => tell({ type: 'refused', version, at: Date.now() }),
  },
})

const mixed: unknown[] = []
let decided = 0
const guard = createGuard<object>(
  {
    ...{ policies, store, deadlineMs: 5_000, fallback: memoryStore(), key: () => 'one' },
    ...(keyName && { keys: { [keyName]: () => 'two' } }),
    observers: {
      onDecision({ decision }) {
        decided += 1
        // Both limits of a version are equal: a mixture would have two.
        const [one, other] = decision.outcomes.map(({ limit }) => limit)
        if (one !== other) mixed.push({ one, other })
      },
    },
  },
  { where: 'the fleet', routing: exactRouting },
)

let isRunning = true

async function load(): Promise<void> {
  while (isRunning) {
    await guard.check(exchange())
    await new Promise((resolve) => setTimeout(resolve, 4))
  }
}

function tell(told: FleetTold): void {
  tellParent(told)
}

const options = { author: String(process.pid), reason: 'a test' }

answerParent<FleetProtocol>({
  ready: () => undefined,
  async limit(value) {
    const entries = ['one', 'other'].map((policy) => ({ policy, field: 'limit', value }) as const)
    return { version: await policies.set(entries, options), at: Date.now() }
  },
  async report() {
    const status = await policies.status()
    const { outcomes } = await guard.limiter.peek('one')
    return { decided, mixed, used: outcomes.map(({ used = Number.NaN }) => used), status }
  },
  rest() {
    isRunning = false
    return undefined
  },
})
void load()
