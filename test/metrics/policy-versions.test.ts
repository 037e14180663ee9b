import { rateLimit } from '@sluice/express'
import { collectMetrics, type Metrics } from '@sluice/metrics'
import express from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { burst, note, openInTest, pollOften } from '../policies/live-policies.ts'
import { scraped } from './scrape.ts'

pollOften()

async function guarded(text: string) {
  const opened = await openInTest(text)
  const { policies, store } = opened
  const metrics = collectMetrics()
  const app = express()
  app.use(rateLimit({ policies, store, observers: [metrics] }))
  return { ...opened, metrics, ask: () => request(app).get('/') }
}

/** The series that describe policies, as the page has them. */
async function described(metrics: Metrics): Promise<readonly string[]> {
  const lines = (await scraped(metrics)).split('\n')
  return lines.filter((line) => /^sluice_policy_(info|limit)\{/.test(line))
}

function seriesOf(name: string, limit: number, version: string): readonly string[] {
  const labels = `policy="${name}",mode="enforce",algorithm="sliding-log",version="${version}"`
  return [`sluice_policy_limit{policy="${name}"} ${limit}`, `sluice_policy_info{${labels}} 1`]
}

describe('metrics of policies that change', () => {
  it('show only the current version, with its limit', async () => {
    const { policies, metrics, ask } = await guarded(burst(2))
    const first = policies.version
    expect(await described(metrics)).toEqual(seriesOf('burst', 2, first))
    await ask()
    await policies.set({ policy: 'burst', field: 'limit', value: 5 }, note)
    expect(policies.version).not.toBe(first)
    expect(await described(metrics)).toEqual(seriesOf('burst', 5, policies.version))
    await ask()
    expect(await described(metrics)).toEqual(seriesOf('burst', 5, policies.version))
  })

  it('end with a policy that a new file omits', async () => {
    const { policies, metrics, change } = await guarded(burst(2))
    await change('policies: [{ name: new, limit: 3, window: 1h }]')
    expect(await described(metrics)).toEqual(seriesOf('new', 3, policies.version))
  })

  it.each([
    ['shadow', 1, 'shadow'],
    ['off', 2, 'off'],
  ] as const)('report the kill switch: %s is %d', async (kill, value, mode) => {
    const { policies, metrics } = await guarded(burst(2))
    const killed = async () =>
      (await scraped(metrics)).match(/^sluice_kill_switch .*|mode="\w+"/gm)?.sort()
    expect(await killed()).toEqual(['mode="enforce"', 'sluice_kill_switch 0'])
    await policies.kill(kill, note)
    expect(await killed()).toEqual([`mode="${mode}"`, `sluice_kill_switch ${value}`])
    await policies.kill('none', note)
    expect(await killed()).toEqual(['mode="enforce"', 'sluice_kill_switch 0'])
  })
})
