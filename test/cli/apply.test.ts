import { describe, expect, it } from 'vitest'
import { storeKinds, storesIn } from '../admin/stores.ts'
import { startFleet } from './fleet-server.ts'
import { atTerminal } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const because = ['--reason', 'a test']

const deployed = `
deadlineMs: 10000
policies:
  - { name: burst, limit: 5, window: 1h, key: user }
  - { name: bucket, algorithm: token-bucket, limit: 100, burst: 200, window: 1h, key: user }
  - { name: trial, limit: 3, window: 1h, key: user, mode: shadow }
  - { name: part, limit: 1000, window: 1h, key: user, enforce: { share: 0.5 } }
overrides:
  - { policy: burst, key: { user: vip }, limit: 50 }
`

const { at, write } = testFiles('apply')
const file = at('sluice.yaml')

describe.each(storeKinds)('sluice apply on %s', (kind) => {
  const newStore = storesIn(kind)

  async function start() {
    const fleet = await startFleet({ store: await newStore(), file: deployed })
    return {
      ...fleet,
      atTerminal(answer: () => string | Promise<string>) {
        const env = { SLUICE_ADMIN_URL: fleet.url, SLUICE_ADMIN_TOKEN: 'token-of-ops' }
        return atTerminal(['apply', file, ...because], { env, answer })
      },
      /** Applies the deployed file with other texts in it. */
      async apply(changes: Readonly<Record<string, string>>, ...args: readonly string[]) {
        const text = Object.entries(changes).reduce((before, [from, to]) => {
          expect(before).toContain(from)
          return before.replace(from, to)
        }, deployed)
        return fleet.sluice(['apply', write('sluice.yaml', text), ...because, ...args])
      },
      limits: () => fleet.policies.file.policies?.map(({ limit }) => limit),
    }
  }

  it('changes limits, bursts, modes, shares and overrides in one version', async () => {
    const { apply, policies, visit } = await start()
    const changes = {
      'limit: 5, ': 'limit: 8, ',
      'burst: 200': 'burst: 300',
      ', mode: shadow': '',
      'share: 0.5': 'share: 0.9',
      'limit: 50 }':
        'limit: 60 }\n  - { policy: burst, key: { user: new }, limit: 1, until: 2096-12-31T23:59:59Z }',
    }
    expect((await apply(changes, '--dry-run')).stdout).toContain('policies.burst.limit: 5 → 8')
    expect(policies.state.entries).toEqual([])
    const { number } = policies.state
    const { exitCode, stdout } = await apply(changes, '--yes')
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Version \S+ is now active:\n/)])
    expect(policies.state.number).toBe(number + 1)
    const now = [{ limit: 8 }, { burst: 300 }, { mode: 'enforce' }, { enforce: { share: 0.9 } }]
    expect(policies.file.policies).toMatchObject(now)
    const again = await apply(changes, '--yes')
    expect([again.exitCode, again.stderr]).toEqual([0, expect.stringContaining('already apply')])
    expect(policies.state.number).toBe(number + 1)
    await visit('new')
    expect(await visit('new')).toBe(429)
  })

  it('removes entries that hide the file, once the file matches', async () => {
    const { apply, policies } = await start()
    await apply({ 'limit: 5, ': 'limit: 8, ', ', mode: shadow': '' }, '--yes')
    expect(policies.state.entries).toHaveLength(2)
    const { exitCode } = await apply({}, '--yes')
    expect(exitCode).toBe(0)
    expect(policies.file.policies).toMatchObject([{ limit: 5 }, {}, { mode: 'shadow' }, {}])
    expect(policies.state.entries.map(({ field }) => field)).toEqual(['mode'])
  })

  it('replaces a share by a mode, and a mode by a share', async () => {
    const { apply, policies } = await start()
    const swapped = {
      ', mode: shadow': ', enforce: { share: 0.2 }',
      ', enforce: { share: 0.5 }': '',
    }
    await apply(swapped, '--yes')
    const there = [{ enforce: { share: 0.2 } }, { mode: 'enforce' }]
    expect(policies.file.policies?.slice(2)).toMatchObject(there)
    await apply({}, '--yes')
    const back = [{ mode: 'shadow' }, { enforce: { share: 0.5 } }]
    expect(policies.file.policies?.slice(2)).toMatchObject(back)
  })

  it('keeps overrides that were set at run time, and says so', async () => {
    const { apply, policies } = await start()
    const by = { author: 'bob', reason: 'ticket' }
    const value = { key: { user: 'acme' }, limit: 9 }
    await policies.set({ policy: 'burst', field: 'override', value }, by)
    const { exitCode, stderr } = await apply({ 'limit: 5, ': 'limit: 6, ' }, '--yes')
    expect(exitCode).toBe(0)
    expect(stderr).toContain('stays: override burst of {"user":"acme"}')
    expect(policies.file.overrides).toHaveLength(2)
  })

  it('lists changes that need a deploy, and applies the rest only with --partial', async () => {
    const { apply, limits } = await start()
    const changes = {
      'limit: 5, window: 1h': 'limit: 7, window: 2h',
      'burst: 200, ': '',
      'overrides:': 'routes:\n  /health: false\noverrides:',
      '{ policy: burst, key: { user: vip }, limit: 50 }':
        '{ policy: burst, key: { user: vip }, limit: 51 }',
    }
    const { exitCode, stderr } = await apply(changes, '--yes')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('needs a deploy: policies.burst.window, and then starts a new count\n')
    expect(stderr).toContain('needs a deploy: policies.bucket.burst')
    expect(stderr).toContain('needs a deploy: routes./health')
    expect(stderr).toContain('Nothing was changed')
    expect(limits()?.[0]).toBe(5)
    expect((await apply(changes, '--yes', '--partial')).exitCode).toBe(0)
    expect(limits()?.[0]).toBe(7)
  })

  it('changes nothing if the file is invalid', async () => {
    const { apply, policies, sluice } = await start()
    const wrong = await apply({ 'limit: 5, ': 'limit: -5, ' }, '--yes')
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining(`${file}:4:`)])
    const none = await sluice(['apply', `${file}.none`, ...because])
    expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('cannot be read')])
    expect(policies.state.entries).toEqual([])
  })

  it('changes nothing after a conflicting change during the prompt', async () => {
    const { apply, policies, atTerminal } = await start()
    await apply({ 'limit: 5, ': 'limit: 6, ' }, '--dry-run')
    const by = { author: 'bob', reason: 'first' }
    const ran = await atTerminal(async () => {
      await policies.set({ policy: 'burst', field: 'limit', value: 9 }, by)
      return 'y\r'
    })
    expect(ran.stderr).toContain('policies.burst.limit: 5 → 6')
    expect(ran.stderr).toContain('Continue? [y/N]')
    expect(ran.stderr).toContain('the policies were changed in the meantime')
    expect([ran.exitCode, ran.stdout]).toEqual([3, ''])
    expect(policies.state.entries).toMatchObject([{ value: 9 }])
  })

  it('asks for confirmation, and takes anything but yes as no', async () => {
    const { apply, policies, atTerminal } = await start()
    await apply({ 'limit: 5, ': 'limit: 6, ' }, '--dry-run')
    expect([(await atTerminal(() => '\r')).exitCode, policies.state.entries]).toEqual([2, []])
    expect((await atTerminal(() => 'yes\r')).exitCode).toBe(0)
    expect(policies.state.entries).toMatchObject([{ value: 6 }])
  })
})
