import { policyFileProblems } from '@sluice/policies'
import type { Express } from 'express'
import request from 'supertest'
import { describe, expect, it, onTestFinished } from 'vitest'
import { writeModules } from '../examples/page-modules.ts'
import { readText } from '../support/workspace.ts'
import { policyFolder } from './policy-folder.ts'

const page = readText('docs/policies.md')

function blocksOf(language: string): readonly string[] {
  return [...page.matchAll(/^```(\w*)\n(.*?)^```/gms)].flatMap(([, found, text = '']) =>
    found === language ? [text] : [],
  )
}

describe('docs/policies.md', () => {
  it('has a valid file and working changes', async () => {
    const [yaml = ''] = blocksOf('yaml')
    expect(policyFileProblems(yaml)).toEqual([])
    const file = await policyFolder(yaml, 'sluice.yaml')
    const code = [
      "import { memoryStore } from '@sluice/core'",
      "import express from 'express'",
      'export const app = express()',
      'const store = memoryStore()',
      ...blocksOf('ts').map((block) => block.replaceAll("'sluice.yaml'", JSON.stringify(file))),
      "app.get('/', (request, response) => response.json(request.rateLimit.outcomes))",
      'export { policies }',
    ].join('\n')
    const heading = 'policies'
    const written = await writeModules([{ heading, code }])
    onTestFinished(() => written.remove())
    const { app, policies } = await import(/* @vite-ignore */ written.pathOf(heading))
    onTestFinished(() => policies.close())

    expect((await policies.status()).entries).toHaveLength(1)
    const limitsOf = async (app: Express, tenant: string) => {
      const { body } = await request(app).get('/').set('x-tenant', tenant)
      return body.map(({ limit }: { limit: number }) => limit)
    }
    expect(await limitsOf(app, 'acme')).toEqual([20, 9])
    expect(await limitsOf(app, 'other')).toEqual([20, 60])
  })

  it('shows an exact message', () => {
    const [shown = ''] = blocksOf('')
    const [problem] = policyFileProblems('policies:\n  - { name: burst, limit: -5, window: 1s }')
    const { line, column, message } = problem ?? {}
    expect(`sluice.yaml:${line}:${column}: ${message}`).toBe(shown.trim())
  })
})
