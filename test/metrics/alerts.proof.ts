import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { findOrInstall } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/workspace.ts'
import { cases, rules, rulesFile } from './alerts.ts'
import { annotations } from './dashboards.ts'
import { limited, scraped } from './scrape.ts'

const file = root + rulesFile
const { path: folder, [Symbol.dispose]: remove } = temporaryFolder('alerts')
afterAll(remove)

function run(args: readonly string[], input = ''): string {
  return execFileSync(findOrInstall('promtool'), args, {
    input,
    encoding: 'utf8',
    timeout: 100_000,
  })
}

async function expectSuccess(content: object): Promise<void> {
  const tests = join(folder, 'tests.yml')
  await writeFile(tests, stringify({ evaluation_interval: '1m', ...content }))
  expect(run(['test', 'rules', tests])).toContain('SUCCESS')
}

it('promtool accepts the rules', () => {
  expect(run(['check', 'rules', file])).toContain(`${rules.length} rules found`)
})

const alerts = Object.entries(cases)
it.each(alerts)('%s fires exactly when it should', { timeout: 120_000 }, async (name, alert) => {
  const tests = (['firing', 'silent'] as const).flatMap((kind) =>
    [alert[kind]].flat().map((all) => ({
      interval: '1m',
      input_series: Object.entries(all).map(([series, values]) => ({ series, values })),
      promql_expr_test: [
        {
          // The labels that the alert has are those of its series: here only whether it fires is judged.
          expr: `count(ALERTS{alertname="${name}",alertstate="firing"}) or vector(0)`,
          eval_time: alert.at,
          exp_samples: [{ labels: '{}', value: kind === 'firing' ? 1 : 0 }],
        },
      ],
    })),
  )
  await expectSuccess({ rule_files: [file], tests })
})

it('a version is annotated once, and a kill switch while it is on', async () => {
  const [version, count, pass] = annotations.map(({ expr }) =>
    expr.replaceAll('$job', 'api').replaceAll('$__interval', '1m'),
  )
  const info = (id: string, values: string) => {
    return { series: `sluice_policy_info{job="api",policy="p",version="${id}"}`, values }
  }
  const kill = { series: 'sluice_kill_switch{job="api"}', values: '0x4 2x4 1x4 0x9' }
  const marked = (expr: string | undefined, at: number, labels?: string) => {
    const value = expr === pass ? 2 : 1
    return { expr, eval_time: `${at}m`, exp_samples: labels ? [{ labels, value }] : [] }
  }
  const test = {
    interval: '1m',
    input_series: [info('1', '1x4 stale'), info('2', '_x5 1x9'), kill],
    promql_expr_test: [
      marked(version, 4),
      marked(version, 5, '{version="2"}'),
      marked(version, 6),
      ...[marked(pass, 4), marked(pass, 5, '{job="api"}'), marked(pass, 10)],
      ...[marked(count, 9), marked(count, 12, '{job="api"}'), marked(count, 15)],
    ],
  }
  await expectSuccess({ rule_files: [], tests: [test] })
})

it('promtool accepts the metrics page', async () => {
  const { metrics, limiter } = limited({ limit: 1 })
  for (let i = 0; i < 3; i += 1) await limiter.consume('a')
  metrics.onEvent({ type: 'done', queue: 'a"b\\c\nd', runMs: 5 })
  expect(run(['check', 'metrics'], await scraped(metrics))).toBe('')
})
