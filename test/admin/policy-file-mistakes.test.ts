import { writeFile } from 'node:fs/promises'
import { memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { openPolicies } from '@sluice/policies'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { burst, openInTest } from '../policies/live-policies.ts'
import { policyFolder } from '../policies/policy-folder.ts'
import { until } from '../support/until.ts'
import { startAdmin } from './admin-server.ts'

describe('a policy file with a mistake', () => {
  it('is refused and shown, while the current policies can still be changed', async () => {
    const opened = await openInTest(burst(5))
    const { policies, store } = opened
    const { call, change } = await startAdmin({ store, admin: { policies } })
    await opened.spoil(burst(-5))
    const shown = (await call('GET', 'policies')).body
    expect(shown.policies).toMatchObject([{ name: 'burst', limit: 5 }])
    expect(shown.refused.message).toContain('limit')
    await until('the fleet says so', async () => {
      const { instances } = (await call('GET', 'fleet')).body
      return instances.some(({ isThis, refused }: { isThis: boolean; refused?: object }) => {
        return isThis && refused !== undefined
      })
    })
    const set = [{ policy: 'burst', field: 'limit', value: 6 }]
    expect((await change('changes', { set }, shown.version)).status).toBe(200)
    expect((await call('GET', 'policies')).body.policies).toMatchObject([{ limit: 6 }])
  })

  const secret = 'sk_live_ada'
  const reading = { authorize: () => ({ actor: 'eve', may: ['read'] }) as const }

  it('shows no identity in it to those who may only read, nor in a log', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const file = await policyFolder(burst(5))
    const store = memoryStore()
    const policies = await openPolicies({ file, store })
    onTestFinished(() => policies.close())
    rateLimit({ policies, store })
    const { call } = await startAdmin({ store, admin: { policies, ...reading } })
    const mistakes = [
      [`overrides: [{ policy: burst, key: ${secret}, limit: 9 }]`, ':2:35: overrides[0].key'],
      [`overrides: [{ policy: burst, key: { ip: ${secret} } }]`, ':3:13: overrides[0]'],
      [`overrides: [{ policy: burst, key: { ${secret}: x }, limit: 9 }]`, 'overrides[0].key must'],
      [`overrides: [*${secret}]`, ':1:1: not YAML'],
    ] as const
    for (const [index, [text, place]] of mistakes.entries()) {
      await writeFile(file, `${burst(5)}${'\n'.repeat(index + 1)}${text}`)
      await until(text, () => policies.state.refused?.message.includes(place) === true)
      const answers = [await call('GET', 'policies'), await call('GET', 'fleet')]
      const shown = JSON.stringify(answers.map(({ body }) => body))
      expect(shown, text).toContain('"refused":')
      expect(shown, text).not.toContain(secret)
    }
    expect(warn).toHaveBeenCalledTimes(mistakes.length)
    expect(JSON.stringify(warn.mock.calls)).not.toContain(secret)
  })

  it('nor are the lists of a route, in the differences of two versions', async () => {
    const opened = await openInTest(burst(5))
    const { policies, store } = opened
    const { call } = await startAdmin({ store, admin: { policies, ...reading } })
    const { version } = policies
    const routes = `routes: { /: { policies: [burst], block: { keys: [${secret}] } } }`
    await opened.change(`${burst(5)}\n${routes}`)
    const { body } = await call('GET', `policies/diff?from=${version}`)
    expect(body.differences).toMatchObject([{ path: 'routes./', to: { policies: ['burst'] } }])
    expect(JSON.stringify(body)).not.toContain(secret)
  })
})
