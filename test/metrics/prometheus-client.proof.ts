import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { instrumentNames } from '@sluice/metrics'
import { prometheus } from '@sluice/metrics/prometheus'
import { Registry } from 'prom-client'
import { afterAll, expect, it } from 'vitest'
import { installNodes } from '../support/newer-nodes.ts'
import { run } from '../support/run.ts'
import { root } from '../support/workspace.ts'
import { everyMetric } from './every-metric.ts'

// Inside the tests' folder, where the packages of this repository resolve.
const folder = join(root, 'test/metrics/.prometheus-client')
afterAll(() => rm(folder, { recursive: true, force: true }))

it('@prometheus-io/client on Node 24 shows every metric as prom-client 15 does', async () => {
  await mkdir(folder, { recursive: true })
  const [node = ''] = await installNodes(folder, [24], { '@prometheus-io/client': '^0.16.1' })
  await writeFile(join(folder, 'show.mts'), show)
  const shown = await run(node, ['--conditions=@sluice/source', 'show.mts'], { cwd: folder })

  const registry = new Registry()
  await everyMetric((metrics) => prometheus(metrics, { registry }))
  expect(seriesOf(shown)).toEqual(seriesOf(await registry.metrics()))
  for (const name of instrumentNames) expect(shown).toContain(`# TYPE ${name} `)
  expect(shown).toContain('sluice_checks_total{policy="api",result="denied"}')
}, 400_000)

const show = `import { Registry } from '@prometheus-io/client'
import { prometheus } from '@sluice/metrics/prometheus'
import { everyMetric } from '../every-metric.ts'

const registry = new Registry()
await everyMetric((metrics) => prometheus(metrics, { registry }))
console.log(await registry.metrics())
`

/** Names, types and labels: values of time differ. */
function seriesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('# TYPE ') || line.startsWith('sluice_'))
    .map((line) => (line.startsWith('#') ? line : line.slice(0, line.lastIndexOf(' '))))
    .sort()
}
