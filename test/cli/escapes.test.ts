import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { runSluice } from './run-sluice.ts'

const folder = temporaryFolder('escapes')
afterAll(() => folder[Symbol.dispose]())

/** Clears the screen, by seven bits and by eight. */
const hostile = '\u001b[2J\u009b2J\u2028'

describe('texts of clients', () => {
  const place = (name: string) => join(folder.path, name)
  const request = { method: 'GET', url: `/${hostile}`, headers: { 'x-tenant': `ac${hostile}me` } }
  const line = JSON.stringify({
    ...{ time: 1_795_255_201_250, req: { ...request, remoteAddress: '192.0.2.7' } },
    ...{ res: { statusCode: 200 }, responseTime: 1 },
  })
  writeFileSync(place('app.log'), `${line}\n${line}\n{"req":"${hostile}"}x\n`)
  const fileOf = (limit: number) =>
    `key: tenant\npolicies: [{ name: one, limit: ${limit}, window: 1h }]\n`
  writeFileSync(place('old.yaml'), fileOf(1))
  writeFileSync(place('new.yaml'), fileOf(0))
  const log = place('app.log')
  const keyed = ['--key', 'tenant=header:x-tenant', '--format', 'pino-http']

  it.each([
    ['simulate', [log, '-p', place('new.yaml'), ...keyed]],
    ['simulate', [log, '-p', place('new.yaml'), ...keyed, '--json']],
    ['simulate', [log, '-p', place('new.yaml'), ...keyed, '--strict']],
    ['suggest', [log, '--by', 'tenant=header:x-tenant', '--format', 'pino-http']],
    ['suggest', [log, '--by', 'tenant=header:x-tenant', '--format', 'pino-http', '--json']],
    ['diff', [place('old.yaml'), place('new.yaml'), '--log', log, ...keyed]],
    ['diff', [place('old.yaml'), place('new.yaml'), '--log', log, ...keyed, '--json']],
  ])('cannot move the cursor: sluice %s %j', async (command, args) => {
    const { stdout, stderr } = await runSluice([command, ...args])
    const written = stdout + stderr
    expect(written).toContain(args.includes('--strict') ? 'cannot be read' : 'ac')
    for (const character of ['\u001b', '\u009b', '\u2028']) {
      expect(written.includes(character), written).toBe(false)
    }
  })
})

describe('texts of a server', () => {
  const policy = { policy: hostile, isPenalty: false, mode: 'enforce', allowed: true, limit: 1 }
  const state = { digest: hostile, name: hostile, found: true, dryRun: true }
  const answer = { ...state, policies: [{ ...policy, denied: {}, found: true }] }

  it.each([
    ['inspect', ['user', 'ada']],
    ['reset', ['user', 'ada', '--dry-run', '--reason', 'a look']],
  ])('cannot move the cursor: sluice %s', async (command, args) => {
    const server = createServer((_request, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(answer))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const { stdout, stderr, exitCode } = await runSluice([command, ...args], {
      env: { SLUICE_ADMIN_URL: `http://127.0.0.1:${port}/`, SLUICE_ADMIN_TOKEN: 'token' },
    })
    expect([exitCode, stderr]).toEqual([0, ''])
    for (const character of ['\u001b', '\u009b', '\u2028']) expect(stdout).not.toContain(character)
  })
})
