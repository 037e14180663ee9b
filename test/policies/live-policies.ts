import { rename, writeFile } from 'node:fs/promises'
import { memoryStore, type Store } from '@sluice/core'
import { type RateLimitOptions, rateLimit } from '@sluice/express'
import { openPolicies } from '@sluice/policies'
import express from 'express'
import request from 'supertest'
import { beforeEach, onTestFinished, vi } from 'vitest'
import { until } from '../support/until.ts'
import { policyFolder } from './policy-folder.ts'

export const note = { author: 'ada', reason: 'a test' }

/** A file of one policy, which counts all requests of an address. */
export const burst = (limit: number) => `policies: [{ name: burst, limit: ${limit}, window: 1h }]`

/** Has policies look for changes every 50 ms in the tests of a file, and not every second. */
export function pollOften(): void {
  const { setInterval } = globalThis
  beforeEach(() => {
    const often = vi.spyOn(globalThis, 'setInterval')
    often.mockImplementation((poll, ms) => setInterval(poll, ms === 1_000 ? 50 : ms))
    return () => often.mockRestore()
  })
}

/** Opens policies that are closed when the test is over. @param from a text, or a file */
export async function openInTest(
  from: string | { readonly file: string },
  store: Store = memoryStore(),
) {
  const file = typeof from === 'string' ? await policyFolder(from) : from.file
  const refused: string[] = []
  // No poll sees half of a text.
  const write = (text: string) =>
    writeFile(`${file}.new`, text).then(() => rename(`${file}.new`, file))
  const policies = await openPolicies({
    file,
    store,
    observers: { onRefused: ({ message }) => refused.push(message) },
  })
  onTestFinished(() => policies.close())
  return {
    file,
    store,
    policies,
    refused,
    async change(text: string) {
      const before = policies.version
      await write(text)
      await until('the new version is in force', () => policies.version !== before)
    },
    async spoil(text: string) {
      const { length } = refused
      await write(text)
      await until('the file is refused', () => refused.length > length)
    },
  }
}

type Opened = Awaited<ReturnType<typeof openInTest>>

/** An application of Express behind policies. @returns what asks it, for a status */
export function expressOf(
  { policies, store }: Opened,
  own: Pick<RateLimitOptions, 'keys' | 'values'> = {},
) {
  const app = express()
  app.use(rateLimit({ policies, store, ...own }))
  app.use((_request, response) => void response.send('ok'))
  return async (headers: Readonly<Record<string, string>> = {}, path = '/') =>
    (await request(app).get(path).set(headers)).status
}
