import { describe, expect, it } from 'vitest'
import { startInTest } from '../examples/start-example.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

describe('examples/admin', () => {
  it('serves the page, and has clients that are denied', async () => {
    const port = await freePort()
    const example = startInTest('admin', { PORT: String(port) })
    await example.printed(/^Open http:/m)
    const origin = `http://127.0.0.1:${port}`
    expect(await (await fetch(`${origin}/limits`)).text()).toContain('<!doctype html>')
    await until('somebody is denied', async () => {
      const live = await (await fetch(`${origin}/limits/api/v1/live`)).text()
      return JSON.parse(live).requests.denied > 0
    })
  })
})
