import { execFile } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cpu, eventLoopDelay, eventLoopUtilization, type Signal } from '@sluice/express'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { until } from '../../support/until.ts'
import { root } from '../../support/workspace.ts'
import { errorOf } from '../wrong-options.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe.each<[string, () => Signal]>([
  ['eventLoopDelay()', eventLoopDelay],
  ['eventLoopUtilization()', eventLoopUtilization],
  ['cpu()', cpu],
])('%s', (name, make) => {
  it('knows nothing on the first read, then a number ≥ 0', async () => {
    const signal = make()
    expect(signal.name).toBe(name)
    expect(signal.low).toBeLessThan(signal.high)
    expect(signal.sample()).toBeUndefined()
    await until('it knows a number', () => Number(signal.sample()) >= 0)
  })

  it('returns the same value if read again at once, since several may share it', async () => {
    const signal = make()
    signal.sample()
    block(300)
    const answer = signal.sample()
    expect(answer).toBeGreaterThan(0)
    expect(signal.sample()).toBe(answer)
  })
})

it('the delay of a blocked event loop is high, even before it continues', async () => {
  const signal = eventLoopDelay()
  signal.sample()
  await sleep(50)
  block(400)
  await sleep(30)
  expect(signal.sample()).toBeGreaterThan(40)
  block(400)
  expect(signal.sample()).toBeGreaterThan(350)
})

it('the utilisation of an event loop that never waits is nearly 1', () => {
  const signal = eventLoopUtilization()
  signal.sample()
  block(300)
  expect(signal.sample()).toBeGreaterThan(0.9)
})

it('the CPU is that of the process, as a share of the cores', () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(5_000)
  const usage = vi.spyOn(process, 'cpuUsage')
  const [one, four] = [cpu(), cpu({ cores: 4 })]
  usage.mockReturnValue({ user: 5_000_000, system: 1_000_000 })
  one.sample()
  four.sample()
  clock.mockReturnValue(6_000)
  usage.mockReturnValue({ user: 5_600_000, system: 1_200_000 })
  expect(one.sample()).toBeCloseTo(0.8)
  expect(four.sample()).toBeCloseTo(0.2)
})

it.each([0, -1, Number.NaN, '2', null])('rejects %s cores', (cores) => {
  const message = /^cpu.cores must be a number above 0/
  expect(() => cpu({ cores: cores as number })).toThrow(errorOf(message))
})

it('a signal that was asked does not keep the process alive', async () => {
  const script = `import { adaptive, eventLoopDelay, eventLoopUtilization, cpu, rateLimit } from '@sluice/express'
    for (const make of [eventLoopDelay, eventLoopUtilization, cpu]) {
      const signal = make()
      signal.sample()
      rateLimit({ window: '1m', limit: adaptive({ signal, min: 1, max: 2 }) })
    }`
  const flags = ['--conditions=@sluice/source', '--import=tsx', '--input-type=module']
  const options = { cwd: `${root}/test`, timeout: 15_000 }
  await promisify(execFile)(process.execPath, [...flags, '-e', script], options)
})
