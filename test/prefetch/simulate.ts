// What prefetch costs a key that is always full: the share of its limit that passes, by the number of processes. All code is the
// product's own, with one simulated clock. `npm run simulate:prefetch` prints a table and draws docs/images/prefetch-utilisation.svg.

import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  type CheckLimiter,
  createCheckLimiter,
  type Decision,
  isPromise,
  memoryStore,
} from '@sluice/core'
import { storeThrough } from '../support/store-through.ts'

const limit = 10_000
const windowMs = 10_000
const stepMs = 10
const stepsOfWindow = windowMs / stepMs
/** The longest time (ms) that a process remembers a denial, as on Redis. */
const denialTtlMs = 1_000
/** Windows that are measured, after two that fill the key. */
const windows = 16
/** Requests for each unit of the limit. */
const overload = 2

let nowMs = 1_795_195_800_000
let seed = 1
const timers: { atMs: number; run: () => void }[] = []
Date.now = () => nowMs
performance.now = () => nowMs - 1_795_195_000_000
Math.random = () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}
Object.assign(globalThis, {
  setTimeout: (run: () => void, delayMs: number) => timers.push({ atMs: nowMs + delayMs, run }),
})

interface Setting {
  readonly processes: number
  /** 0: all processes get as many requests; 1: the n-th gets 1/n of the first one's. */
  readonly skew: number
  readonly prefetchMs: number
  /** Number that the size rule takes for the number of processes. */
  readonly instances: number
}

interface Result {
  /** Admitted units ÷ what the limit allows. */
  readonly used: number
  /** Units of grants that were returned, and that lapsed, ÷ all of them. */
  readonly returned: number
  readonly lapsed: number
}

function simulate({ processes, skew, prefetchMs, instances }: Setting): Result {
  timers.length = 0
  const memory = memoryStore()
  const fleet = Array.from({ length: processes }, (): CheckLimiter => {
    // Another object, so that it is taken for a store that is elsewhere.
    const store = storeThrough(memory, () => undefined)
    const policies = [{ name: 'hot', limit, window: `${windowMs}ms`, prefetch: `${prefetchMs}ms` }]
    return createCheckLimiter({ policies: policies as never, store, instances })
  })
  const weights = fleet.map((_, index) => 1 / (index + 1) ** skew)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const due = fleet.map(() => Math.random())
  const asksAgainAt = fleet.map(() => 0)
  /** The units admitted since the beginning, by step. */
  const admitted: number[] = []
  let units = 0
  for (let step = 0; step < (2 + windows) * stepsOfWindow; step += 1, nowMs += stepMs) {
    for (const timer of timers.splice(0)) {
      if (timer.atMs <= nowMs) timer.run()
      else timers.push(timer)
    }
    for (const [index, limiter] of fleet.entries()) {
      const share = (weights[index] ?? 0) / total
      let asked = (due[index] ?? 0) + (overload * limit * stepMs * share) / windowMs
      for (; asked >= 1; asked -= 1) {
        // A process does not ask for what it knows to be denied.
        if (nowMs < (asksAgainAt[index] ?? 0)) continue
        const { allowed, retryAfterMs } = consume(limiter)
        if (allowed) units += 1
        else asksAgainAt[index] = nowMs + Math.min(retryAfterMs, denialTtlMs)
      }
      due[index] = asked
    }
    admitted.push(units)
  }
  const grants = fleet.map((limiter) => limiter.storeHealth().grants)
  const sum = (of: 'taken' | 'returned' | 'lapsed'): number =>
    grants.reduce((units, each) => units + each[of], 0)
  const taken = Math.max(1, sum('taken'))
  return {
    used: (meanFrom(admitted, 1 + windows) - meanFrom(admitted, 2)) / limit / (windows - 1),
    returned: sum('returned') / taken,
    lapsed: sum('lapsed') / taken,
  }
}

/**
 * The mean over one window of a running total. Units come in bursts, about one a window: from one moment to another, one
 * burst more or less would be counted.
 */
function meanFrom(totals: readonly number[], window: number): number {
  const some = totals.slice(window * stepsOfWindow, (window + 1) * stepsOfWindow)
  return some.reduce((sum, total) => sum + total, 0) / some.length
}

function consume(limiter: CheckLimiter): Decision {
  const [policy] = limiter.policies
  if (!policy) throw new Error('a limiter has no policy')
  const decision = limiter.decide([{ policy, key: 'k', cost: 1, limit }])
  if (isPromise(decision)) throw new Error('the store of a simulation answers at once')
  return decision
}

const sizes = [1, 2, 8, 32, 128, 512]
const lines = [
  { name: 'even load, W/20', skew: 0, share: 20, isShared: true, colour: '#0b7285' },
  { name: 'skewed load, W/20', skew: 1, share: 20, isShared: true, colour: '#e8590c' },
  { name: 'skewed load, W/50', skew: 1, share: 50, isShared: true, colour: '#5f3dc4' },
  { name: 'skewed, size rule without N', skew: 1, share: 20, isShared: false, colour: '#868e96' },
]

const results = lines.map((line) => ({
  ...line,
  points: sizes.map((processes) =>
    simulate({
      processes,
      skew: line.skew,
      prefetchMs: windowMs / line.share,
      instances: line.isShared ? processes : 1,
    }),
  ),
}))

console.log(`| processes | ${lines.map(({ name }) => name).join(' | ')} |`)
console.log(`| ---: | ${lines.map(() => '---:').join(' | ')} |`)
for (const [index, processes] of sizes.entries()) {
  const cells = results.map(({ points }) => {
    const { used = 0, returned = 0, lapsed = 0 } = points[index] ?? {}
    return `${used.toFixed(3)} (${percent(returned)} returned, ${percent(lapsed)} lapsed)`
  })
  console.log(`| ${processes} | ${cells.join(' | ')} |`)
}
const file = new URL('../../docs/images/prefetch-utilisation.svg', import.meta.url)
writeFileSync(fileURLToPath(file), svg())

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}

/** The share of the limit that passes, from 0.98 to 1, by the number of processes. */
function svg(): string {
  const [left, top, width, height] = [60, 20, 480, 220]
  const x = (index: number): number => left + (index * width) / (sizes.length - 1)
  const y = (used: number): number =>
    Math.round(10 * (top + ((1 - Math.max(0.98, used)) / 0.02) * height)) / 10
  const grid = [0.98, 0.985, 0.99, 0.995, 1].map(
    (used) =>
      `<line x1="${left}" x2="${left + width}" y1="${y(used)}" y2="${y(used)}" stroke="#dee2e6"/>` +
      `<text x="${left - 8}" y="${y(used) + 4}" text-anchor="end">${used}</text>`,
  )
  const labels = sizes.map(
    (size, index) =>
      `<text x="${x(index)}" y="${top + height + 18}" text-anchor="middle">${size}</text>`,
  )
  const curves = results.map(({ name, colour, points }, line) => {
    const path = points.map(({ used }, index) => `${x(index)},${y(used)}`).join(' ')
    const row = top + height + 58 + 18 * line
    return (
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${path}"/>` +
      `<line x1="${left}" x2="${left + 24}" y1="${row - 4}" y2="${row - 4}" stroke="${colour}" stroke-width="2"/>` +
      `<text x="${left + 32}" y="${row}">${name}</text>`
    )
  })
  const title = `<text x="${left + width / 2}" y="${top + height + 36}" text-anchor="middle">processes</text>`
  const parts = [...grid, ...labels, title, ...curves].join('\n')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 ${top + height + 140}" font-family="sans-serif" font-size="12" fill="#343a40">\n<title>Share of the limit that passes, by number of processes</title>\n<rect width="100%" height="100%" fill="#fff"/>\n${parts}\n</svg>\n`
}
