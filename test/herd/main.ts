import { mkdirSync, writeFileSync } from 'node:fs'
import { root } from '../support/workspace.ts'
import { contenders } from './contenders.ts'
import { herdChart } from './herd-chart.ts'
import { type Herd, runHerd } from './run-herd.ts'

// 200 clients call an API that admits 50 a second, all at once and each until it is served. Three rounds of each kind of
// client; the table has the middle one by time, and the busiest seconds of all. Fails when a client is not served, and when
// clients of one process come back faster than the limit and a tenth, or are refused again. Of 200 processes nothing is
// promised: they cannot know of each other.
const size = { clients: 200, limit: 50 }
const rounds = 3
const mayBe = size.limit * 1.1

const middle: Herd[] = []
const rows = [
  '| clients | requests | refusals | finished after | busiest second, sent after | busiest second, arriving after |',
  '| --- | ---: | ---: | ---: | ---: | ---: |',
]
for (const contender of contenders) {
  const herds: Herd[] = []
  for (let round = 0; round < rounds; round++) herds.push(await runHerd(contender, size))
  const herd = herds.sort((a, b) => a.tookMs - b.tookMs)[Math.floor(rounds / 2)]
  if (herd === undefined) continue
  middle.push(herd)
  const busiest = Math.max(...herds.map(({ busiestSecond }) => busiestSecond))
  const busiestArrivals = Math.max(...herds.map(({ busiestArrivals }) => busiestArrivals))
  const lateRefusals = Math.max(...herds.map(({ lateRefusals }) => lateRefusals))
  rows.push(
    `| ${herd.name} | ${herd.requests} | ${herd.refusals} | ${(herd.tookMs / 1000).toFixed(1)} s | ${busiest} | ${busiestArrivals} |`,
  )
  console.log(rows.at(-1))
  if (!herd.name.includes('one process')) continue
  if (busiest > mayBe) fail(herd, `${busiest} requests came back in one second, and ${mayBe} may`)
  if (lateRefusals > 0) fail(herd, `${lateRefusals} requests were refused that came back`)
}

const title = `${size.clients} clients, an API that admits ${size.limit} a second`
mkdirSync(`${root}docs/clients`, { recursive: true })
writeFileSync(`${root}docs/clients/herd.svg`, herdChart(title, middle, size.limit))
console.log(`\n${rows.join('\n')}`)

function fail({ name }: Herd, message: string): void {
  console.error(`${name}: ${message}`)
  process.exitCode = 1
}
