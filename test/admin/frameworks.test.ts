import type { Role } from '@sluice/admin'
import { createQueue, memoryBroker } from '@sluice/queue'
import { describe, expect, it } from 'vitest'
import { ask } from '../adapters/ask.ts'
import { frameworks, startAdmin } from './admin-server.ts'
import { callNow, operations } from './operations.ts'

const roles: readonly (Role | undefined)[] = ['read', 'keys', 'policies', undefined]

/** A policy of contents that allows nothing, not even to stand in a frame. */
const nothing = "default-src 'none'; frame-ancestors 'none'"

describe.each(frameworks)('the admin API in $name', (framework) => {
  it('answers each operation as in openapi.json to authorised callers, and 403 to others', async () => {
    const who: { role: Role | undefined } = { role: undefined }
    const authorize = () => who.role && ({ actor: 'ada', may: [who.role] } as const)
    const started = await startAdmin({ framework, admin: { authorize } })
    await started.visit('ada')
    for (const [name, operation] of Object.entries(operations)) {
      for (const role of roles) {
        who.role = role
        const { status, body, etag, field } = await callNow(started, operation)
        const isAllowed = role === operation.role
        expect(status, `${name} as ${role}: ${JSON.stringify(body)}`).toBe(isAllowed ? 200 : 403)
        expect(field('x-content-type-options'), name).toBe('nosniff')
        if (!isAllowed) continue
        const isRead = operation.method === 'GET'
        expect(field('cache-control'), name).toBe(isRead ? 'private, no-cache' : 'no-store')
        expect(etag === undefined, name).toBe(!isRead)
        expect(field('content-type'), name).toContain('application/json')
        expect(field('content-security-policy'), name).toBe(nothing)
        expect(field('cross-origin-resource-policy'), name).toBe('same-origin')
      }
    }
    who.role = undefined
    for (const path of ['', 'nothing']) {
      expect((await ask(started.port, `/limits/${path}`)).status).toBe(403)
    }
  })

  it('redirects to the slash, and serves the page and its files under it', async () => {
    const { port } = await startAdmin({ framework })
    const bare = await ask(port, '/limits?tab=keys')
    expect([bare.status, bare.field('location')]).toEqual([308, './limits/?tab=keys'])
    const page = await ask(port, '/limits/')
    expect([page.status, page.field('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.field('content-security-policy')).toContain("default-src 'none'")
    expect(page.field('content-security-policy')).toContain("frame-ancestors 'none'")
    const again = { headers: { 'if-none-match': page.field('etag') ?? '' } }
    expect((await ask(port, '/limits/', again)).status).toBe(304)
    const packed = await ask(port, '/limits/page.js', { headers: { 'accept-encoding': 'gzip' } })
    expect([packed.status, packed.field('content-encoding')]).toEqual([200, 'gzip'])
    const plain = await ask(port, '/limits/page.js')
    expect(plain.field('content-encoding')).toBeUndefined()
    expect(plain.body).toContain('preact: The MIT License')
    expect((await ask(port, '/limits/page.css')).status).toBe(200)
    expect((await ask(port, '/limits/', { method: 'HEAD' })).status).toBe(200)
  })

  it('refuses unknown paths, uncacheably', async () => {
    const { call, act, port } = await startAdmin({ framework })
    const change = { method: 'PUT', headers: { 'x-sluice-admin': '1' } }
    const put = await ask(port, '/limits/api/v1/policies', change)
    expect(put.field('allow')).toBe('GET')
    const plain = { headers: { 'content-type': 'text/plain' }, text: '{}' }
    const refused = [
      put,
      await call('GET', 'nothing'),
      await act('reset', {}),
      await call('GET', 'audit', { headers: { origin: 'https://evil.example' } }),
      await call('POST', 'keys/lookup', { text: '{"key":' }),
      await call('POST', 'keys/lookup', plain),
      await call('POST', 'keys/lookup', { text: JSON.stringify({ key: 'x'.repeat(70_000) }) }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([405, 404, 400, 403, 400, 415, 413])
    for (const { field } of refused) {
      expect(field('cache-control')).toBe('no-store')
      expect(field('content-type')).toContain('application/problem+json')
      expect(field('x-content-type-options')).toBe('nosniff')
    }
  })

  it('finds a queue by any name', async () => {
    const names = ['reports/é 😀', '100%25', 'a?b#c', '..', 'jobs+1']
    const queues = names.map((name) => createQueue({ broker: memoryBroker({ name }) }))
    const { call } = await startAdmin({ framework, admin: { queues } })
    for (const [index, name] of names.entries()) {
      // Clients take `..` out of a path, so that such a queue cannot be asked for.
      if (name === '..') continue
      const path = `queues/${encodeURIComponent(name)}/dead`
      const { status, body } = await call('GET', path)
      expect([status, body.queue], `${index} ${name}`).toEqual([200, name])
    }
  })
})
