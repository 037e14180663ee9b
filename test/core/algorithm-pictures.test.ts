import { type AlgorithmName, algorithmNames, type PolicyFields } from '@sluice/core'
import { fakeClock } from '@sluice/testing'
import { expect, it } from 'vitest'
import { algorithmPolicy } from '../stores/algorithm-policy.ts'
import { limiterOf } from '../support/patient-limiter.ts'
import { root } from '../support/workspace.ts'

// Draws docs/images/algorithms from the algorithms themselves: core/algorithm-pictures -u.

const limit = 4
const windowMs = 10_000
const endMs = 26_000
/** A request, a burst before the end of a window of ten seconds, and a burst after it. */
const arrivalsMs = [0, 8, 8.5, 9, 9.5, 10.5, 11, 11.5, 12, 12.5, 15, 18.5, 19, 21].map(
  (seconds) => seconds * 1_000,
)
const flightMs = 3_000

/** Options that show an algorithm better than those of all others. */
const special: { readonly [name in AlgorithmName]?: Partial<PolicyFields> } = {
  'leaky-bucket': { queue: 2 },
  concurrency: { limit: 2, lease: '30s' },
}

it.each(algorithmNames)('the picture of %s is the one in the docs', async (name) => {
  const moments = await watch({
    ...algorithmPolicy(name, { limit, window: windowMs }),
    ...special[name],
  })
  await expect(picture(name, moments)).toMatchFileSnapshot(
    `${root}docs/images/algorithms/${name}.svg`,
  )
})

interface Moment {
  readonly atMs: number
  readonly allowed: boolean
  /** When the request goes on, and when it ends. */
  readonly fromMs: number
  readonly toMs: number
}

async function watch(policy: PolicyFields): Promise<Moment[]> {
  const startMs = windowMs * 1_000
  const clock = fakeClock({ now: startMs })
  try {
    const limiter = limiterOf({ policies: [{ name: 'p', ...policy }] })
    const inFlight: { readonly endMs: number; end(): Promise<unknown> }[] = []
    const moments: Moment[] = []
    for (const atMs of arrivalsMs) {
      while (inFlight[0] && inFlight[0].endMs <= atMs) {
        clock.set(startMs + inFlight[0].endMs)
        await inFlight.shift()?.end()
      }
      clock.set(startMs + atMs)
      const decision = await limiter.consume('a')
      const fromMs = atMs + decision.delayMs
      const lasts = policy.algorithm === 'concurrency' && decision.allowed
      const toMs = lasts ? fromMs + flightMs : fromMs
      if (lasts) inFlight.push({ endMs: toMs, end: () => limiter.release(decision) })
      moments.push({ atMs, allowed: decision.allowed, fromMs, toMs })
    }
    return moments
  } finally {
    clock.restore()
  }
}

const width = 720
const height = 150
const left = 90
const right = 700
const rows = { arrived: 40, admitted: 80 }

function picture(name: string, moments: readonly Moment[]): string {
  const count = moments.filter(({ allowed }) => allowed).length
  const title = `${name}: ${count} of ${moments.length} requests are admitted`
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}" font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...Array.from({ length: endMs / 2_000 + 1 }, (_, tick) => gridLine(tick * 2_000)),
    ...Object.entries(rows).map(([label, y]) => `<text x="10" y="${y + 4}">${label}</text>`),
    ...moments.flatMap(marks),
    `<text x="${(left + right) / 2}" y="${height - 8}" text-anchor="middle" fill="#57606a">seconds</text>`,
    '</svg>',
  ].join('\n')}\n`
}

function gridLine(atMs: number): string {
  const x = place(atMs)
  return `<line x1="${x}" x2="${x}" y1="20" y2="104" stroke="#e3e6ea"/><text x="${x}" y="120" text-anchor="middle" fill="#57606a">${atMs / 1_000}</text>`
}

function marks({ atMs, allowed, fromMs, toMs }: Moment): string[] {
  const x = place(atMs)
  if (!allowed) {
    const arm = 4
    return [
      `<path d="M${x - arm} ${rows.arrived - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}" stroke="#c2410c" stroke-width="2"/>`,
    ]
  }
  const held = `<line x1="${x}" y1="${rows.arrived}" x2="${place(fromMs)}" y2="${rows.admitted}" stroke="#0b63c5" stroke-dasharray="2 2"/>`
  const flight = `<line x1="${place(fromMs)}" x2="${place(toMs)}" y1="${rows.admitted}" y2="${rows.admitted}" stroke="#0b63c5" stroke-width="5" stroke-opacity="0.35"/>`
  return [
    held,
    ...(toMs > fromMs ? [flight] : []),
    `<circle cx="${x}" cy="${rows.arrived}" r="4" fill="#ffffff" stroke="#0b63c5" stroke-width="2"/>`,
    `<circle cx="${place(fromMs)}" cy="${rows.admitted}" r="5" fill="#0b63c5"/>`,
  ]
}

function place(atMs: number): number {
  return Math.round(left + ((right - left) * atMs) / endMs)
}
