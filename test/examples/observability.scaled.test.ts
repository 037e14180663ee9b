import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { freePort } from '../support/free-port.ts'
import { leash } from '../support/leash.ts'
import { findOrInstall } from '../support/programs.ts'
import { run } from '../support/run.ts'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { readText, root } from '../support/workspace.ts'
import { type RunningExample, startScript } from './start-example.ts'

const section = readText('docs/observability.md').split(/^## /m)[1] ?? ''
const steps = section.split(/^\d+\. /m).slice(1)
const expected = 'SluiceManyDenials'
let folder: string
let ports: readonly number[]
let api: RunningExample

/** A text of the page, with ports that are free. */
function ported(text: string): string {
  return text.replaceAll('3000', String(ports[0])).replaceAll('9090', String(ports[1]))
}

/** The block of a step, which is written to the file that the step names, or run. */
function block(step: number): string {
  const [, text] = /^```\w+\n(.*?)^```/ms.exec(steps[step - 1] ?? '') ?? []
  return ported(text ?? '')
}

function shell(command: string): Promise<string> {
  return run('/bin/sh', ['-c', command], { cwd: folder })
}

beforeAll(async () => {
  ports = [await freePort(), await freePort()]
  // Inside the tests' folder, where the packages resolve as a user's do after step 1.
  folder = await mkdtemp(join(root, 'test/examples/.observability-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'api.mjs'), block(2))
  writeFileSync(join(folder, 'prometheus.yml'), block(5))
  api = startScript(join(folder, 'api.mjs'), {})
  const [, page = ''] = block(3).trim().split('\n')
  await until('the page is there', async () => (await shell(page)).includes('sluice_policy_limit'))
})

afterAll(async () => {
  await api?.stop()
  await rm(folder, { recursive: true })
})

describe('from nothing to an alert in five minutes', () => {
  it('names files and packages that the steps have', () => {
    const installed = block(1).trim().split(' ').slice(2)
    for (const name of installed) expect(existsSync(join(folder, 'node_modules', name))).toBe(true)
    const imported = [...block(2).matchAll(/from '(.+)'/g)].map(([, name]) => name)
    expect(imported.sort()).toEqual(installed.sort())
    expect([steps[1], steps[4]].map((step) => /`(\S+)`/.exec(step ?? '')?.[1])).toEqual([
      'api.mjs',
      'prometheus.yml',
    ])
    expect(block(3)).toMatch(/^node api\.mjs\n/)
    expect(steps[7]).toContain(`The ${expected} alert fires`)
    expect(block(6).trim()).toBe('prometheus --config.file=prometheus.yml')
    const paths = [...section.matchAll(/`(node_modules\/\S+)`/g)].map(([, path = '']) => path)
    expect(paths).toHaveLength(2)
    for (const path of paths) expect(existsSync(join(folder, path))).toBe(true)
    expect(readdirSync(join(folder, paths[1] ?? ''))).toHaveLength(4)
  })

  it('makes a copy of the alerts that does not wait, which Prometheus reads', async () => {
    await shell(block(4))
    const { rule_files }: { rule_files: readonly string[] } = parse(block(5))
    expect(rule_files).toEqual(['quick.rules.yml'])
    const quick: { groups: readonly { rules: readonly { alert: string; for: string }[] }[] } =
      parse(readFileSync(join(folder, 'quick.rules.yml'), 'utf8'))
    const rules = quick.groups.flatMap((group) => group.rules)
    expect(rules.find(({ alert }) => alert === expected)?.for).toBe('0m')
  })

  it('asks more than the limit allows, and the alert fires', async () => {
    const all = block(7)
    expect(all).toMatch(/seq 300.+sleep 0\.1/)
    // Without Prometheus nobody needs time to look.
    if (!isProof) await shell(all.replace('300', '110').replace('sleep 0.1', 'true'))
    else await firesWhile(() => shell(all))
    const page = await shell(block(3).trim().split('\n')[1] ?? '')
    expect(page).toMatch(/^sluice_checks_total{policy="api",result="denied"} \d+/m)
  }, 200_000)
})

interface Alert {
  readonly state: string
  readonly labels: { readonly alertname: string; readonly job?: string }
}

/** Runs Prometheus as the page does, and waits until the alert fires where the page says. */
async function firesWhile(asks: () => Promise<unknown>): Promise<void> {
  const address = `--web.listen-address=127.0.0.1:${ports[1]}`
  const args = [...block(6).trim().split(' ').slice(1), address, '--log.level=error']
  const prometheus = spawn(findOrInstall('prometheus'), args, { cwd: folder, stdio: 'inherit' })
  const release = leash(prometheus, join(folder, 'data'))
  try {
    const [, link = ''] = /`(http:\S+)\/alerts`/.exec(ported(steps[7] ?? '')) ?? []
    await until('Prometheus answers', async () => (await fetch(`${link}/-/ready`)).ok)
    await asks()
    await until('the alert fires', async () => {
      const { data } = JSON.parse(await (await fetch(`${link}/api/v1/alerts`)).text())
      return data.alerts.some(
        ({ state, labels: { alertname, job } }: Alert) =>
          alertname === expected && state === 'firing' && job === 'api',
      )
    })
  } finally {
    const ended = once(prometheus, 'exit')
    prometheus.kill()
    await ended
    release()
  }
}
