// Run without require(esm). A receipt is carried out once: by any copy of a decision, and by either form of core.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import * as esm from '@sluice/core'

const cjs = createRequire(import.meta.url)('@sluice/core')
assert.notEqual(esm.createLimiter, cjs.createLimiter, 'two copies of core')

/** A store elsewhere, which may be away. */
function remoteStore(form) {
  const memory = form.memoryStore()
  const store = { ...memory, asked: [], isAway: false }
  for (const op of ['apply', 'change', 'grant']) {
    store[op] = async (...args) => {
      store.asked.push(op)
      if (store.isAway) throw new Error('away')
      return memory[op](...args)
    }
  }
  return store
}

const consume = (limiter) => limiter.consume('ada')

/** Who holds the units of a decision, each with a store and a way to come by such a decision. */
const homes = {
  'the memory store': { make: (form) => ({ store: form.memoryStore() }), decide: consume },
  'another store': { make: (form) => ({ store: remoteStore(form) }), decide: consume },
  'a grant': {
    make: (form) => ({ store: remoteStore(form), prefetch: '5s' }),
    decide: (limiter, { store }) => unasked(limiter, store),
  },
  'units decided ahead': {
    make: (form) => ({ store: remoteStore(form), async: { maxUncounted: 50 } }),
    decide: (limiter, { store }) => unasked(limiter, store),
  },
  'an outage': {
    make: (form) => ({ store: remoteStore(form) }),
    async decide(limiter, { store }) {
      store.isAway = true
      for (let i = 0; i < 5; i += 1) await consume(limiter)
      const decision = await consume(limiter)
      assert.equal(decision.source, 'fallback')
      return decision
    },
  },
  'the pool of regions': {
    make(form) {
      const [local, global] = [remoteStore(form), remoteStore(form)]
      return { store: form.regionalStore({ region: 'eu', local, global, shares: { eu: 0.01 } }) }
    },
    async decide(limiter) {
      for (let i = 0; i < 5; i += 1) await consume(limiter)
      return consume(limiter)
    },
  },
}

/** Decides until nobody is asked about a request. */
async function unasked(limiter, store) {
  for (let i = 0; i < 100; i += 1) {
    const calls = store.asked.length
    const decision = await consume(limiter)
    if (store.asked.slice(calls).every((op) => op === 'grant')) return decision
  }
  throw new Error('each request was asked about')
}

console.warn = () => undefined
for (const [name, { make, decide }] of Object.entries(homes)) {
  for (const [deciding, refunding] of [
    [esm, esm],
    [esm, cjs],
    [cjs, esm],
    [cjs, cjs],
  ]) {
    for (const storing of [esm, cjs]) {
      const what = `${name}: ${[deciding, refunding, storing].map((form) => (form === esm ? 'esm' : 'cjs')).join(', ')}`
      const { store, ...policy } = make(storing)
      const policies = [{ name: 'shared', limit: 500, window: '1m', ...policy }]
      const limiter = deciding.createLimiter({ policies, store })
      const other = refunding.createLimiter({ policies, store })
      const decision = await decide(limiter, { store })
      assert.equal(decision.allowed, true, what)
      const before = await left(limiter)
      const copies = [decision, { ...decision }, structuredClone(decision)]
      const bare = decision.outcomes.map(({ receipt, ...outcome }) => ({
        ...outcome,
        receipt: { ...receipt },
      }))
      const refunds = []
      for (const copy of [...copies, { ...decision, outcomes: bare }]) {
        refunds.push(await other.refund(copy), await limiter.refund(copy))
      }
      assert.equal(refunds.indexOf(true), 0, `${what}: the other form gives the units back`)
      assert.equal(refunds.lastIndexOf(true), 0, `${what}: once`)
      assert.equal((await left(limiter)) - before, 1, `${what}: one unit is back`)
      await limiter.close()
    }
  }
}
console.log('receipts: ok')

async function left(limiter) {
  const { outcomes } = await limiter.peek('ada')
  return outcomes[0].remaining
}
