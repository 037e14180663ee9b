import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { memoryStore, type Store } from '@sluice/core'
import { openPolicies } from '@sluice/policies'
import { redisStore } from '@sluice/redis'
import { afterEach, describe, expect, onTestFinished, vi } from 'vitest'
import { PolicySources } from '../../packages/policies/src/policy-sources.ts'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { burst, expressOf, note, openInTest, pollOften } from './live-policies.ts'
import { policyFolder } from './policy-folder.ts'

pollOften()

const minuteMs = 60_000

async function twoPolls({ documents }: Store): Promise<void> {
  const read = vi.spyOn(Object(documents), 'revision')
  await until('each source was read twice', () => read.mock.calls.length > 2)
  read.mockRestore()
}

describe('the file of policies', () => {
  it('is a ConfigMap, whose folder is swapped by a symbolic link', async () => {
    const folder = dirname(await policyFolder('', 'unused'))
    const publish = async (name: string, limit: number) => {
      await mkdir(join(folder, name))
      await writeFile(join(folder, name, 'sluice.yaml'), burst(limit))
      await symlink(name, join(folder, '..data_tmp'))
      await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    await publish('..2026_01', 1)
    await symlink(join('..data', 'sluice.yaml'), join(folder, 'sluice.yaml'))
    const opened = await openInTest({ file: join(folder, 'sluice.yaml') })
    const ask = expressOf(opened)
    expect([await ask(), await ask()]).toEqual([200, 429])
    const before = opened.policies.version
    await publish('..2026_02', 2)
    await rm(join(folder, '..2026_01'), { recursive: true })
    await until('the swap is in force', () => opened.policies.version !== before)
    expect([await ask(), await ask()]).toEqual([200, 429])
    expect(opened.refused).toEqual([])
  })

  it('stays active when it disappears, is reported once, and recovers when it is back', async () => {
    const opened = await openInTest(burst(1))
    const { file, policies, refused } = opened
    const before = policies.version
    await rm(file)
    await until('it is missed', () => refused.length > 0)
    await twoPolls(opened.store)
    expect(refused).toEqual([expect.stringContaining('ENOENT')])
    expect(policies.version).toBe(before)
    await writeFile(file, burst(1))
    await until('it is back', async () => (await policies.status()).refused === undefined)
    expect(policies.version).toBe(before)
    await rm(file)
    await until('it is missed again', () => refused.length > 1)
  })

  it('is not applied while it is being written', async () => {
    let reads = 0
    let isWritten = false
    const sources = new PolicySources({
      observers: [],
      documents: undefined,
      name: 'default',
      fileName: 'sluice.yaml',
      // Each part is a right file by itself.
      async readFile() {
        if (!isWritten) reads += 1
        return burst(reads)
      },
      kill: undefined,
    })
    await sources.open()
    onTestFinished(() => sources.close())
    const before = sources.versions.now.id
    await until('it is read a few times', () => reads >= 5)
    expect(sources.versions.now.id).toBe(before)
    isWritten = true
    await until('it is written', () => sources.versions.now.id !== before)
  })

  it('is rejected once while invalid, whatever else changes, until the previous text returns', async () => {
    const { file, policies, refused, spoil, store } = await openInTest(burst(1))
    await spoil('policies: [')
    await policies.set({ policy: 'burst', field: 'limit', value: 2 }, note)
    await twoPolls(store)
    expect(refused).toHaveLength(1)
    expect((await policies.status()).refused?.message).toBe(refused[0])
    await writeFile(file, burst(1))
    await until('it is right', async () => (await policies.status()).refused === undefined)
  })

  it('warns of each problem once, and again after a valid file', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const file = await policyFolder(burst(1))
    const policies = await openPolicies({ file })
    onTestFinished(() => policies.close())
    const warnings = () => warn.mock.calls.map(([line]) => String(line))
    const spoil = async (text: string, problem: string, times: number) => {
      await writeFile(file, text)
      const isKnown = () => policies.state.refused?.message.includes(problem) === true
      await until(`the refusal of ${problem} is known`, isKnown)
      expect(warnings().filter((line) => line.includes(problem))).toHaveLength(times)
    }
    await spoil(burst(-3), ':1:34: policies[0].limit', 1)
    await spoil(burst(1).replace('limit', 'limitt'), ':1:27: policies[0]', 1)
    await spoil(burst(-3), ':1:34: policies[0].limit', 1)
    await writeFile(file, burst(2))
    await until('a right file is in force', () => policies.state.refused === undefined)
    await spoil(burst(-3), ':1:34: policies[0].limit', 2)
    expect(warnings()).toHaveLength(3)
  })
})

describe('a new value of the file that a change hides', () => {
  it('is one warning, which names the changes and their authors', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const file = (limit: number, own: number, more = '') =>
      `${burst(limit)}\noverrides: [{ policy: burst, key: { ip: '1.2.3.4' }, limit: ${own} }]\n${more}`
    const { policies, change } = await openInTest(file(5, 50))
    const override = { key: { ip: '1.2.3.4' }, limit: 60 }
    const limit = { policy: 'burst', field: 'limit', value: 9 } as const
    await policies.set([limit, { policy: 'burst', field: 'override', value: override }], note)
    const shadow = { policy: 'burst', field: 'mode', value: 'shadow' } as const
    await policies.set(shadow, { ...note, author: 'bob' })
    await change(file(5, 50, 'statusCode: 420'))
    expect(warn).not.toHaveBeenCalled()
    await change(file(7, 70))
    expect(warn.mock.calls).toEqual([
      [
        "sluice: the policies policies.yaml have new values that are hidden by changes: burst limit (by 'ada'), burst override (by 'ada'). To use the file's values, remove these changes, as in policies.remove({ policy, field })",
      ],
    ])
    await policies.rollback((await policies.history()).at(-1)?.id ?? '', note)
    await change(file(8, 80))
    expect(warn).toHaveBeenCalledTimes(1)
    expect((await policies.status()).entries).toEqual([])
  })
})

describe('what ends by itself', () => {
  afterEach(() => void vi.useRealTimers())

  it.each(['an override', 'an entry'])('ends %s at its time', async (what) => {
    const now = Date.parse('2026-06-01T12:00:00Z')
    vi.useFakeTimers({ toFake: ['Date'], now })
    const end = '2026-06-01T14:05:00+02:00'
    const override = `overrides: [{ policy: burst, key: { ip: '*' }, limit: 3, until: ${end} }]`
    const opened = await openInTest(what === 'an override' ? `${burst(1)}\n${override}` : burst(1))
    const { policies } = opened
    if (what === 'an entry') {
      await policies.set({ policy: 'burst', field: 'limit', value: 3, until: end }, note)
    }
    const ask = expressOf(opened)
    expect([await ask(), await ask()]).toEqual([200, 200])
    vi.setSystemTime(now + 5 * minuteMs - 1)
    expect([await ask(), await ask()]).toEqual([200, 429])
    await policies.set({ policy: 'burst', field: 'mode', value: 'enforce' }, note)
    vi.setSystemTime(now + 5 * minuteMs)
    await until('it has ended', async () => !(await policies.export()).includes('limit: 3'))
    const { entries } = await policies.status()
    expect(entries.map(({ field }) => field)).toEqual(['mode'])
    expect(await ask()).toBe(429)
  })
})

describe('SLUICE_KILL_SWITCH', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it.each([
    ['off', [200, 200], ['off', 'environment']],
    ['shadow', [200, 200], ['shadow', 'environment']],
    ['', [200, 429], ['none', undefined]],
    ['none', [200, 429], ['none', undefined]],
  ])("as %j applies, whatever the fleet's state", async (value, statuses, told) => {
    vi.stubEnv('SLUICE_KILL_SWITCH', value)
    const opened = await openInTest(burst(1))
    const ask = expressOf(opened)
    await opened.policies.kill('none', note)
    expect([await ask(), await ask()]).toEqual(statuses)
    const { kill, killedBy } = await opened.policies.status()
    expect([kill, killedBy]).toEqual(told)
  })

  it('with an invalid value is an error that lists valid ones', async () => {
    vi.stubEnv('SLUICE_KILL_SWITCH', 'on')
    const opening = openPolicies({ file: await policyFolder(burst(1)), store: memoryStore() })
    await expect(opening).rejects.toThrow(/SLUICE_KILL_SWITCH.*'none', 'shadow'.*'off'.*'on'/)
  })
})

describe('processes on one store', () => {
  it('run two files during a rolling deploy, with the same changes', async () => {
    const store = memoryStore()
    const old = await openInTest(burst(1), store)
    const next = await openInTest(burst(5), store)
    const numberOf = (version: string) => version.split('.')[1]
    await old.policies.set({ policy: 'burst', field: 'mode', value: 'shadow' }, note)
    await until('both have the change', () => numberOf(next.policies.version) === '1')
    expect(next.policies.version).not.toBe(old.policies.version)
    await until('both are told', async () => {
      const { fleet } = await old.policies.status()
      const versions = fleet.map(({ version }) => version).sort()
      return versions.join() === [old.policies.version, next.policies.version].sort().join()
    })
    const path = 'policies.burst.limit'
    for (const { policies } of [old, next]) {
      const found = await policies.diff(old.policies.version, next.policies.version)
      expect(found).toEqual([{ path, from: 1, to: 5, newCount: false }])
      expect(await policies.export(old.policies.version)).toContain('limit: 1')
    }
  })

  it('let one of two editors win, and report a conflict to the other', async () => {
    const store = memoryStore()
    const editors = [await openInTest(burst(1), store), await openInTest(burst(1), store)]
    const entry = { policy: 'burst', field: 'limit', value: 7 } as const
    const change = (own = {}) =>
      Promise.allSettled(editors.map(({ policies }) => policies.set(entry, { ...note, ...own })))
    const lost = (results: readonly PromiseSettledResult<string>[]) =>
      results.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
    expect(lost(await change())).toEqual(['SLUICE_POLICY_CHANGED'])
    const knowWinner = () => editors.every(({ policies }) => policies.version.endsWith('.1'))
    await until('both know the winner', knowWinner)
    expect(lost(await change({ number: 0 }))).toEqual(Array(2).fill('SLUICE_POLICY_CHANGED'))
    expect(await editors[0]?.policies.history()).toHaveLength(2)
  })

  it('restore changes that a store has lost, even if a new process starts first', async ({
    client,
  }) => {
    const old = await openInTest(burst(1), redisStore(client))
    await old.policies.set({ policy: 'burst', field: 'limit', value: 7 }, note)
    await old.policies.kill('shadow', note)
    const { version } = old.policies
    await client.flushall()
    const next = await openInTest({ file: old.file }, redisStore(client))
    await until('the new process has the changes', () => next.policies.version === version)
    const { entries, kill } = await next.policies.status()
    expect([entries, kill]).toMatchObject([[{ field: 'limit', value: 7 }], 'shadow'])
    expect(old.policies.version).toBe(version)
    await old.policies.kill('none', note)
    await until('changes arrive again', () => next.policies.version === old.policies.version)
  })
})
