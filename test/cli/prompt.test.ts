import { describe, expect, it } from 'vitest'
import { startFleet } from './fleet-server.ts'
import { atTerminal } from './run-sluice.ts'

describe('a secret that is asked for', () => {
  it('is not shown', async () => {
    const ran = await atTerminal(['doctor'], { answer: () => 'redis://:hunter2@127.0.0.1:1\r' })
    expect(ran.stderr).toContain('Address of Redis (hidden): ')
    expect(ran.stdout).toContain('ECONNREFUSED')
    expect(ran.stdout + ran.stderr).not.toContain('hunter2')
    expect(ran.exitCode).toBe(1)
  })

  it.each([
    ['nothing', '\r', 'Nothing was typed'],
    ['Ctrl-C', '\u0003', 'Stopped'],
  ])('is left out by %s', async (_, typed, message) => {
    const ran = await atTerminal(['doctor'], { answer: () => typed })
    expect([ran.exitCode, ran.stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it('is a token, if the API refuses a request without one', async () => {
    const { url } = await startFleet()
    const env = { SLUICE_ADMIN_URL: url }
    const ran = await atTerminal(['top', '--once'], { env, answer: () => 'token-of-viewer\r' })
    expect(ran.stderr).toContain('(hidden): ')
    expect(ran.stdout).toContain('0 denied')
    expect(ran.stdout + ran.stderr).not.toContain('token-of-viewer')
    expect(ran.exitCode).toBe(0)
    const wrong = await atTerminal(['top', '--once'], { env, answer: () => 'nonsense\r' })
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('not authorised')])
  })
})
