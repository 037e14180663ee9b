import { mkdirSync, writeFileSync } from 'node:fs'
import { root } from '../support/workspace.ts'
import { contenders } from './contenders.ts'
import { herdChart } from './herd-chart.ts'
import { type Herd, runHerd } from './run-herd.ts'

// 200 clients call an API that admits 50 a second, all at once and each until it is served. Three rounds of each kind of
// client; the table has the middle one by time, and the busiest second of all. Fails when clients that share what they are
// told come back faster than the limit and a tenth.
const size = { clients: 200, limit: 50 }
const rounds = 3
const mayBe = size.limit * 1.1

const middle: Herd[] = []
const rows = [
  '| clients | requests | refusals | finished after | busiest second |',
  '| --- | ---: | ---: | ---: | ---: |',
]
for (const contender of contenders) {
  const herds: Herd[] = []
  for (let round = 0; round < rounds; round++) herds.push(await runHerd(contender, size))
  const herd = herds.sort((a, b) => a.tookMs - b.tookMs)[Math.floor(rounds / 2)]
  if (herd === undefined) continue
  middle.push(herd)
  const busiest = Math.max(...herds.map(({ busiestSecond }) => busiestSecond))
  rows.push(
    `| ${herd.name} | ${herd.requests} | ${herd.refusals} | ${(herd.tookMs / 1000).toFixed(1)} s | ${busiest} |`,
  )
  console.log(rows.at(-1))
  if (herd.name.includes('one process') && busiest > mayBe) {
    console.error(`${herd.name}: ${busiest} requests came in one second, and ${mayBe} may`)
    process.exitCode = 1
  }
}

const title = `${size.clients} clients, an API that admits ${size.limit} a second`
mkdirSync(`${root}docs/clients`, { recursive: true })
writeFileSync(`${root}docs/clients/herd.svg`, herdChart(title, middle, size.limit))
console.log(`\n${rows.join('\n')}`)
