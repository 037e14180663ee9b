import { memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { openPolicies, policyFileProblems } from '@sluice/policies'
import { describe, expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { policyFolder } from './policy-folder.ts'

const page = readText('docs/policies.md')
const blocks = [...page.matchAll(/^```(\w*)\n(.*?)^```/gms)].map(([, language, text = '']) => ({
  language,
  text,
}))
const [yaml = ''] = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)

describe('docs/policies.md', () => {
  it('has a file that comes in force, and changes that can be made', async () => {
    expect(policyFileProblems(yaml)).toEqual([])
    const store = memoryStore()
    const policies = await openPolicies({ file: await policyFolder(yaml, 'sluice.yaml'), store })
    const keys = { tenant: () => 'acme' }
    rateLimit({ policies, store, keys, values: { plan: () => 'free' } })
    const by = { author: 'ada', reason: 'launch day' }
    await policies.set({ policy: 'burst', field: 'limit', value: 40 }, by)
    const value = { key: { tenant: 'acme' }, limit: 9 }
    await policies.set({ policy: 'sustained', field: 'override', value }, by)
    await policies.remove({ policy: 'burst', field: 'limit' }, by)
    expect((await policies.status()).entries).toHaveLength(1)
    await policies.close()
  })

  it('shows a message as it is', () => {
    const [shown = ''] = blocks.filter(({ language }) => language === '').map(({ text }) => text)
    const [problem] = policyFileProblems('policies:\n  - { name: burst, limit: -5, window: 1s }')
    expect(`sluice.yaml:${problem?.line}:${problem?.column}: ${problem?.message}`).toBe(
      shown.trim(),
    )
  })
})
