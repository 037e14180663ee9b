import type { Question } from '../report/headline.ts'
import { headCase } from './check-cases.ts'
import { growthLimits, limitCase } from './growth.ts'
import { frameworkName, httpCaseName, httpCases } from './http-bars.ts'
import { memoryHeadCase } from './memory.ts'

const slidingLog = 'sluice sliding-log'
const allowed = { suite: 'checks', case: headCase.allowed, subject: slidingLog } as const
const denied = { suite: 'checks', case: headCase.denied, subject: slidingLog } as const
const latency = { suite: 'checks', case: headCase.latency, subject: slidingLog } as const
const decision = {
  suite: 'memory',
  case: memoryHeadCase.allowed,
  subject: `${slidingLog}, decide()`,
} as const
const manyKeys = { ...decision, case: memoryHeadCase.manyKeys } as const
const expressStore = 'express-rate-limit MemoryStore'
const flexibleStore = 'rate-limiter-flexible RateLimiterMemory'

/** What the benchmark has to answer, each as one ratio. */
export const questions: readonly Question[] = [
  { ...allowed, text: 'Redis, full logs: checks per second', figure: 'perSecond', unit: '/s' },
  { ...allowed, text: 'Redis, full logs: Node CPU a check', figure: 'nodeCpuUs', unit: 'µs' },
  { ...allowed, text: 'Redis, full logs: Redis CPU a check', figure: 'redisCpuUs', unit: 'µs' },
  {
    ...allowed,
    subject: `${slidingLog} × 2`,
    text: 'Redis: CPU of two policies, to a single check',
    figure: 'redisCpuUs',
    unit: 'µs',
  },
  {
    ...latency,
    text: 'Redis, 1 in flight: median latency, to the script alone',
    figure: 'p50Ms',
    against: 'the same script, called directly',
    unit: 'ms',
  },
  { ...latency, text: 'Redis, 1 in flight: median latency', figure: 'p50Ms', unit: 'ms' },
  { ...denied, text: 'refused flood: Redis commands a request', figure: 'redisCommands' },
  { ...denied, text: 'refused flood: requests per second', figure: 'perSecond', unit: '/s' },
  {
    ...denied,
    text: 'refused flood: requests per second',
    figure: 'perSecond',
    against: 'rate-limiter-flexible (inMemoryBlock)',
    unit: '/s',
  },
  ...[expressStore, flexibleStore].flatMap((against): Question[] => [
    { ...decision, against, text: 'memory: CPU a decision', figure: 'nodeCpuUs', unit: 'µs' },
    {
      ...manyKeys,
      against,
      text: 'memory, many keys: CPU a decision',
      figure: 'nodeCpuUs',
      unit: 'µs',
    },
    {
      ...manyKeys,
      against,
      text: 'memory, many keys: heap a key',
      figure: 'bytesPerKey',
      unit: 'bytes',
    },
    {
      ...manyKeys,
      against,
      case: memoryHeadCase.churn,
      text: 'memory, many keys: longest pause',
      figure: 'longestPauseMs',
      unit: 'ms',
    },
  ]),
  ...httpCases
    .filter(({ connections }) => connections === 40)
    .map(
      (one): Question => ({
        text: `HTTP: CPU above bare, ${httpCaseName(one)}`,
        suite: 'http',
        case: httpCaseName(one),
        subject: `sluice, ${frameworkName(one.framework)}, ${one.store}`,
        figure: 'addedCpuUs',
        unit: 'µs',
      }),
    ),
  ...growthLimits({ quick: false }).map(
    (limit): Question => ({
      text: `Redis, limit ${limit.toLocaleString('en-US')}: bytes a recorded request`,
      suite: 'growth',
      case: limitCase(limit),
      subject: slidingLog,
      figure: 'bytesPerUnit',
      unit: 'bytes',
    }),
  ),
]
