import type { HttpContender } from '../http/http-contender.ts'
import type { Bar } from '../report/bars.ts'

/** What is measured: everything against its own kind, with the same framework and the same store. */
export interface HttpCase extends Pick<HttpContender, 'framework'> {
  readonly store: 'memory' | 'redis'
  readonly traffic: 'allowed' | 'denied'
  readonly connections: number
}

export const httpCases: readonly HttpCase[] = (['allowed', 'denied'] as const).flatMap((traffic) =>
  [4, 40, 200].flatMap((connections) =>
    (['express', 'fastify'] as const).flatMap((framework) =>
      (['memory', 'redis'] as const).map(
        (store): HttpCase => ({ traffic, connections, framework, store }),
      ),
    ),
  ),
)

/** The name of a case, which headlines and bars refer to. */
export function httpCaseName({ traffic, connections, framework, store }: HttpCase): string {
  return `${traffic}, ${connections} connections, ${frameworkName(framework)}, ${store}`
}

export function frameworkName(framework: HttpContender['framework']): string {
  return framework === 'express' ? 'Express' : 'Fastify'
}

/** What Sluice has to reach beside the best peer of each case. */
export const httpBars: readonly Bar[] = httpCases.flatMap((one): Bar[] => {
  const name = httpCaseName(one)
  const bar = {
    suite: 'http',
    case: name,
    subject: `sluice, ${frameworkName(one.framework)}, ${one.store}`,
    unit: 'µs',
  }
  return [
    {
      ...bar,
      figure: 'nodeCpuUs',
      text: `${name}: CPU of the server`,
      // Below the peer where Redis is asked.
      atMost: one.store === 'redis' ? 1 : 1.05,
    },
    { ...bar, figure: 'addedCpuUs', text: `${name}: of it above bare`, wanted: 0.5 },
  ]
})
