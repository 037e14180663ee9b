import { describe, expect, it } from 'vitest'
import { serve } from '../admin/serve.ts'
import { runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { write } = testFiles('escapes')

/** Clears the screen, by seven bits and by eight. */
const hostile = '\u001b[2J\u009b2J\u2028'

/** Fails where a text can move the cursor. */
function expectPlain(text: string): void {
  for (const each of ['\u001b', '\u009b', '\u2028']) expect(text.includes(each), text).toBe(false)
}

describe('texts of clients', () => {
  const request = { method: 'GET', url: `/${hostile}`, headers: { 'x-tenant': `ac${hostile}me` } }
  const line = JSON.stringify({
    ...{ time: 1_795_255_201_250, req: { ...request, remoteAddress: '192.0.2.7' } },
    ...{ res: { statusCode: 200 }, responseTime: 1 },
  })
  const log = write('app.log', `${line}\n${line}\n{"req":"${hostile}"}x\n`)
  const fileOf = (limit: number) =>
    `key: tenant\npolicies: [{ name: one, limit: ${limit}, window: 1h }]\n`
  const [older, newer] = [write('old.yaml', fileOf(1)), write('new.yaml', fileOf(0))]
  const pino = ['tenant=header:x-tenant', '--format', 'pino-http']
  const simulate = ['simulate', log, '-p', newer, '--key', ...pino]
  const suggest = ['suggest', log, '--by', ...pino]
  const diff = ['diff', older, newer, '--log', log, '--key', ...pino]

  const commands = [simulate, suggest, diff].flatMap((args) => [args, [...args, '--json']])
  const all = [...commands, [...simulate, '--strict']].map((args) => [args])
  it.each(all)('cannot move the cursor: sluice %j', async (args) => {
    const { stdout, stderr } = await runSluice(args)
    expect(stdout + stderr).toContain(args.includes('--strict') ? 'cannot be read' : 'ac')
    expectPlain(stdout + stderr)
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
    const SLUICE_ADMIN_URL = await serve((_request, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(answer))
    })
    const { stdout, stderr, exitCode } = await runSluice([command, ...args], {
      env: { SLUICE_ADMIN_URL, SLUICE_ADMIN_TOKEN: 'token' },
    })
    expect([exitCode, stderr]).toEqual([0, ''])
    expectPlain(stdout)
  })
})
