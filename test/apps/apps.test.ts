import { describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../admin/serve.ts'
import { repeated } from '../support/in-turn.ts'
import { limitsAfter, limitsBefore } from './express-limits.ts'
import { createShop } from './express-shop.ts'
import { createNotes, notesAfter, notesBefore } from './fastify-notes.ts'

// Two applications as they are: on the limiter that they had, and moved by docs/migrating.md. Clients see the same.

/** Asks some times in a row, and tells the statuses: `200 200 429`. */
const asking =
  (origin: string) =>
  async (path: string, asked: RequestInit = {}, times = 1) => {
    const statuses = await repeated(times, async () => {
      const { status, headers } = await fetch(origin + path, asked)
      if (status === 429) {
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
        expect(headers.get('x-ratelimit-remaining')).toBe('0')
      }
      return status
    })
    return statuses.join(' ')
  }

const json = (value: object, headers = {}): RequestInit => ({
  ...{ method: 'POST', body: JSON.stringify(value) },
  headers: { 'content-type': 'application/json', ...headers },
})
const right = { name: 'ada', password: 'correct horse' }
const root = { name: 'root', password: 'battery staple' }
const wrong = { name: 'ada', password: 'guess' }

const hook = { method: 'POST', body: 'paid', headers: { 'content-type': 'text/plain' } }

describe.each([
  ['express-rate-limit', limitsBefore],
  ['Sluice', limitsAfter],
] as const)('a shop with Express, limited by %s', (_, limits) => {
  it('answers as before', async () => {
    const origin = await serve(createShop(limits()))
    const ask = asking(origin)
    const session = async (account: object) => {
      const { headers } = await fetch(`${origin}/login`, json(account))
      return { cookie: headers.get('set-cookie')?.replace(/;.*/, '') ?? '' }
    }

    expect(await ask('/login', json(wrong), 2)).toBe('401 401')
    const ada = await session(right)
    expect(await ask('/login', json(right))).toBe('200')
    expect(await ask('/login', json(wrong), 2)).toBe('401 429')
    // From another address, and as another account.
    const elsewhere = { 'x-forwarded-for': '203.0.113.9' }
    expect(await ask('/login', json(wrong, elsewhere))).toBe('401')
    const admin = await session(root)

    const upload = { method: 'POST', body: 'png', headers: { 'content-type': 'image/png', ...ada } }
    expect(await ask('/pictures', upload, 3)).toBe('201 201 429')
    expect(await (await fetch(`${origin}/pictures`, upload)).json()).toEqual({
      ...{ error: 'upload later', used: 2 },
    })
    expect(await ask('/admin/accounts', { headers: ada })).toBe('403')
    expect(await ask('/admin/accounts', { headers: admin }, 5)).toBe('200 200 200 200 429')

    expect(await ask('/webhooks/payment', hook, 45)).not.toContain('429')
    expect(await (await fetch(`${origin}/webhooks/payment`, hook)).json()).toEqual({ bytes: 4 })
    expect(await ask('/health', {}, 45)).not.toContain('429')
    const products = await ask('/products', {}, 45)
    expect(products).toMatch(/^(200 ){20,}(429 ?)+$/)
    // The limit counts accounts where there is one.
    expect(await ask('/products', { headers: admin })).toBe('200')
  })
})

describe.each([
  ['@fastify/rate-limit', notesBefore],
  ['Sluice', notesAfter()],
] as const)('a service with Fastify, limited by %s', (_, limits) => {
  it('answers as before', async () => {
    const app = await createNotes(limits)
    onTestFinished(() => app.close())
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    const ask = asking(origin)
    const session = async (account: object) => {
      const { token } = Object(await (await fetch(`${origin}/login`, json(account))).json())
      return { authorization: `Bearer ${token}` }
    }

    const [ada, admin] = [await session(right), await session(root)]
    expect(await ask('/login', json(wrong), 2)).toBe('401 429')
    expect(await ask('/login', json(wrong, { 'x-forwarded-for': '203.0.113.9' }))).toBe('401')

    expect(await ask('/notes', { headers: ada }, 2)).toBe('200 200')
    expect(await ask('/notes')).toBe('401')
    const upload = { method: 'POST', body: 'png', headers: { 'content-type': 'image/png', ...ada } }
    expect(await ask('/pictures', upload, 3)).toBe('201 201 429')
    expect(await (await fetch(`${origin}/pictures`, upload)).json()).toEqual({
      ...{ statusCode: 429, error: 'slow down', seconds: expect.closeTo(3_600, -2) },
    })
    expect(await ask('/admin/users', { headers: ada })).toBe('403')
    expect(await ask('/admin/users', { headers: admin }, 5)).toBe('200 200 200 200 429')

    expect(await ask('/webhooks/calendar', hook, 35)).not.toContain('429')
    expect(await (await fetch(`${origin}/webhooks/calendar`, hook)).json()).toEqual({ bytes: 4 })
    expect(await ask('/health', {}, 35)).not.toContain('429')
    const notes = await ask('/notes', { headers: ada }, 35)
    expect(notes).toMatch(/^(200 ){20,}(429 ?)+$/)
    expect(await ask('/notes', { headers: admin })).toBe('200')
  })
})
